package doctor

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/replset"
)

// listen serves each connection of a real socket with f until the test ends, and gives the address.
func listen(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	return l.Addr().String()
}

// hangUp reads what comes first and closes.
func hangUp(c net.Conn) {
	b := make([]byte, 1<<12)
	_, _ = c.Read(b)
}

// silence reads and never answers.
func silence(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// says reads what comes first, and answers these bytes.
func says(bytes string) func(net.Conn) {
	return func(c net.Conn) {
		hangUp(c)
		_, _ = io.WriteString(c, bytes)
		_, _ = io.Copy(io.Discard, c)
	}
}

// closedPort is an address where nothing listens: that of a dead member, whose port nobody else gets.
func closedPort(t *testing.T) string {
	t.Helper()
	set := replset.Run(t, replset.Options{Members: 1})
	if err := set.Kill(0); err != nil {
		t.Fatal(err)
	}
	return set.Member(0).Addr()
}

// fakes are servers on real sockets whose hello says what the test wants; it is told the addresses of all.
func fakes(t *testing.T, hellos ...func(addrs []string) bson.D) []string {
	t.Helper()
	addrs := make([]string, len(hellos))
	ready := make(chan struct{})
	for i, hello := range hellos {
		addrs[i] = listen(t, func(c net.Conn) {
			<-ready
			greet(c, func() bson.D { return hello(addrs) })
		})
	}
	close(ready)
	return addrs
}

// greet answers each hello with this one, and all else with ok.
func greet(c net.Conn, hello func() bson.D) {
	for {
		msg, err := message(c)
		if err != nil {
			return
		}
		doc := bson.D{{Key: "ok", Value: 1}}
		for name := range msg.Body.All() {
			if name == "isMaster" || name == "hello" {
				doc = append(hello(), doc...)
			}
			break
		}
		reply(c, msg.RequestID, doc)
	}
}

func message(c net.Conn) (wire.Msg, error) {
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c, head); err != nil {
		return wire.Msg{}, err
	}
	h, err := wire.CheckHeader(head, wire.MaxMessage)
	if err != nil {
		return wire.Msg{}, err
	}
	whole := append(head, make([]byte, h.Length-wire.HeaderLen)...)
	if _, err := io.ReadFull(c, whole[wire.HeaderLen:]); err != nil {
		return wire.Msg{}, err
	}
	return wire.ParseMsg(whole)
}

func reply(c net.Conn, to int32, doc bson.D) {
	raw, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	msg, start := wire.AppendMsgStart(nil, 1, to, 0)
	_, _ = c.Write(wire.EndMsg(append(msg, raw...), start))
}

// member is the hello of a member of a set, with more fields at its end.
func member(set string, primary bool, me func([]string) string, hosts func([]string) []string, more ...bson.E) func([]string) bson.D {
	return func(addrs []string) bson.D {
		return append(bson.D{
			{Key: "isWritablePrimary", Value: primary}, {Key: "secondary", Value: !primary}, {Key: "setName", Value: set},
			{Key: "hosts", Value: hosts(addrs)}, {Key: "me", Value: me(addrs)}, {Key: "helloOk", Value: true},
			{Key: "localTime", Value: time.Now()}, {Key: "setVersion", Value: 1}, {Key: "electionId", Value: bson.ObjectID{1}},
			{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "logicalSessionTimeoutMinutes", Value: 30},
		}, more...)
	}
}

func plain(more ...bson.E) func([]string) bson.D {
	return func([]string) bson.D {
		return append(bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true}, {Key: "minWireVersion", Value: 0},
			{Key: "maxWireVersion", Value: 21}, {Key: "localTime", Value: time.Now()}}, more...)
	}
}

// replace changes fields of a hello.
func replace(hello func([]string) bson.D, fields ...bson.E) func([]string) bson.D {
	return func(addrs []string) bson.D {
		d := hello(addrs)
		for _, f := range fields {
			for i := range d {
				if d[i].Key == f.Key {
					d[i].Value = f.Value
				}
			}
		}
		return d
	}
}

func nth(i int) func([]string) string { return func(a []string) string { return a[i] } }
func all(a []string) []string         { return a }
func named(s string) func([]string) string {
	return func([]string) string { return s }
}
func these(s ...string) func([]string) []string { return func([]string) []string { return s } }

// zone is a DNS of the test's.
type zone struct {
	hosts map[string]string // name -> address
	srv   map[string][]*net.SRV
	txt   map[string][]string
	hang  bool
}

func (z zone) LookupHost(ctx context.Context, host string) ([]string, error) {
	if z.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if a, ok := z.hosts[host]; ok {
		return []string{a}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (z zone) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	record := "_" + service + "._" + proto + "." + name
	if s, ok := z.srv[record]; ok {
		return record, s, nil
	}
	return "", nil, &net.DNSError{Err: "no such host", Name: record, IsNotFound: true}
}

func (z zone) LookupTXT(ctx context.Context, name string) ([]string, error) {
	if s, ok := z.txt[name]; ok {
		return s, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// look examines with a time limit of 10 s, so that a tenth of it is enough on a busy machine, and a DNS that knows localhost and more.
func look(t *testing.T, uri string, more zone, open dialFunc) *Diagnosis {
	t.Helper()
	if more.hosts == nil {
		more.hosts = map[string]string{}
	}
	more.hosts["localhost"] = "127.0.0.1"
	if open == nil {
		open = new(net.Dialer).DialContext
	}
	d := Examine(t.Context(), uri, 10*time.Second, &World{Resolver: more, Open: open})
	for _, f := range d.Findings {
		if f.Cause == "" || f.Cure == "" || f.Stage == "" {
			t.Errorf("a finding lacks something: %+v", f)
		}
	}
	return d
}

// expect looks for a finding of a stage and a server whose cause and cure hold these words.
func (d *Diagnosis) expect(t *testing.T, v Verdict, stage, server, cause, cure string) {
	t.Helper()
	if d.Verdict != v {
		t.Errorf("verdict %s, want %s", d.Verdict, v)
	}
	for _, f := range d.Findings {
		if f.Stage == stage && f.Server == server && strings.Contains(f.Cause, cause) && strings.Contains(f.Cure, cure) {
			return
		}
	}
	t.Errorf("no finding of stage %q about %q with %q and %q among\n%v", stage, server, cause, cure, d.Findings)
}
