package topology

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// count counts effects of one type.
func countEffects[E Effect](effects []Effect) int {
	n := 0
	for _, e := range effects {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

func TestApplyLeavesTheOldDescriptionAlone(t *testing.T) {
	before := threeMembers(t)
	view := before.View().String()
	after, _ := before.Apply(CheckFailed{Addr: "a:1", Err: refused("a:1")}, epoch)
	if before.View().String() != view || addrs(before.Candidates(Want{}, epoch)) != "a:1" {
		t.Errorf("the old description became %v", before.View())
	}
	if after.Kind != event.ReplicaSetNoPrimary || len(after.Candidates(Want{}, epoch)) != 0 {
		t.Errorf("the new description is %v", after.View())
	}
}

func TestEventsOfStrangersChangeNothing(t *testing.T) {
	d := threeMembers(t)
	s, err := ParseHello("z:1", reply('p'), time.Millisecond, epoch)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range []Event{HelloReply{Server: s}, CheckFailed{Addr: "z:1", Err: io.EOF}, AppError{Addr: "z:1", Err: io.EOF},
		RTTSample{Addr: "z:1", RTT: 1}, SRVHosts{Hosts: []string{"z:1"}}} {
		if next, effects := d.Apply(ev, epoch); next != d || len(effects) != 0 {
			t.Errorf("%T: %v, effects %v", ev, next.View(), effects)
		}
	}
}

func TestHostsOfDNSComeInWhileThereIsRoom(t *testing.T) {
	for _, k := range []struct {
		hosts string
		most  int
		want  string
	}{
		{"b:1 c:1 d:1", 0, "b:1 c:1 d:1"}, {"D:1 c:1 b:1", 2, "b:1 d:1"}, {"c:1 d:1 e:1", 2, "c:1 d:1"}, {"c:1", 2, "c:1"},
		{"a:1 b:1 c:1", 1, "a:1 b:1"}, // who is listed stays, whatever the limit
		{"", 0, "a:1 b:1"}, {"b:1 b:1 B:1", 0, "b:1"},
	} {
		d := New(Config{Seeds: []string{"a:1", "b:1"}, SRV: true}, epoch)
		kept := d.Server("b:1")
		d, effects := d.Apply(SRVHosts{Hosts: strings.Fields(k.hosts), Max: k.most}, epoch)
		var got []string
		for _, s := range d.Servers {
			got = append(got, s.Addr)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != k.want {
			t.Errorf("%s, at most %d: %q, want %s", k.hosts, k.most, got, k.want)
		}
		if s := d.Server("b:1"); s != nil && s != kept {
			t.Errorf("%s: what stays was begun anew", k.hosts)
		}
		if n := countEffects[StartMonitor](effects) - countEffects[StopMonitor](effects); n != len(got)-2 {
			t.Errorf("%s: effects %v", k.hosts, effects)
		}
	}
}

func TestStreamedRepliesKeepTheAverageOfTheSamples(t *testing.T) {
	d := threeMembers(t)
	d, _ = hear(t, d, "b:1", reply('s'), -1)
	if got := d.Server("b:1"); got.RTT != 5*time.Millisecond || got.MinRTT != 0 {
		t.Errorf("after a streamed reply: %v, least %v", got.RTT, got.MinRTT)
	}
	d, _ = d.Apply(RTTSample{Addr: "b:1", RTT: 10 * time.Millisecond}, epoch)
	if got := d.Server("b:1"); got.RTT != 6*time.Millisecond || got.MinRTT != 5*time.Millisecond {
		t.Errorf("after a sample of 10 ms: %v, least %v", got.RTT, got.MinRTT)
	}
	stepDown := AppError{Addr: "b:1", Err: mongoerr.Server(mongoerr.CodeNotPrimaryOrSecondary, "recovering"), MaxWire: 25}
	d, _ = d.Apply(stepDown, epoch)
	if got := d.Server("b:1"); got.RTT != 0 || got.Kind != event.Unknown {
		t.Errorf("Unknown, but with %v", got.RTT)
	}
	d, _ = hear(t, d, "b:1", reply('s'), -1)
	if got := d.Server("b:1"); got.RTT != 6*time.Millisecond {
		t.Errorf("a streamed reply revived it with %v", got.RTT)
	}
	d, _ = d.Apply(CheckFailed{Addr: "b:1", Err: io.EOF}, epoch)
	d, _ = hear(t, d, "b:1", reply('s'), 40*time.Millisecond)
	if got := d.Server("b:1"); got.RTT != 40*time.Millisecond {
		t.Errorf("a new connection did not start the average anew: %v", got.RTT)
	}
}

func TestLeastRoundTripIsOfTheLastTen(t *testing.T) {
	var r rttSamples
	for i := range 12 {
		r = r.with(time.Duration(i+1) * time.Millisecond)
	}
	if r.least() != 3*time.Millisecond {
		t.Errorf("got %v", r.least())
	}
}

func TestTimeoutOfAReadyConnectionKeepsTheServer(t *testing.T) {
	d := threeMembers(t)
	slow := AppError{Addr: "a:1", Err: mongoerr.Wrap(mongoerr.StageRead, os.ErrDeadlineExceeded, "no reply"), MaxWire: 25}
	if next, effects := d.Apply(slow, epoch); next != d || len(effects) != 0 {
		t.Errorf("%v, effects %v", next.View(), effects)
	}
}

func TestOverloadWhileConnectingKeepsServerAndPool(t *testing.T) {
	d := threeMembers(t)
	next, effects := d.Apply(AppError{Addr: "a:1", Err: refused("a:1"), BeforeHandshake: true}, epoch)
	if next.Server("a:1").Kind != event.RSPrimary || len(effects) != 0 {
		t.Errorf("%v, effects %v", next.View(), effects)
	}
	if m, _ := next.View().Member("a:1"); m.LastError == nil || m.LastErrorStage != "dial" {
		t.Errorf("the failure is not shown: %v, stage %q", m.LastError, m.LastErrorStage)
	}
	s, err := ParseHello("a:1", reply('p'), time.Millisecond, epoch)
	if err != nil {
		t.Fatal(err)
	}
	next, _ = next.Apply(HelloReply{Server: s, FromPool: true}, epoch)
	if m, _ := next.View().Member("a:1"); m.LastError != nil {
		t.Errorf("the failure outlived a good connection: %v", m.LastError)
	}
}

func TestShutdownErrorsClearThePoolAndOthersDoNot(t *testing.T) {
	for code, clears := range map[int32]int{
		mongoerr.CodeInterruptedAtShutdown: 1, mongoerr.CodeShutdownInProgress: 1, mongoerr.CodeNotWritablePrimary: 0,
		mongoerr.CodePrimarySteppedDown: 0, mongoerr.CodeInterruptedDueToReplStateChange: 0,
	} {
		next, effects := threeMembers(t).Apply(AppError{Addr: "a:1", Err: mongoerr.Server(code, "x"), MaxWire: 25}, epoch)
		if next.Server("a:1").Kind != event.Unknown || countEffects[ClearPool](effects) != clears || countEffects[RequestCheck](effects) != 1 {
			t.Errorf("%d: %v, effects %v", code, next.View(), effects)
		}
	}
	_, effects := threeMembers(t).Apply(AppError{Addr: "a:1", Err: mongoerr.Server(mongoerr.CodeNotWritablePrimary, "x"), MaxWire: 7}, epoch)
	if countEffects[ClearPool](effects) != 1 {
		t.Errorf("a 4.0 server closed its connections, but the pool stays: %v", effects)
	}
}

func TestLoadBalancerIsNeverMarkedUnknown(t *testing.T) {
	d := New(Config{Seeds: []string{"lb:1"}, LoadBalanced: true}, epoch)
	if n := countEffects[StartMonitor](d.Open()); n != 1 {
		t.Errorf("%d servers were opened", n)
	}
	service := bson.ObjectID{1}
	lost := mongoerr.Wrap(mongoerr.StageRead, io.EOF, "no reply")
	next, effects := d.Apply(AppError{Addr: "lb:1", Err: lost, ServiceID: &service}, epoch)
	if next.Server("lb:1").Kind != event.LoadBalancer || countEffects[ClearPool](effects) != 1 {
		t.Errorf("%v, effects %v", next.View(), effects)
	}
	if c := effects[0].(ClearPool); c.ServiceID == nil || *c.ServiceID != service {
		t.Errorf("cleared %v", c)
	}
	if _, effects := d.Apply(AppError{Addr: "lb:1", Err: lost}, epoch); countEffects[ClearPool](effects) != 0 {
		t.Errorf("cleared connections to every service: %v", effects)
	}
	if got := addrs(d.Candidates(Want{Write: true}, epoch)); got != "lb:1" {
		t.Errorf("a write goes to %q", got)
	}
}

func TestInvalidWantsAreNamedAndHopeless(t *testing.T) {
	d := threeMembers(t)
	w := Want{ReadPref: readpref.Secondary(readpref.MaxStaleness(89 * time.Second))}
	if err := d.Invalid(w); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "89 s is below 90 s") {
		t.Errorf("got %v", err)
	}
	if !d.Hopeless(w) || d.Hopeless(Want{}) {
		t.Error("hopeless is told wrongly")
	}
	if err := d.Invalid(Want{Write: true, ReadPref: w.ReadPref}); err != nil {
		t.Errorf("a write has no staleness: %v", err)
	}
	lost := New(Config{Seeds: []string{"a:1"}, SetName: "other"}, epoch)
	lost, _ = hear(t, lost, "a:1", reply('p'), time.Millisecond)
	if !lost.Hopeless(Want{}) {
		t.Errorf("nothing is left of %v, but there is hope", lost.View())
	}
	if got := lost.Explain(Want{}, epoch).Sentence; !strings.Contains(got, "a:1 belongs to set rs0, not other") {
		t.Error(got)
	}
}

func TestOldServerIsNamedWithWhatIsNeeded(t *testing.T) {
	old := bson.AppendInt32(bson.AppendDouble([]byte{0, 0, 0, 0}, "ok", 1), "maxWireVersion", 6)
	d := New(Config{Seeds: []string{"a:1"}, Direct: true}, epoch)
	d, _ = hear(t, d, "a:1", bson.EndDocument(old, 0), time.Millisecond)
	want := "server at a:1 reports wire version 6, but this version of sextant requires at least 7 (MongoDB 4.0)"
	if d.CompatErr == nil || !strings.Contains(d.CompatErr.Error(), want) {
		t.Errorf("got %v", d.CompatErr)
	}
	if v := d.Explain(Want{}, epoch); !strings.HasSuffix(v.Sentence, want) || len(v.Eligible()) != 0 {
		t.Errorf("got %s", v)
	}
}

func TestPickPrefersTheLessLoadedOfTwo(t *testing.T) {
	d := threeMembers(t)
	c := d.Candidates(Want{ReadPref: readpref.Nearest()}, epoch)
	loads := []int{5, 1}
	for first := range 2 {
		rnd := func(n int) int { return map[int]int{2: first, 1: 0}[n] }
		if got := Pick(c, func(i int) int { return loads[i] }, rnd); got != c[1] {
			t.Errorf("picked %s", got.Addr)
		}
	}
	if Pick(nil, nil, nil) != nil {
		t.Error("picked one of none")
	}
}

func TestLatencyWindowIsInclusive(t *testing.T) {
	d := threeMembers(t)
	d, _ = d.Apply(CheckFailed{Addr: "c:1", Err: io.EOF}, epoch)
	d, _ = hear(t, d, "c:1", reply('s'), 17*time.Millisecond)
	if got := addrs(d.Candidates(Want{ReadPref: readpref.Nearest()}, epoch)); got != "a:1 b:1 c:1" {
		t.Errorf("17 ms is 2 ms + 15 ms, got %q", got)
	}
	if got := addrs(d.Candidates(Want{ReadPref: readpref.Nearest(), LocalThreshold: new(time.Duration)}, epoch)); got != "a:1" {
		t.Errorf("without a window, got %q", got)
	}
}

// Broken by a window that begins at the nearest of all members, of which some may not serve.
func TestLatencyWindowBeginsAtTheNearestThatMayServe(t *testing.T) {
	d := threeMembers(t) // the primary is 2 ms away
	for addr, rtt := range map[string]time.Duration{"b:1": 18, "c:1": 30} {
		d, _ = d.Apply(CheckFailed{Addr: addr, Err: io.EOF}, epoch)
		d, _ = hear(t, d, addr, reply('s', "dc", addr), rtt*time.Millisecond)
	}
	for want, p := range map[string]*readpref.ReadPref{
		"b:1 c:1": readpref.Secondary(), "b:1 c:1 ": readpref.SecondaryPreferred(), "c:1": readpref.Nearest(readpref.Tags("dc", "c:1")), "a:1": readpref.Nearest(),
	} {
		if got := addrs(d.Candidates(Want{ReadPref: p}, epoch)); got != strings.TrimSpace(want) {
			t.Errorf("%v: got %q, want %q", p, got, want)
		}
	}
}

func TestOutAndMergeStayOnThePrimaryOfOldSets(t *testing.T) {
	d := threeMembers(t)
	w := Want{ReadPref: readpref.Secondary(), OutMerge: true}
	if got := addrs(d.Candidates(w, epoch)); got != "b:1" {
		t.Errorf("all members are new, got %q", got)
	}
	s := *d.Server("c:1")
	s.MaxWire = 12
	d, _ = d.Apply(HelloReply{Server: &s}, epoch)
	if got := addrs(d.Candidates(w, epoch)); got != "a:1" {
		t.Errorf("one member is older than 5.0, got %q", got)
	}
}

// The file system knows a path by its case, DNS knows a name in any.
func TestAddressesAreInLowerCaseAndPathsAsTheyAre(t *testing.T) {
	now := time.Now()
	d := New(Config{Seeds: []string{"DB1:27017", "db1:27017", "/tmp/A.sock", "/tmp/a.sock", "/tmp/B.SOCK"}}, now)
	var got []string
	for _, s := range d.Servers {
		got = append(got, s.Addr)
	}
	if want := []string{"db1:27017", "/tmp/A.sock", "/tmp/a.sock", "/tmp/B.SOCK"}; !slices.Equal(got, want) {
		t.Errorf("the seeds are %q, want %q", got, want)
	}
	hello, err := bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "setName", Value: "rs"}, {Key: "me", Value: "/tmp/A.sock"}, {Key: "primary", Value: "DB1:1"},
		{Key: "hosts", Value: bson.A{"/tmp/A.sock", "DB1:1"}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseHello("/tmp/A.sock", hello, 0, now)
	if err != nil {
		t.Fatal(err)
	}
	if s.Me != "/tmp/A.sock" || s.Primary != "db1:1" || !slices.Equal(s.Hosts, []string{"/tmp/A.sock", "db1:1"}) {
		t.Errorf("me %s, primary %s, hosts %q", s.Me, s.Primary, s.Hosts)
	}
}

func TestParseHelloRefusesFailuresAndGarbage(t *testing.T) {
	notOK := bson.EndDocument(bson.AppendDouble([]byte{0, 0, 0, 0}, "ok", 0), 0)
	for name, r := range map[string]bson.Raw{"ok 0": notOK, "empty": {}, "cut off": reply('p')[:20], "no ok": {5, 0, 0, 0, 0}} {
		if s, err := ParseHello("a:1", r, 0, epoch); err == nil || s != nil || !strings.Contains(err.Error(), "a:1") {
			t.Errorf("%s: got %v, %v", name, s, err)
		}
	}
}
