package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// inBubble runs a test with a cluster over the script, on fake time. The cluster is closed at its end, and the bubble
// fails if a goroutine is left.
func inBubble(t *testing.T, s *script, cfg cluster.Config, f func(t *testing.T, c *cluster.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for _, m := range s.members {
			m.changed = make(chan struct{}) // of the bubble
		}
		cfg.Conn.Dial = s.dial
		cfg.Conn.Metadata = conn.ClientMetadata("test")
		c := cluster.New(cfg)
		defer func() {
			if err := c.Close(context.Background()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}()
		f(t, c)
	})
}

func setOf3() (*script, []*member) {
	all := []string{"a:1", "b:1", "c:1"}
	list := []*member{primary("a:1", all...), secondary("b:1", all...), secondary("c:1", all...)}
	return newScript(list...), list
}

func seeds(addrs ...string) cluster.Config {
	return cluster.Config{Topology: topology.Config{Seeds: addrs, SetName: "rs"}}
}

func selectAddr(t *testing.T, c *cluster.Cluster, w topology.Want) string {
	t.Helper()
	s, err := c.Select(t.Context(), w)
	if err != nil {
		t.Fatalf("Select: %v", err)
	}
	return s.Address()
}

func kinds(c *cluster.Cluster) string {
	var out []string
	for _, s := range c.Description().Servers {
		out = append(out, s.Addr+" "+s.Kind.String())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestNewDoesNoIO(t *testing.T) {
	s, list := setOf3()
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		time.Sleep(time.Minute)
		if list[0].dials != 0 {
			t.Errorf("%d dials before the first use", list[0].dials)
		}
	})
}

func TestSetIsDiscoveredFromOneSeed(t *testing.T) {
	s, _ := setOf3()
	inBubble(t, s, seeds("c:1"), func(t *testing.T, c *cluster.Cluster) {
		if got := selectAddr(t, c, topology.Want{Write: true}); got != "a:1" {
			t.Errorf("a write goes to %s", got)
		}
		synctest.Wait()
		if got := kinds(c); got != "a:1 RSPrimary, b:1 RSSecondary, c:1 RSSecondary" {
			t.Errorf("found %s", got)
		}
		seen := map[string]int{}
		for range 100 {
			seen[selectAddr(t, c, topology.Want{ReadPref: readpref.Secondary()})]++
		}
		if seen["b:1"] < 20 || seen["c:1"] < 20 || seen["a:1"] > 0 {
			t.Errorf("100 secondary reads go to %v", seen)
		}
	})
}

func TestSelectionPrefersTheMemberWithFewerOperations(t *testing.T) {
	s, _ := setOf3()
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		synctest.Wait()
		busy, err := c.Select(t.Context(), topology.Want{Address: "b:1"})
		if err != nil {
			t.Fatal(err)
		}
		pc, err := busy.CheckOut(t.Context(), topology.Want{Address: "b:1"})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if got := selectAddr(t, c, topology.Want{ReadPref: readpref.Secondary()}); got != "c:1" {
				t.Fatal("the busy secondary was picked, though the other is idle")
			}
		}
		pc.CheckIn()
	})
}

func TestStreamedHelloTellsOfAFailoverAtOnce(t *testing.T) {
	s, list := setOf3()
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		time.Sleep(3 * time.Second)
		before := time.Now()
		list[0].become(func(m *member) {
			m.hello = setField(setField(m.hello, "isWritablePrimary", false), "secondary", true)
		})
		synctest.Wait()
		if c.Description().Kind != event.ReplicaSetNoPrimary {
			t.Fatalf("the step-down was not heard: %s", kinds(c))
		}
		time.AfterFunc(2*time.Second, func() {
			list[1].become(func(m *member) {
				m.hello = setField(setField(m.hello, "isWritablePrimary", true), "secondary", false)
			})
		})
		if got := selectAddr(t, c, topology.Want{Write: true}); got != "b:1" {
			t.Errorf("the write goes to %s", got)
		}
		if took := time.Since(before); took != 2*time.Second {
			t.Errorf("the new primary, elected after 2 s, was used after %v", took)
		}
	})
}

