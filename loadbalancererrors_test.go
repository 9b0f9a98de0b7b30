package sextant_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

func withoutRetries(_ *replset.Options, c *sextant.Config) {
	c.RetryReads, c.RetryWrites = new(false), new(false)
}

func (b *balanced) insert(t *testing.T) error {
	t.Helper()
	_, err := b.coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	return err
}

func TestSDAMErrorHandlingOnlyConnectionsForASpecificServiceIdAreClosedWhenPoolsAreCleared(t *testing.T) {
	behindALoadBalancer(t, withoutRetries, func(t *testing.T, b *balanced) {
		for _, cur := range []*sextant.Cursor[bson.D]{b.find(t), b.find(t)} {
			_ = cur.Close(t.Context())
		}
		if s := b.cl.Hosts().Members[0].Pool; s.Services != 2 || s.Idle != 2 {
			t.Errorf("%+v", s)
		}
		b.take()
		b.fail(t, replset.FailCommand{Commands: []string{"insert"}, ErrorCode: mongoerr.CodeInterruptedAtShutdown, Times: 1})
		if err := b.insert(t); mongoerr.Code(err) != mongoerr.CodeInterruptedAtShutdown {
			t.Error(err)
		}
		if err := b.insert(t); err == nil {
			t.Error("the other service has a fail point of its own")
		}
		b.fail(t, replset.FailCommand{Commands: []string{"none"}})
		if err := b.insert(t); err != nil {
			t.Error(err)
		}
		b.saw(t, "started insert, failed insert, started insert, failed insert, started insert, succeeded insert",
			"CheckedOut PoolCleared CheckedIn Closed(stale) CheckedOut PoolCleared CheckedIn Closed(stale) Created Ready CheckedOut CheckedIn")
	})
}

func TestSDAMErrorHandlingOneServiceSparesTheConnectionsOfTheOther(t *testing.T) {
	behindALoadBalancer(t, withoutRetries, func(t *testing.T, b *balanced) {
		first, second := b.find(t), b.find(t)
		_ = second.Close(t.Context())
		_ = first.Close(t.Context())
		b.take() // the first service's connection was used last
		if err := b.lb.FailCommand(0, &replset.FailCommand{Commands: []string{"insert"}, ErrorCode: mongoerr.CodeInterruptedAtShutdown}); err != nil {
			t.Fatal(err)
		}
		if err := b.insert(t); mongoerr.Code(err) != mongoerr.CodeInterruptedAtShutdown {
			t.Error(err)
		}
		if err := b.insert(t); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(b.cleared) != 1 || *b.cleared[0].ServiceID != b.lb.ServiceIDs()[0] || b.cleared[0].Err == nil {
			t.Errorf("cleared: %v", b.cleared)
		}
		b.saw(t, "started insert, failed insert, started insert, succeeded insert", "CheckedOut PoolCleared CheckedIn Closed(stale) CheckedOut CheckedIn")
		if k := b.cl.Hosts().Members[0].Kind; k != event.LoadBalancer {
			t.Errorf("the balancer is %v", k)
		}
	})
}

func TestSDAMErrorHandlingErrorsDuringTheInitialConnectionHelloAreIgnored(t *testing.T) {
	behindALoadBalancer(t, withoutRetries, func(t *testing.T, b *balanced) {
		b.fail(t, replset.FailCommand{Commands: []string{"isMaster", "hello"}, ErrorCode: mongoerr.CodeInterruptedAtShutdown, AppName: "app", Times: 1})
		if err := b.insert(t); err == nil {
			t.Error("no error")
		}
		b.saw(t, "", "Created Closed(error) CheckOutFailed(connectionError)")
		m := b.cl.Hosts().Members[0]
		if m.Kind != event.LoadBalancer || m.LastError == nil || m.LastErrorStage != string(mongoerr.StageHandshake) {
			t.Errorf("%v, last error %v", m, m.LastError)
		}
		if err := b.lb.Route(1); err != nil {
			t.Fatal(err)
		}
		b.fail(t, replset.FailCommand{Commands: []string{"none"}})
		if err := b.insert(t); err != nil || b.cl.Hosts().Members[0].LastError != nil {
			t.Errorf("%v; %v", err, b.cl.Hosts().Members[0].LastError)
		}
	})
}

func withPassword(o *replset.Options, c *sextant.Config) {
	o.Users = []replset.User{{Name: "joe", Password: "s3cr3t"}}
	c.Username, c.Password = "joe", "s3cr3t"
	withoutRetries(o, c)
}

