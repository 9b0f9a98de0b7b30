package replset

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// inBalancedSet runs a test in a bubble, with a set of three behind a load balancer.
func inBalancedSet(t *testing.T, test func(t *testing.T, s *Set)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{LoadBalancer: &LoadBalancerOptions{Name: "lb", Port: 27017}})
		defer s.Close()
		test(t, s)
	})
}

func balancedHello() bson.D {
	return bson.D{{Key: "hello", Value: 1}, {Key: "loadBalanced", Value: true}}
}

// through connects through the balancer, and says which service it got.
func through(t *testing.T, s *Set) (c *raw, service bson.ObjectID) {
	t.Helper()
	nc, err := s.opt.Network.Dial(t.Context(), "tcp", s.LoadBalancer().Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if c, err = greet(nc, ""); err != nil {
		t.Fatal(err)
	}
	service, ok := c.must(t, "admin", balancedHello()).Lookup("serviceId").ObjectIDOK()
	if !ok {
		t.Fatal("hello names no service")
	}
	return c, service
}

func TestLoadBalancerTakesTurns(t *testing.T) {
	inBalancedSet(t, func(t *testing.T, s *Set) {
		ids := s.LoadBalancer().ServiceIDs()
		if len(ids) != 2 || ids[0] == ids[1] || s.LoadBalancer().URI() != "mongodb://lb:27017/?loadBalanced=true" {
			t.Fatal(ids, s.LoadBalancer().URI())
		}
		for i := range 4 {
			if _, service := through(t, s); service != ids[i%2] {
				t.Errorf("connection %d leads to %s", i, service)
			}
		}
		if err := s.LoadBalancer().Route(1); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, service := through(t, s); service != ids[1] {
				t.Errorf("the way leads to %s", service)
			}
		}
		if err := s.LoadBalancer().Route(2); err == nil || !strings.Contains(err.Error(), "which has 2") {
			t.Error(err)
		}
	})
}

func TestServiceLooksLikeAMongosAndRefusesWhoKnowsNoBalancer(t *testing.T) {
	inBalancedSet(t, func(t *testing.T, s *Set) {
		c, _ := through(t, s)
		h := c.must(t, "admin", balancedHello())
		if msg, _ := h.Lookup("msg").StringValueOK(); msg != "isdbgrid" || !h.Lookup("setName").IsZero() || !h.Lookup("hosts").IsZero() {
			t.Errorf("%s", h)
		}
		if h := c.must(t, "admin", bson.D{{Key: "hello", Value: 1}}); !h.Lookup("serviceId").IsZero() {
			t.Errorf("a service is named to who did not say loadBalanced: %s", h)
		}
		nc, err := s.opt.Network.Dial(t.Context(), "tcp", "lb:27017")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		stranger, _ := greet(nc, "")
		if e := stranger.fails(t, 354, "admin", bson.D{{Key: "hello", Value: 1}}); !strings.Contains(e.Error(), "does not have load balancing enabled") {
			t.Error(e)
		}
		if h := dialRaw(t, s, 0, "").must(t, "admin", balancedHello()); !h.Lookup("serviceId").IsZero() {
			t.Errorf("a member of the set names a service: %s", h)
		}
	})
}

func findTwo() bson.D { return bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 2}} }

func cursorID(r bson.Raw) int64 {
	id, _ := r.Lookup("cursor", "id").AsInt64OK()
	return id
}

func getMoreOf(id int64) bson.D {
	return bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 2}}
}

// A driver that does not keep to a connection must not get away with it.
func TestCursorIsKnownToItsServiceAloneAndEndsWithItsConnection(t *testing.T) {
	inBalancedSet(t, func(t *testing.T, s *Set) {
		lb := s.LoadBalancer()
		a, _ := through(t, s)
		b, _ := through(t, s)
		for i := range 5 {
			a.must(t, "t", insert(i, majority()))
		}
		id := cursorID(a.must(t, "t", findTwo()))
		b.fails(t, mongoerr.CodeCursorNotFound, "t", getMoreOf(id))
		kill := bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{id}}}
		if missing, _ := b.must(t, "t", kill).Lookup("cursorsNotFound", "0").Int64OK(); missing != id || lb.OpenCursors(0) != 1 {
			t.Errorf("not found: %d of %d; %d open", missing, id, lb.OpenCursors(0))
		}
		if more := cursorID(a.must(t, "t", getMoreOf(id))); more != id {
			t.Errorf("the cursor goes on as %d", more)
		}
		if end := cursorID(a.must(t, "t", getMoreOf(id))); end != 0 || lb.OpenCursors(0) != 0 {
			t.Errorf("the last batch is of cursor %d; %d open", end, lb.OpenCursors(0))
		}
		id = cursorID(a.must(t, "t", findTwo()))
		a.must(t, "t", bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{id}}})
		if lb.OpenCursors(0) != 0 {
			t.Error("a killed cursor is open")
		}
		a.must(t, "t", findTwo())
		a.nc.Close()
		synctest.Wait()
		if open := lb.OpenCursors(0); open != 0 {
			t.Errorf("%d cursors outlive their connection", open)
		}
	})
}

func TestServiceFollowsThePrimaryAndWaitsForOne(t *testing.T) {
	inBalancedSet(t, func(t *testing.T, s *Set) {
		c, _ := through(t, s)
		c.must(t, "t", insert(1, majority()))
		old := s.Primary()
		if err := s.Kill(old.Index()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		c.must(t, "t", insert(2, majority()))
		if took := time.Since(start); took == 0 || took > 10*time.Second || s.Primary() == old {
			t.Errorf("after %v, at %v", took, s.Primary().Addr())
		}
	})
}

func TestFailPointsOfAServiceAreItsOwn(t *testing.T) {
	inBalancedSet(t, func(t *testing.T, s *Set) {
		a, _ := through(t, s)
		b, _ := through(t, s)
		if err := s.LoadBalancer().FailCommand(0, &FailCommand{Commands: []string{"insert"}, ErrorCode: 91}); err != nil {
			t.Fatal(err)
		}
		a.fails(t, 91, "t", insert(1, nil))
		b.must(t, "t", insert(1, nil))
		a.must(t, "admin", bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}})
		a.must(t, "t", insert(2, nil))
		if err := s.LoadBalancer().Disconnect(0); err != nil {
			t.Fatal(err)
		}
		if _, err := a.run("admin", pingCommand()); err == nil || mongoerr.Code(err) != 0 {
			t.Errorf("over a connection that was cut: %v", err)
		}
		b.must(t, "admin", pingCommand())
	})
}

func TestLoadBalancerOptionsThatCannotBeAreRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"1 to 16 services": {LoadBalancer: &LoadBalancerOptions{Services: 17}},
		"5.0 is the first": {LoadBalancer: &LoadBalancerOptions{}, Version: "4.4"},
	} {
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