func TestPollingFindsAFailoverWhenAskedTo(t *testing.T) {
	s, list := setOf3()
	cfg := seeds("a:1")
	cfg.MonitoringMode = cluster.ModePoll
	inBubble(t, s, cfg, func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		time.Sleep(time.Minute)
		polls := list[2].count(func(m *member) int { return m.hellos })
		if polls < 6 || polls > 8 {
			t.Errorf("%d hellos in a minute of polling at 10 s", polls)
		}
		if n := list[2].count(func(m *member) int { return m.dials }); n != 1 {
			t.Errorf("%d connections to a polled member", n)
		}
		list[0].crash()
		time.Sleep(11 * time.Second)
		if c.Description().Kind != event.ReplicaSetNoPrimary {
			t.Fatalf("the crash was not noticed: %s", kinds(c))
		}
		list[1].become(func(m *member) {
			m.hello = setField(setField(m.hello, "isWritablePrimary", true), "secondary", false)
		})
		before := time.Now()
		if got := selectAddr(t, c, topology.Want{Write: true}); got != "b:1" {
			t.Errorf("the write goes to %s", got)
		}
		if took := time.Since(before); took > 600*time.Millisecond {
			t.Errorf("found after %v", took)
		}
	})
}

func TestMonitorRechecksOnceAfterANetworkErrorOfAKnownMember(t *testing.T) {
	s, list := setOf3()
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		time.Sleep(3 * time.Second)
		dials := list[1].count(func(m *member) int { return m.dials })
		list[1].crash()
		synctest.Wait()
		if got := list[1].count(func(m *member) int { return m.dials }); got != dials+1 {
			t.Errorf("%d dials right after the crash, want one", got-dials)
		}
		if !contains(kinds(c), "b:1 Unknown") {
			t.Errorf("after the crash: %s", kinds(c))
		}
		list[1].revive()
		time.Sleep(11 * time.Second)
		if !contains(kinds(c), "b:1 RSSecondary") {
			t.Errorf("after it returned: %s", kinds(c))
		}
	})
}

func TestHungMemberIsGivenUpAfterConnectTimeoutAndHeartbeat(t *testing.T) {
	s, list := setOf3()
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		synctest.Wait()
		list[1].mu.Lock()
		list[1].hung = true
		list[1].mu.Unlock()
		time.Sleep(19 * time.Second)
		if !contains(kinds(c), "b:1 RSSecondary") {
			t.Fatalf("given up too early: %s", kinds(c))
		}
		time.Sleep(2 * time.Second)
		if !contains(kinds(c), "b:1 Unknown") {
			t.Errorf("not given up: %s", kinds(c))
		}
	})
}

func TestRoundTripsAreMeasuredApartWhileStreaming(t *testing.T) {
	s, list := setOf3()
	list[1].delay = 40 * time.Millisecond
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		time.Sleep(25 * time.Second)
		b := c.Description().Server("b:1")
		if b.RTT != 40*time.Millisecond || b.MinRTT != 40*time.Millisecond {
			t.Errorf("RTT %v, least %v", b.RTT, b.MinRTT)
		}
		if got := selectAddr(t, c, topology.Want{ReadPref: readpref.Secondary()}); got != "c:1" {
			t.Errorf("a member 40 ms away serves, though one is near: %s", got)
		}
	})
}

func TestRemovedMemberStopsBeingMonitored(t *testing.T) {
	s, list := setOf3()
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		synctest.Wait()
		list[0].become(func(m *member) { m.hello = setField(m.hello, "hosts", []string{"a:1", "b:1"}) })
		synctest.Wait()
		if got := kinds(c); got != "a:1 RSPrimary, b:1 RSSecondary" {
			t.Errorf("members: %s", got)
		}
		if n := list[2].count(func(m *member) int { return len(m.socks) }); n != 0 {
			t.Errorf("%d connections to the removed member", n)
		}
		_, err := c.Select(t.Context(), topology.Want{Address: "c:1"})
		wantWords(t, err, "c:1 is not in the topology any more")
	})
}