func TestSDAMErrorHandlingErrorsDuringAuthenticationAreProcessed(t *testing.T) {
	behindALoadBalancer(t, withPassword, func(t *testing.T, b *balanced) {
		b.fail(t, replset.FailCommand{Commands: []string{"saslContinue"}, CloseConnection: true, AppName: "app", Times: 1})
		if err := b.insert(t); !mongoerr.IsNetwork(err) {
			t.Error(err)
		}
		if synctest.Wait(); len(b.cleared) != 1 || *b.cleared[0].ServiceID != b.lb.ServiceIDs()[0] {
			t.Errorf("cleared: %v", b.cleared)
		}
		b.saw(t, "", "Created PoolCleared Closed(error) CheckOutFailed(connectionError)")
	})
}

func TestSDAMErrorHandlingStaleErrorsAreIgnored(t *testing.T) {
	behindALoadBalancer(t, withoutRetries, func(t *testing.T, b *balanced) {
		if err := b.lb.Route(0); err != nil {
			t.Fatal(err)
		}
		b.fail(t, replset.FailCommand{Commands: []string{"getMore"}, CloseConnection: true, Times: 2})
		for _, cur := range []*sextant.Cursor[bson.D]{b.find(t), b.find(t)} {
			walk(t, cur, 2)
			if cur.Next(t.Context()) || !mongoerr.IsNetwork(cur.Err()) {
				t.Error(cur.Err())
			}
			_ = cur.Close(t.Context())
		}
		b.saw(t, "started find, succeeded find, started find, succeeded find, started getMore, failed getMore, started getMore, failed getMore",
			"Created Ready CheckedOut Created Ready CheckedOut PoolCleared CheckedIn Closed(error) CheckedIn Closed(error)")
	})
}

// What the balancer's address does is no service's fault, and nobody waits for a better time: there is no monitor to tell it.
func TestBalancerOutOfReachIsToldAtOnceAndStaysSelectable(t *testing.T) {
	behindALoadBalancer(t, func(_ *replset.Options, c *sextant.Config) {}, func(t *testing.T, b *balanced) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if err := b.lb.Disconnect(i); err != nil {
				t.Fatal(err)
			}
		}
		b.take()
		start := time.Now()
		if err := b.insert(t); err != nil || time.Since(start) > time.Second {
			t.Errorf("a retry would have done: %v after %v", err, time.Since(start))
		}
		b.set.Close()
		err := b.insert(t)
		if !mongoerr.IsNetwork(err) || mongoerr.IsSelection(err) || !mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite) {
			t.Error(err)
		}
		if m := b.cl.Hosts().Members[0]; m.Kind != event.LoadBalancer || m.LastError == nil {
			t.Errorf("%v, last error %v", m, m.LastError)
		}
		if _, cmap := b.take(); !slices.Contains(cmap, "CheckOutFailed(connectionError)") {
			t.Error(cmap)
		}
	})
}

