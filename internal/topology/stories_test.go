package topology

import (
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/readpref"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// reply is a hello of a member of set rs0 with the hosts a:1, b:1, c:1; what in is 'p' for a primary, 's' for a
// secondary, 'a' for an arbiter, 'h' for a hidden member.
func reply(role byte, tags ...string) bson.Raw {
	dst, doc := bson.BeginDocument(nil)
	dst = bson.AppendDouble(dst, "ok", 1)
	dst = bson.AppendString(dst, "setName", "rs0")
	dst = bson.AppendBoolean(dst, "isWritablePrimary", role == 'p')
	dst = bson.AppendBoolean(dst, "secondary", role == 's')
	dst = bson.AppendBoolean(dst, "arbiterOnly", role == 'a')
	dst = bson.AppendBoolean(dst, "hidden", role == 'h')
	dst, hosts := bson.BeginArrayElement(dst, "hosts")
	for i, h := range []string{"a:1", "b:1", "c:1"} {
		dst = bson.AppendString(dst, string(rune('0'+i)), h)
	}
	dst = bson.EndDocument(dst, hosts)
	dst, t := bson.BeginDocumentElement(dst, "tags")
	for i := 0; i+1 < len(tags); i += 2 {
		dst = bson.AppendString(dst, tags[i], tags[i+1])
	}
	dst = bson.EndDocument(dst, t)
	dst = bson.AppendInt32(dst, "minWireVersion", 0)
	dst = bson.AppendInt32(dst, "maxWireVersion", 25)
	return bson.EndDocument(dst, doc)
}

// hear applies a hello of addr that took rtt.
func hear(t *testing.T, d *Description, addr string, r bson.Raw, rtt time.Duration) (*Description, []Effect) {
	t.Helper()
	s, err := ParseHello(addr, r, rtt, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return d.Apply(HelloReply{Server: s}, epoch)
}

// threeMembers is the worked example: 2, 5 and 150 ms away, tagged by data centre.
func threeMembers(t *testing.T) *Description {
	t.Helper()
	d := New(Config{Seeds: []string{"a:1"}, SetName: "rs0"}, epoch)
	d, _ = hear(t, d, "a:1", reply('p', "dc", "east"), 2*time.Millisecond)
	d, _ = hear(t, d, "b:1", reply('s', "dc", "east"), 5*time.Millisecond)
	d, _ = hear(t, d, "c:1", reply('s', "dc", "west"), 150*time.Millisecond)
	if d.Kind != event.ReplicaSetWithPrimary || len(d.Servers) != 3 {
		t.Fatalf("got %v", d.View())
	}
	return d
}

func addrs(servers []*Server) string {
	var out []string
	for _, s := range servers {
		out = append(out, s.Addr)
	}
	return strings.Join(out, " ")
}

func TestEachModeOfTheWorkedExampleReachesItsMembers(t *testing.T) {
	d := threeMembers(t)
	for want, p := range map[string]*readpref.ReadPref{
		"a:1": nil, "a:1 ": readpref.PrimaryPreferred(), "b:1": readpref.Secondary(), "b:1 ": readpref.SecondaryPreferred(),
		"a:1 b:1": readpref.Nearest(), "c:1": readpref.Nearest(readpref.Tags("dc", "west")),
		"": readpref.Secondary(readpref.Tags("dc", "north")),
	} {
		if got := addrs(d.Candidates(Want{ReadPref: p}, epoch)); got != strings.TrimSpace(want) {
			t.Errorf("%v: got %q, want %q", p, got, want)
		}
	}
	if got := addrs(d.Candidates(Want{Write: true, ReadPref: readpref.Nearest()}, epoch)); got != "a:1" {
		t.Errorf("a write goes to %q", got)
	}
}

func TestCandidatesOfPlainWantsAllocateNothing(t *testing.T) {
	d := threeMembers(t)
	w := Want{ReadPref: readpref.Nearest()}
	if n := testing.AllocsPerRun(100, func() {
		if len(d.Candidates(w, epoch)) != 2 {
			t.Fatal("wrong candidates")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