func TestReportedErrorIsSeenWhenReportReturns(t *testing.T) {
	s, _ := setOf3()
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		srv, err := c.Select(t.Context(), topology.Want{Write: true})
		if err != nil {
			t.Fatal(err)
		}
		pc, err := srv.CheckOut(t.Context(), topology.Want{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := srv.CheckOut(t.Context(), topology.Want{})
		if err != nil {
			t.Fatal(err)
		}
		broke := &mongoerr.Error{Stage: mongoerr.StageRead, Cause: net.ErrClosed}
		srv.ReportError(broke, pc)
		if s := c.Description().Server("a:1"); s.Kind.Known() || !errors.Is(s.Err, net.ErrClosed) {
			t.Errorf("after the report the member is %v (%v)", s.Kind, s.Err)
		}
		_, err = srv.CheckOut(t.Context(), topology.Want{})
		if !mongoerr.IsPoolCleared(err) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("the pool was not cleared: %v", err)
		}
		selectAddr(t, c, topology.Want{Write: true}) // it recovers
		srv.ReportError(broke, second)               // of the old generation: says nothing
		if s := c.Description().Server("a:1"); !s.Kind.Known() {
			t.Error("an error of an old connection marked the member Unknown")
		}
		pc.CheckIn()
		second.CheckIn()
		if st := c.Topology(); len(st.Members) != 3 || st.Members[0].Pool.Generation != 1 {
			t.Errorf("topology %v, pool %+v", st, st.Members[0].Pool)
		}
	})
}

func TestSelectionTimesOutWithAVerdict(t *testing.T) {
	s, list := setOf3()
	list[0].refuse = errors.New("connection refused")
	cfg := seeds("b:1")
	cfg.ServerSelectionTimeout = 5 * time.Second
	inBubble(t, s, cfg, func(t *testing.T, c *cluster.Cluster) {
		start := time.Now()
		_, err := c.Select(t.Context(), topology.Want{Write: true})
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("gave up after %v", took)
		}
		if !mongoerr.IsSelection(err) || !mongoerr.IsTimeout(err) {
			t.Errorf("error %#v", err)
		}
		wantWords(t, err, "a write", "in set rs", "no primary", "refused", "waited 5 s")
		if strings.Count(err.Error(), "\n") != 3 || !contains(err.Error(), "b:1 RSSecondary") {
			t.Errorf("not a line for each member:\n%v", err)
		}
	})
}

func TestSelectionEndsWithItsContext(t *testing.T) {
	s, list := setOf3()
	list[0].refuse = errors.New("connection refused")
	inBubble(t, s, seeds("b:1"), func(t *testing.T, c *cluster.Cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.Select(ctx, topology.Want{Write: true})
		if !errors.Is(err, context.Canceled) || !mongoerr.IsSelection(err) || mongoerr.IsTimeout(err) {
			t.Errorf("error %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Select(ctx, topology.Want{Write: true})
		if !errors.Is(err, context.DeadlineExceeded) || !mongoerr.IsTimeout(err) {
			t.Errorf("error %v", err)
		}
	})
}

// TestSelectionFailsAtOnceWhereWaitingCannotHelp: nothing that may happen would let these selections succeed.
func TestSelectionFailsAtOnceWhereWaitingCannotHelp(t *testing.T) {
	old := standalone("old:1")
	old.hello = setField(old.hello, "maxWireVersion", 6)
	other := primary("a:1", "a:1")
	other.hello = setField(other.hello, "setName", "other")
	for name, tc := range map[string]struct {
		member *member
		cfg    cluster.Config
		want   topology.Want
		words  []string
	}{
		"wrong set":           {other, seeds("a:1"), topology.Want{}, []string{"a:1 belongs to set other, not rs"}},
		"standalone":          {standalone("alone:1"), seeds("alone:1"), topology.Want{}, []string{"alone:1 is a standalone server", "set rs"}},
		"no such name":        {standalone("x:1"), seeds("nowhere:1", "neither:1"), topology.Want{}, []string{"no such host"}},
		"direct, wrong set":   {primary("a:1", "a:1"), cluster.Config{Topology: topology.Config{Seeds: []string{"a:1"}, SetName: "mine", Direct: true}}, topology.Want{}, []string{"a:1 belongs to set rs", "mine"}},
		"too old":             {old, cluster.Config{Topology: topology.Config{Seeds: []string{"old:1"}}}, topology.Want{}, []string{"old:1", "wire version 6"}},
		"staleness too small": {primary("a:1", "a:1"), seeds("a:1"), topology.Want{ReadPref: readpref.Nearest(readpref.MaxStaleness(time.Second))}, []string{"max staleness"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, newScript(tc.member), tc.cfg, func(t *testing.T, c *cluster.Cluster) {
				start := time.Now()
				_, err := c.Select(t.Context(), tc.want)
				wantWords(t, err, tc.words...)
				if took := time.Since(start); took > time.Second {
					t.Errorf("failed only after %v", took)
				}
			})
		})
	}
}

func TestCloseFreesWhoeverWaitsAndLeavesNothingBehind(t *testing.T) {
	s, list := setOf3()
	list[0].refuse = errors.New("connection refused")
	inBubble(t, s, seeds("b:1"), func(t *testing.T, c *cluster.Cluster) {
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Select(t.Context(), topology.Want{Write: true}); !errors.Is(err, mongoerr.ErrClientClosed) {
				t.Errorf("error %v", err)
			}
		})
		time.Sleep(time.Second)
		start := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
		if _, err := c.Select(t.Context(), topology.Want{}); !errors.Is(err, mongoerr.ErrClientClosed) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		for _, m := range list {
			if n := m.count(func(m *member) int { return len(m.socks) }); n != 0 {
				t.Errorf("%d connections to %s are left", n, m.addr)
			}
		}
	})
}