func TestReadPreferenceIsSentForLoadBalancedClusters(t *testing.T) {
	var sent []bson.Raw
	behindALoadBalancer(t, func(_ *replset.Options, c *sextant.Config) {
		c.Monitor.CommandStarted = func(_ context.Context, e *event.CommandStartedEvent) { sent = append(sent, e.Command.Clone()) }
	}, func(t *testing.T, b *balanced) {
		for _, mode := range []*readpref.ReadPref{readpref.Primary(), readpref.SecondaryPreferred(), readpref.Nearest(readpref.Tags("dc", "east"))} {
			if _, err := b.coll.FindOne(t.Context(), bson.D{}, sextant.FindOneOptions{ReadPreference: mode}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		if !sent[0].Lookup("$readPreference").IsZero() || !sent[3].Lookup("$readPreference").IsZero() {
			t.Errorf("a primary is asked for in words: %s, %s", sent[0], sent[3])
		}
		if mode, _ := sent[1].Lookup("$readPreference", "mode").StringValueOK(); mode != "secondaryPreferred" {
			t.Errorf("%s", sent[1])
		}
		if tag, _ := sent[2].Lookup("$readPreference", "tags", "0", "dc").StringValueOK(); tag != "east" {
			t.Errorf("%s", sent[2])
		}
		if sent[0].Lookup("lsid").IsZero() || sent[3].Lookup("txnNumber").IsZero() {
			t.Errorf("sessions and retryable writes are always there: %s, %s", sent[0], sent[3])
		}
	})
}

func TestCommandStartedSucceededFailedAndPoolClearedEventsIncludeServiceId(t *testing.T) {
	behindALoadBalancer(t, withoutRetries, func(t *testing.T, b *balanced) {
		if err := b.lb.Route(1); err != nil {
			t.Fatal(err)
		}
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		if _, err := b.coll.FindOne(t.Context(), bson.D{{Key: "$or", Value: true}}); err == nil {
			t.Error("no error")
		}
		b.fail(t, replset.FailCommand{Commands: []string{"find"}, CloseConnection: true, Times: 1})
		if _, err := b.coll.FindOne(t.Context(), bson.D{}); !mongoerr.IsNetwork(err) {
			t.Error(err)
		}
		synctest.Wait()
		if len(b.services) != 6 || len(b.cleared) != 1 {
			t.Fatalf("%d command events, %d clears", len(b.services), len(b.cleared))
		}
		for i, id := range append(b.services, b.cleared[0].ServiceID) {
			if id == nil || *id != b.lb.ServiceIDs()[1] {
				t.Errorf("event %d: service %v", i, id)
			}
		}
	})
}

// The logging cases: service-id of the command logging specification, "topology lifecycle" of SDAM logging, "a successful
// operation - load balanced cluster" of server selection logging.
func TestLogOfALoadBalancedClientNamesServices(t *testing.T) {
	var log records
	behindALoadBalancer(t, func(o *replset.Options, c *sextant.Config) {
		withoutRetries(o, c)
		c.Logger = slog.New(&log)
	}, func(t *testing.T, b *balanced) {
		log.clear()
		if err := b.lb.Route(1); err != nil {
			t.Fatal(err)
		}
		b.fail(t, replset.FailCommand{Commands: []string{"insert"}, CloseConnection: true, Times: 1})
		_ = b.insert(t)
		_ = b.insert(t)
		b.cl.Close(t.Context())
		id := b.lb.ServiceIDs()[1].Hex()
		for _, message := range []string{"Command started", "Command failed", "Command succeeded", "Connection pool cleared"} {
			if got := log.of(message); len(got) == 0 || got[0].attrs["serviceId"] != id {
				t.Errorf("%s: %v", message, got)
			}
		}
		if got := log.of("Connection checked out"); len(got) == 0 || got[0].attrs["serviceId"] != nil {
			t.Errorf("a connection's records: %v", got)
		}
		var topology, selection []string
		for _, r := range log.all() {
			switch r.attrs["component"] {
			case "topology":
				topology = append(topology, r.message)
			case "serverSelection":
				selection = append(selection, r.message)
			}
		}
		if want := []string{
			"Starting topology monitoring", "Topology description changed", "Starting server monitoring", "Topology description changed",
			"Stopped server monitoring", "Topology description changed", "Stopped topology monitoring",
		}; !slices.Equal(topology, want) {
			t.Errorf("topology: %q", topology)
		}
		if want := []string{"Server selection started", "Server selection succeeded"}; len(selection) < 4 || !slices.Equal(selection[:2], want) {
			t.Errorf("selection: %q", selection)
		}
	})
}

func TestOperationsAgainstNonLoadBalancedClustersFailIfURIContainsLoadBalancedTrue(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		cl := b.client(t, &sextant.Config{Hosts: []string{b.set.Member(0).Addr()}, LoadBalanced: new(true)})
		defer cl.Close(context.Background())
		start := time.Now()
		const want = "Driver attempted to initialize in load balancing mode, but the server does not support this mode."
		if _, err := cl.Database("a").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		if err := cl.WaitReady(t.Context(), sextant.Want{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it was waited for %v, which does not help", took)
		}
	})
}

// The other half of "operations against load balancers fail if URI contains loadBalanced=false": servers do refuse now.
func TestOperationsAgainstLoadBalancersFailIfURIContainsLoadBalancedFalse(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		cl := b.client(t, &sextant.Config{Hosts: []string{"lb"}, LoadBalanced: new(false), ServerSelectionTimeout: time.Second})
		defer cl.Close(context.Background())
		_, err := cl.Database("a").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}})
		if err == nil || !strings.Contains(err.Error(), "does not have load balancing enabled") {
			t.Error(err)
		}
	})
}

func TestClientSaysSensibleThingsAboutALoadBalancer(t *testing.T) {
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		start := time.Now()
		v, err := b.cl.Explain(t.Context(), sextant.Want{ReadPreference: readpref.Secondary()})
		if err != nil || len(v.Eligible()) != 1 || !strings.Contains(v.Sentence, "1 member serves a read with mode secondary") {
			t.Errorf("%v, %v", v, err)
		}
		if err := b.cl.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		if err := b.cl.WaitReady(t.Context(), sextant.Want{Write: true}); err != nil {
			t.Error(err)
		}
		h := b.cl.Hosts()
		if m := h.Members[0]; h.Kind != event.LoadBalanced || len(h.Members) != 1 || m.Kind != event.LoadBalancer || m.Address != "lb:27017" || m.Pool.Services != 1 {
			t.Errorf("%v", h)
		}
		if err := b.cl.Quarantine("lb", "slow"); err == nil || !strings.Contains(err.Error(), "load balancer") {
			t.Errorf("the only way is left out: %v", err)
		}
		if _, err := b.cl.Pin(t.Context(), readpref.Secondary()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("all that took %v", took)
		}
	})
}

