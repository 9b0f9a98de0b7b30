package topology

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

var update = flag.Bool("update", false, "write the golden files anew")

// story plays events one after the other and writes down what comes of them.
type story struct {
	t    *testing.T
	d    *Description
	text strings.Builder
}

func begin(t *testing.T, cfg Config) *story {
	s := &story{t: t, d: New(cfg, epoch)}
	s.note("open", s.d.Open())
	return s
}

func (s *story) note(what string, effects []Effect) {
	fmt.Fprintf(&s.text, "%s\n", what)
	for _, e := range effects {
		fmt.Fprintf(&s.text, "    %s\n", effectText(e))
	}
	fmt.Fprintf(&s.text, "  = %s\n", s.d.View())
}

func effectText(e Effect) string {
	switch e := e.(type) {
	case Publish:
		switch e.Event.Type {
		case event.MemberUpdated:
			return fmt.Sprintf("publish %s %s -> %s", e.Event.Type, e.Event.MemberBefore, e.Event.MemberAfter)
		case event.TopologyUpdated:
			return fmt.Sprintf("publish %s %s -> %s", e.Event.Type, e.Event.Before.Kind, e.Event.After.Kind)
		}
		return strings.TrimSpace(fmt.Sprintf("publish %s %s", e.Event.Type, e.Event.Address))
	case ClearPool:
		return fmt.Sprintf("clear pool %s, interrupt %v: %v", e.Addr, e.Interrupt, e.Err)
	case StartMonitor:
		return "start monitor " + e.Addr
	case StopMonitor:
		return "stop monitor " + e.Addr
	case ReadyPool:
		return "ready pool " + e.Addr
	case RequestCheck:
		return "request check " + e.Addr
	case CancelCheck:
		return "cancel check " + e.Addr
	}
	return fmt.Sprintf("%T", e)
}

func (s *story) apply(what string, ev Event) {
	s.t.Helper()
	var effects []Effect
	s.d, effects = s.d.Apply(ev, epoch)
	s.note(what, effects)
}

// hello lets a member answer after rtt.
func (s *story) hello(addr string, r bson.Raw, rtt time.Duration) {
	s.t.Helper()
	server, err := ParseHello(addr, r, rtt, epoch)
	if err != nil {
		s.t.Fatal(err)
	}
	s.apply("hello from "+addr+": "+server.Kind.String(), HelloReply{Server: server})
}

// explain writes the verdict three seconds later.
func (s *story) explain(w Want) {
	fmt.Fprintf(&s.text, "? %s\n", strings.ReplaceAll(s.d.Explain(w, epoch.Add(3*time.Second)).String(), "\n", "\n  "))
}

// check compares with the transcript of the story.
func (s *story) check(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got := s.text.String()
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if got != string(want) {
		s.t.Errorf("%s differs; run with -update and look at the difference. Got\n%s", path, got)
	}
}

// elected is the hello of a primary with an election id that ends in n.
func elected(n byte) bson.Raw {
	r := reply('p')
	dst := append([]byte(nil), r[:len(r)-1]...)
	dst = bson.AppendObjectID(dst, "electionId", bson.ObjectID{11: n})
	dst = bson.AppendInt32(dst, "setVersion", 1)
	return bson.EndDocument(dst, 0)
}

func refused(addr string) error {
	cause := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	e := mongoerr.Wrap(mongoerr.StageDial, cause, "can not connect")
	e.Server = addr
	return e
}

func TestStoryOfDiscoveryFromOneSeed(t *testing.T) {
	s := begin(t, Config{Seeds: []string{"B:1"}, SetName: "rs0"})
	s.explain(Want{})
	s.hello("b:1", reply('s'), 5*time.Millisecond)
	s.explain(Want{ReadPref: readpref.SecondaryPreferred()})
	s.hello("a:1", reply('p'), 2*time.Millisecond)
	s.hello("c:1", reply('s'), 150*time.Millisecond)
	s.hello("c:1", reply('s'), 100*time.Millisecond)
	s.explain(Want{ReadPref: readpref.Nearest()})
	s.check("discovery")
}