func TestRefreshWaitsForFreshAnswers(t *testing.T) {
	for _, mode := range []string{cluster.ModePoll, cluster.ModeStream} {
		t.Run(mode, func(t *testing.T) {
			s, list := setOf3()
			cfg := seeds("a:1")
			cfg.MonitoringMode = mode
			inBubble(t, s, cfg, func(t *testing.T, c *cluster.Cluster) {
				selectAddr(t, c, topology.Want{Write: true})
				time.Sleep(3 * time.Second)
				hellos := list[1].count(func(m *member) int { return m.hellos })
				if err := c.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := list[1].count(func(m *member) int { return m.hellos }); got <= hellos {
					t.Error("nobody was asked")
				}
				list[2].crash()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if err := c.Refresh(ctx); err != nil {
					t.Errorf("a member that is down is an answer too: %v", err)
				}
				if !contains(kinds(c), "c:1 Unknown") {
					t.Errorf("after Refresh: %s", kinds(c))
				}
			})
		})
	}
}

func TestMemberThatStaysUnknownWhileStreamingIsCheckedAnew(t *testing.T) {
	s, _ := setOf3()
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		srv, err := c.Select(t.Context(), topology.Want{Write: true})
		if err != nil {
			t.Fatal(err)
		}
		pc, err := srv.CheckOut(t.Context(), topology.Want{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		srv.ReportError(mongoerr.Server(mongoerr.CodeNotWritablePrimary, "not primary"), pc) // tells no topologyVersion
		pc.CheckIn()
		start := time.Now()
		if got := selectAddr(t, c, topology.Want{Write: true}); got != "a:1" {
			t.Errorf("selected %s", got)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the member, which is well, was Unknown for %v", took)
		}
	})
}

func TestMemberWithoutPatienceIsNotAskedInAHotLoop(t *testing.T) {
	s, list := setOf3()
	list[1].streams = false // its topologyVersion is part of the fixed reply, and it answers at once
	list[1].hello = append(list[1].hello, bson.E{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: process}, {Key: "counter", Value: int64(-1)}}})
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		time.Sleep(20 * time.Second)
		if n := list[1].count(func(m *member) int { return m.hellos }); n > 30 {
			t.Errorf("%d hellos in 20 s", n)
		}
	})
}

func TestConnectionsThatBreakAfterOneReplyDoNotMakeAHotLoop(t *testing.T) {
	s, list := setOf3()
	list[1].once = true
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		time.Sleep(20 * time.Second)
		if n := list[1].count(func(m *member) int { return m.dials }); n > 60 {
			t.Errorf("%d connections in 20 s", n)
		}
	})
}