// Everything that the specification wants told of a load balancer, and nothing else: no heartbeats.
func TestLoadBalancerEmitsItsSDAMEventsAndNoHeartbeats(t *testing.T) {
	var mu sync.Mutex
	var got []string
	behindALoadBalancer(t, func(_ *replset.Options, c *sextant.Config) {
		c.Monitor = &event.Monitor{
			Heartbeat: func(e *event.HeartbeatEvent) { t.Error("a heartbeat") },
			TopologyChanged: func(e *event.TopologyEvent) {
				mu.Lock()
				defer mu.Unlock()
				line := string(e.Type)
				switch e.Type {
				case event.TopologyUpdated:
					line += " " + e.Before.String() + " -> " + e.After.String()
				case event.MemberUpdated:
					line += " " + e.MemberBefore.Kind.String() + " -> " + e.MemberAfter.Kind.String()
				}
				got = append(got, strings.TrimSpace(line))
			},
		}
	}, func(t *testing.T, b *balanced) {
		b.fail(t, replset.FailCommand{Commands: []string{"insert"}, ErrorCode: mongoerr.CodeShutdownInProgress, Times: 1})
		_ = b.insert(t)
		time.Sleep(time.Minute)
		b.cl.Close(t.Context())
		mu.Lock()
		defer mu.Unlock()
		want := []string{
			"TopologyOpening", "TopologyDescriptionChanged Unknown:  -> LoadBalanced: lb:27017 Unknown", "ServerOpening",
			"ServerDescriptionChanged Unknown -> LoadBalancer", "TopologyDescriptionChanged LoadBalanced: lb:27017 Unknown -> LoadBalanced: lb:27017 LoadBalancer",
			"ServerClosed", "TopologyDescriptionChanged LoadBalanced: lb:27017 LoadBalancer -> Unknown:", "TopologyClosed",
		}
		if !slices.Equal(got, want) {
			t.Errorf("events\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	})
}

// A writer that went on through a failover behind the balancer, by retries, writes each document once.
func TestWritesGoOnThroughAFailoverBehindALoadBalancer(t *testing.T) {
	behindALoadBalancer(t, func(o *replset.Options, _ *sextant.Config) {
		o.Config = []replset.MemberOptions{{Name: "m0", Port: 27017}, {Name: "m1", Port: 27017}, {Name: "m2", Port: 27017}}
	}, func(t *testing.T, b *balanced) {
		for i := range 20 {
			if i == 10 {
				if err := b.set.Kill(b.set.Primary().Index()); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.insert(t); err != nil {
				t.Errorf("write %d: %v", i, err)
			}
		}
		if n, err := b.coll.CountDocuments(t.Context(), bson.D{{Key: "x", Value: 1}}); err != nil || n != 20 {
			t.Errorf("%d documents, %v", n, err)
		}
	})
}

func TestLoadBalancerIsReachedByTLSWithALoginAndIdleConnections(t *testing.T) {
	behindALoadBalancer(t, func(o *replset.Options, c *sextant.Config) {
		withPassword(o, c)
		o.TLS = &replset.TLS{}
		c.MinPoolSize = 3
	}, func(t *testing.T, b *balanced) {
		if err := b.cl.WaitReady(t.Context(), sextant.Want{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := b.cl.Hosts().Members[0].Pool; s.Idle != 3 || s.Services != 2 {
			t.Errorf("%+v", s)
		}
		if err := b.insert(t); err != nil {
			t.Error(err)
		}
	})
}

// What hello says of the sessions' time counts for one service alone, and is passed over.
func TestSessionsBehindALoadBalancerDoNotExpire(t *testing.T) {
	var ids []string
	behindALoadBalancer(t, func(_ *replset.Options, c *sextant.Config) {
		c.Monitor.CommandStarted = func(_ context.Context, e *event.CommandStartedEvent) {
			ids = append(ids, e.Command.Lookup("lsid").String())
		}
	}, func(t *testing.T, b *balanced) {
		for range 2 {
			if err := b.insert(t); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		if len(ids) != 2 || ids[0] != ids[1] || ids[0] == "" {
			t.Errorf("sessions %q", ids)
		}
	})
}