func TestStoryOfAFailover(t *testing.T) {
	s := begin(t, Config{Seeds: []string{"a:1", "b:1", "c:1"}, SetName: "rs0"})
	s.hello("a:1", elected(1), 2*time.Millisecond)
	s.hello("b:1", reply('s'), 5*time.Millisecond)
	s.hello("c:1", reply('s'), 5*time.Millisecond)
	s.apply("a write on a:1 meets a primary that steps down", AppError{Addr: "a:1", Err: mongoerr.Server(mongoerr.CodePrimarySteppedDown, "stepping down"), MaxWire: 25})
	s.explain(Want{Write: true})
	s.hello("b:1", elected(2), 5*time.Millisecond)
	s.hello("a:1", elected(1), 2*time.Millisecond)
	s.hello("a:1", reply('s'), 2*time.Millisecond)
	s.explain(Want{Write: true})
	s.apply("the connection of a read to b:1 breaks", AppError{Addr: "b:1", Err: mongoerr.Wrap(mongoerr.StageRead, io.EOF, "no reply"), MaxWire: 25})
	s.apply("a late error of the same kind", AppError{Addr: "b:1", Err: mongoerr.Wrap(mongoerr.StageRead, io.EOF, "no reply"), CurrentGeneration: 1, MaxWire: 25})
	s.apply("the monitor of b:1 waits in vain", CheckFailed{Addr: "b:1", Err: mongoerr.Wrap(mongoerr.StageRead, context.DeadlineExceeded, "no answer to hello"), Timeout: true})
	s.explain(Want{Write: true})
	s.check("failover")
}

func TestStoryOfWrongSeeds(t *testing.T) {
	s := begin(t, Config{Seeds: []string{"a:1", "s:1", "nowhere:1"}, SetName: "rs7"})
	s.hello("a:1", reply('p'), time.Millisecond)
	standalone := bson.AppendInt32(bson.AppendDouble([]byte{0, 0, 0, 0}, "ok", 1), "maxWireVersion", 25)
	s.hello("s:1", bson.EndDocument(standalone, 0), time.Millisecond)
	s.apply("nowhere:1 has no address", CheckFailed{Addr: "nowhere:1", Err: mongoerr.Wrap(mongoerr.StageDial, &net.DNSError{Err: "no such host", Name: "nowhere"}, "can not resolve")})
	s.explain(Want{Write: true})
	s.check("wrong-seeds")
}

func TestStoryOfAFailedLogin(t *testing.T) {
	s := begin(t, Config{Seeds: []string{"a:1", "b:1", "c:1"}, SetName: "rs0"})
	s.hello("a:1", reply('p'), time.Millisecond)
	s.hello("b:1", reply('h'), time.Millisecond)
	s.apply("a pool of a:1 can not log in", AppError{Addr: "a:1", BeforeHandshake: true,
		Err: mongoerr.Wrap(mongoerr.StageAuth, mongoerr.Server(mongoerr.CodeAuthenticationFailed, "Authentication failed."), "login refused")})
	s.explain(Want{})
	s.apply("a dial of a pool of b:1 is refused: no change", AppError{Addr: "b:1", BeforeHandshake: true, Err: refused("b:1")})
	s.apply("the monitor of c:1 is refused", CheckFailed{Addr: "c:1", Err: refused("c:1")})
	s.explain(Want{ReadPref: readpref.Secondary(readpref.Tags("dc", "north"))})
	s.check("failed-login")
}

func TestStoryOfAShardedClusterFromDNS(t *testing.T) {
	mongos := bson.AppendString(bson.AppendDouble([]byte{0, 0, 0, 0}, "ok", 1), "msg", "isdbgrid")
	mongos = bson.EndDocument(bson.AppendInt32(mongos, "maxWireVersion", 25), 0)
	s := begin(t, Config{Seeds: []string{"a:1", "b:1"}, SRV: true})
	s.hello("a:1", mongos, 3*time.Millisecond)
	s.hello("b:1", reply('s'), time.Millisecond)
	s.apply("DNS names a:1 and c:1", SRVHosts{Hosts: []string{"A:1", "c:1"}})
	s.hello("c:1", mongos, 30*time.Millisecond)
	s.explain(Want{ReadPref: readpref.Secondary(readpref.Tags("dc", "east"))})
	var effects []Effect
	s.d, effects = s.d.Shutdown()
	s.note("shutdown", effects)
	s.check("sharded")
}