func TestEventsAreToldInOrderAndSurviveAPanic(t *testing.T) {
	s, list := setOf3()
	list[0].delay = 10 * time.Millisecond // so that the selection has to wait
	var mu sync.Mutex
	var got []string
	note := func(what string) {
		mu.Lock()
		got = append(got, what)
		mu.Unlock()
		panic("a callback that panics")
	}
	cfg := seeds("a:1")
	cfg.Monitor = &event.Monitor{
		TopologyChanged: func(e *event.TopologyEvent) { note(string(e.Type) + " " + e.Address) },
		Heartbeat:       func(e *event.HeartbeatEvent) { note(fmt.Sprintf("%s %s %v", e.Type, e.Address, e.Awaited)) },
		Pool:            func(e *event.PoolEvent) { note(string(e.Type) + " " + e.Address) },
		Selection:       func(e *event.SelectionEvent) { note(string(e.Type) + " " + e.Server) },
	}
	inBubble(t, s, cfg, func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		list[0].become(func(*member) {})
		time.Sleep(time.Second)
		c.Close(t.Context())
		at := func(what string) int {
			i := slices.Index(got, what)
			if i < 0 {
				t.Errorf("no event %q in %v", what, got)
			}
			return i
		}
		order := []string{"ServerSelectionStarted ", "ServerSelectionWaiting ", "ServerSelectionSucceeded a:1"}
		order2 := []string{"TopologyOpening ", "ServerOpening a:1", "ServerHeartbeatStarted a:1 false", "ServerHeartbeatSucceeded a:1 false",
			"ServerOpening b:1", "ConnectionPoolCreated a:1", "ConnectionPoolReady a:1", "ServerHeartbeatSucceeded a:1 true", "ConnectionPoolClosed a:1", "ServerClosed a:1", "TopologyClosed "}
		for _, list := range [][]string{order, order2[:4], order2[6:]} {
			for i := 1; i < len(list); i++ {
				if at(list[i-1]) > at(list[i]) {
					t.Errorf("%q came after %q: %v", list[i-1], list[i], got)
				}
			}
		}
		if c.Dropped() != 0 {
			t.Errorf("%d events dropped", c.Dropped())
		}
	})
}

func TestArbiterGetsNoPool(t *testing.T) {
	s, list := setOf3()
	list[2].hello = setField(setField(list[2].hello, "secondary", false), "arbiterOnly", true)
	cfg := seeds("a:1")
	cfg.MinPoolSize = 2
	inBubble(t, s, cfg, func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		time.Sleep(5 * time.Second)
		top := c.Topology()
		arbiter, _ := top.Member("c:1")
		data, _ := top.Member("b:1")
		if arbiter.Kind != event.RSArbiter || arbiter.Pool.Total != 0 || data.Pool.Total != 2 {
			t.Errorf("the arbiter has %+v, a secondary %+v", arbiter.Pool, data.Pool)
		}
	})
}

func TestFailedLoginIsToldAtOnceWithItsCause(t *testing.T) {
	s, _ := setOf3()
	cfg := seeds("a:1")
	cfg.Conn.Credential = &conn.Credential{Username: "joe", Password: "secret"}
	inBubble(t, s, cfg, func(t *testing.T, c *cluster.Cluster) {
		start := time.Now()
		srv, err := c.Select(t.Context(), topology.Want{Write: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = srv.CheckOut(t.Context(), topology.Want{}) // the script does not know saslStart: its answer is nonsense
		if !mongoerr.IsAuth(err) {
			t.Fatalf("error %v", err)
		}
		if contains(err.Error(), "secret") {
			t.Errorf("the error tells the password: %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("told after %v", took)
		}
		if !contains(kinds(c), "a:1 Unknown") {
			t.Errorf("after a failed login: %s", kinds(c))
		}
	})
}

// TestWhoWaitsAtASupersededPrimaryLeaves, unless it wants this very member, or anybody.
func TestWhoWaitsAtASupersededPrimaryLeaves(t *testing.T) {
	for name, k := range map[string]struct {
		want   topology.Want
		leaves bool
	}{
		"a write":                 {topology.Want{Write: true}, true},
		"a read from the primary": {topology.Want{}, true},
		"a read from anybody":     {topology.Want{ReadPref: readpref.Nearest()}, false},
		"a cursor":                {topology.Want{Address: "a:1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, list := setOf3()
			cfg := seeds("a:1")
			cfg.MaxPoolSize = new(1)
			inBubble(t, s, cfg, func(t *testing.T, c *cluster.Cluster) {
				srv, err := c.Select(t.Context(), topology.Want{Write: true})
				if err != nil {
					t.Fatal(err)
				}
				only, err := srv.CheckOut(t.Context(), topology.Want{Write: true})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start, got := time.Now(), make(chan error)
				go func() {
					_, err := srv.CheckOut(ctx, k.want)
					got <- err
				}()
				time.AfterFunc(time.Second, func() {
					list[0].become(func(m *member) { m.hello = setField(setField(m.hello, "isWritablePrimary", false), "secondary", true) })
				})
				time.AfterFunc(3*time.Second, func() {
					list[1].become(func(m *member) { m.hello = setField(setField(m.hello, "isWritablePrimary", true), "secondary", false) })
				})
				err = <-got
				took := time.Since(start)
				if k.leaves && (took != 3*time.Second || !mongoerr.IsPoolCleared(err)) {
					t.Errorf("left after %v: %v", took, err)
				}
				if !k.leaves && (took != time.Minute || !errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("did not wait: %v after %v", err, took)
				}
				only.CheckIn()
			})
		})
	}
}

// TestSilenceIsNoticedByTheHeartbeatTimeout: a slow member is not silent, and one that hangs is known in time.
func TestSilenceIsNoticedByTheHeartbeatTimeout(t *testing.T) {
	s, list := setOf3()
	list[1].delay = 2400 * time.Millisecond
	cfg := seeds("a:1")
	cfg.HeartbeatTimeout = 5 * time.Second
	inBubble(t, s, cfg, func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		time.Sleep(40 * time.Second)
		if got := kinds(c); !contains(got, "b:1 RSSecondary") {
			t.Fatalf("a slow member was given up: %s", got)
		}
		list[1].mu.Lock()
		list[1].hung = true
		list[1].mu.Unlock()
		time.Sleep(7500 * time.Millisecond)
		synctest.Wait()
		b := c.Description().Server("b:1")
		if b.Kind.Known() || !mongoerr.IsTimeout(b.Err) || !contains(b.Err.Error(), "no sign of life for 5 s") {
			t.Errorf("after 7.5 s: %v, %v", b.Kind, b.Err)
		}
		if got := kinds(c); !contains(got, "a:1 RSPrimary") || !contains(got, "c:1 RSSecondary") {
			t.Errorf("the others: %s", got)
		}
		time.Sleep(time.Minute)
	})
}

// TestRememberedCandidatesFollowTheTopology: what is remembered of tags is as good as the view, and a want is known by
// what it says.
func TestRememberedCandidatesFollowTheTopology(t *testing.T) {
	s, list := setOf3()
	tagged := func(m *member, dc string) { m.hello = setField(m.hello, "tags", bson.D{{Key: "dc", Value: dc}}) }
	tagged(list[1], "east")
	tagged(list[2], "west")
	inBubble(t, s, seeds("a:1"), func(t *testing.T, c *cluster.Cluster) {
		selectAddr(t, c, topology.Want{Write: true})
		synctest.Wait()
		in := func(dc string, opts ...readpref.Option) topology.Want {
			return topology.Want{ReadPref: readpref.Nearest(append(opts, readpref.Tags("dc", dc))...)}
		}
		for range 3 {
			for dc, want := range map[string]string{"east": "b:1", "west": "c:1"} {
				if got := selectAddr(t, c, in(dc)); got != want {
					t.Errorf("%s is served by %s", dc, got)
				}
				if got := selectAddr(t, c, in(dc, readpref.MaxStaleness(2*time.Minute))); got != want {
					t.Errorf("%s, fresh, is served by %s", dc, got)
				}
			}
		}
		list[1].become(func(m *member) { tagged(m, "west") })
		list[2].become(func(m *member) { tagged(m, "east") })
		synctest.Wait()
		if got := selectAddr(t, c, in("east")); got != "c:1" {
			t.Errorf("after the tags changed places, east is served by %s", got)
		}
		for i := range 40 { // more than are remembered
			if got := selectAddr(t, c, topology.Want{ReadPref: readpref.Secondary(readpref.Tags("x", fmt.Sprint(i)), readpref.Tags("dc", "east"))}); got != "c:1" {
				t.Fatalf("want %d is served by %s", i, got)
			}
		}
		near := topology.Want{ReadPref: readpref.Nearest(), LocalThreshold: new(time.Hour)}
		seen := map[string]int{}
		for range 90 {
			seen[selectAddr(t, c, near)]++
		}
		if len(seen) != 3 {
			t.Errorf("a wide window reaches %v", seen)
		}
	})
}
