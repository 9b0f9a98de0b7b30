package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

func TestOpenGreetsWithLegacyHelloByOpMsg(t *testing.T) {
	var hello bson.Raw
	c := open(t, played(t, func(p *peer) {
		m := p.read()
		hello = m.Body.Clone()
		p.answer(m, helloReply)
		p.hold()
	}))
	var keys []string
	for key := range hello.All() {
		keys = append(keys, key)
	}
	if got := strings.Join(keys, " "); got != "isMaster helloOk client compression backpressure $db" {
		t.Errorf("keys of hello: %s", got)
	}
	if name, _ := hello.Lookup("client", "application", "name").StringValueOK(); name != "test" {
		t.Errorf("application name %q in %s", name, hello)
	}
	if v, _ := hello.Lookup("backpressure").StringValueOK(); v != "2" {
		t.Errorf("backpressure %q", v)
	}
	maxBSON, maxMessage, maxBatch, maxWire := c.Limits()
	if maxBSON != 16777216 || maxMessage != 48000000 || maxBatch != 100000 || maxWire != 25 || c.ServerConnectionID() != 42 {
		t.Errorf("limits %d %d %d %d, connection %d", maxBSON, maxMessage, maxBatch, maxWire, c.ServerConnectionID())
	}
	if !c.Alive() || c.Broken() || c.ID() == 0 || c.Address() != "db1:27017" {
		t.Errorf("alive %v, broken %v, id %d, address %s", c.Alive(), c.Broken(), c.ID(), c.Address())
	}
}

func TestOpenBehindALoadBalancerGreetsWithHello(t *testing.T) {
	var hello bson.Raw
	var greeted []bson.ObjectID
	id := bson.ObjectID{7}
	o := played(t, func(p *peer) {
		m := p.read()
		hello = m.Body.Clone()
		p.answer(m, doc("ok", 1.0, "maxWireVersion", 21, "serviceId", id))
		p.hold()
	})
	o.LoadBalanced, o.Greeted = true, func(service bson.ObjectID) { greeted = append(greeted, service) }
	c := open(t, o)
	if s := c.Service(); s == nil || *s != id || len(greeted) != 1 || greeted[0] != id {
		t.Errorf("the service %v, told %v", s, greeted)
	}
	if v, _ := hello.Lookup("loadBalanced").BooleanOK(); !v || hello.Lookup("hello").IsZero() || !hello.Lookup("isMaster").IsZero() {
		t.Errorf("%s", hello)
	}
}

// The text is the specification's (load balancers, "connection establishment"). It is no failure of the network: trying again
// does not help.
func TestOpenRefusesAServerThatNamesNoServiceBehindALoadBalancer(t *testing.T) {
	o := played(t, func(p *peer) { p.answer(p.read(), helloReply); p.hold() })
	o.LoadBalanced, o.Greeted = true, func(bson.ObjectID) { t.Error("a service was told") }
	_, err := Open(t.Context(), "db1:27017", o)
	const want = "Driver attempted to initialize in load balancing mode, but the server does not support this mode."
	e, _ := errors.AsType[*mongoerr.Error](err)
	if e == nil || e.Stage != mongoerr.StageHandshake || e.Message != want || mongoerr.IsNetwork(err) || mongoerr.IsRetryableRead(err) {
		t.Errorf("got %v", err)
	}
	if c := open(t, played(t, func(p *peer) {
		p.answer(p.read(), doc("ok", 1.0, "serviceId", bson.ObjectID{7}))
		p.hold()
	})); c.Service() != nil {
		t.Error("a service, though this is no load balancer")
	}
}

func TestMissingLimitsHaveDefaults(t *testing.T) {
	c := open(t, played(t, func(p *peer) { p.answer(p.read(), doc("ok", 1.0, "maxBsonObjectSize", -5)); p.hold() }))
	if b, m, n, w := c.Limits(); b != 16<<20 || m != wire.MaxMessage || n != 100000 || w != 0 {
		t.Errorf("%d %d %d %d", b, m, n, w)
	}
}

// refusal is what Open must say about a server that plays the script.
type refusal struct {
	name     string
	script   func(p *peer)
	stage    mongoerr.Stage
	words    string
	overload bool
}

func TestOpenSaysWhatIsWrongWithTheServer(t *testing.T) {
	cases := []refusal{
		{"hangs up at once", func(*peer) {}, mongoerr.StageHandshake, "it may want TLS", true},
		{"hangs up on hello", func(p *peer) { p.read() }, mongoerr.StageHandshake, "closed the connection during the handshake", true},
		{"speaks HTTP", func(p *peer) { p.read(); p.write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, mongoerr.StageHandshake, "an HTTP answer", false},
		{"speaks TLS", func(p *peer) { p.read(); p.write([]byte{0x15, 3, 3, 0, 2, 2, 40}) }, mongoerr.StageHandshake, "it wants TLS (tls=true)", false},
		{"half a reply", func(p *peer) { p.answerHalf() }, mongoerr.StageHandshake, "in the middle of a reply", true},
		{"oversize", func(p *peer) {
			p.read()
			p.write(wire.AppendHeader(nil, wire.Header{Length: 1 << 30, OpCode: wire.OpMsg}))
		}, mongoerr.StageHandshake, "over the limit", false},
		{"negative size", func(p *peer) { p.read(); p.write(wire.AppendHeader(nil, wire.Header{Length: -1, OpCode: wire.OpMsg})) }, mongoerr.StageHandshake, "under the 16 bytes", false},
		{"OP_REPLY", func(p *peer) { m := p.read(); p.write(wire.AppendReply(nil, 1, m.RequestID, 0, 0, 0, helloReply)) }, mongoerr.StageHandshake, "expected OP_MSG, got OP_REPLY", false},
		{"compressed", func(p *peer) {
			p.read()
			p.write(wire.AppendHeader(nil, wire.Header{Length: 16, OpCode: wire.OpCompressed}))
		}, mongoerr.StageHandshake, "OP_COMPRESSED", false},
		{"answers another request", func(p *peer) { m := p.read(); p.write(message(1, m.RequestID+1, 0, helloReply)) }, mongoerr.StageHandshake, "the reply answers request", false},
		{"streams unasked", func(p *peer) { m := p.read(); p.write(message(1, m.RequestID, wire.MoreToCome, helloReply)) }, mongoerr.StageHandshake, "moreToCome", false},
		{"malformed hello", func(p *peer) { p.answer(p.read(), bson.Raw{7, 0, 0, 0, 0x10, 'x', 0}) }, mongoerr.StageHandshake, "malformed", false},
		{"refuses hello", func(p *peer) {
			p.answer(p.read(), doc("ok", 0.0, "errmsg", "go away", "code", 91, "codeName", "ShutdownInProgress"))
		}, mongoerr.StageHandshake, "go away (ShutdownInProgress 91)", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.check(t, played(t, c.script)) })
	}
}

func (r refusal) check(t *testing.T, o *Options) {
	t.Helper()
	c, err := Open(t.Context(), "db1:27017", o)
	if err == nil {
		c.Close()
		t.Fatal("Open succeeded")
	}
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	if e.Stage != r.stage || e.Server != "db1:27017" || !strings.Contains(e.Error(), r.words) {
		t.Errorf("stage %s, server %s, %v; want stage %s and %q", e.Stage, e.Server, e, r.stage, r.words)
	}
	overload := e.HasLabel(mongoerr.LabelSystemOverloaded) && e.HasLabel(mongoerr.LabelRetryable)
	if overload != r.overload {
		t.Errorf("labels %v, want overload: %v", e.Labels, r.overload)
	}
	if !e.BeforeHandshake() {
		t.Errorf("%v does not count as before the handshake", e)
	}
}

func (p *peer) answerHalf() {
	m := p.read()
	b := message(1, m.RequestID, 0, helloReply)
	p.write(b[:len(b)/2])
}

func TestOpenSaysWhyItCannotDial(t *testing.T) {
	for _, c := range []struct {
		err      error
		words    string
		overload bool
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, "nothing accepts connections there", true},
		{&net.DNSError{Err: "no such host", Name: "db1", IsNotFound: true}, `no such host "db1"`, false},
		{&net.DNSError{Err: "server misbehaving", Name: "db1"}, "cannot be resolved", false},
		{errors.New("proxy on fire"), "cannot connect: proxy on fire", true},
	} {
		r := refusal{stage: mongoerr.StageDial, words: c.words, overload: c.overload}
		r.check(t, &Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, c.err }})
	}
	for _, none := range []net.Conn{nil, (*net.TCPConn)(nil), (*net.UnixConn)(nil), (*tls.Conn)(nil), (*guarded)(nil)} {
		refusal{stage: mongoerr.StageDial, words: "neither a connection nor an error", overload: true}.
			check(t, &Options{Dial: func(context.Context, string, string) (net.Conn, error) { return none, nil }})
	}
}

func TestConnectTimeoutBoundsASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := played(t, func(p *peer) { p.read(); p.hold() })
		o.ConnectTimeout = 10 * time.Second
		start := time.Now()
		_, err := Open(t.Context(), "db1:27017", o)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		e, _ := errors.AsType[*mongoerr.Error](err)
		if e == nil || e.Stage != mongoerr.StageHandshake || !mongoerr.IsTimeout(err) || !mongoerr.IsNetwork(err) ||
			!strings.Contains(e.Error(), "connectTimeoutMS of 10s ran out") || !e.HasLabel(mongoerr.LabelSystemOverloaded) {
			t.Errorf("%v, %+v", err, e)
		}
	})
}

func TestConnectTimeoutBoundsADialThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Options{ConnectTimeout: time.Second, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		_, err := Open(t.Context(), "db1:27017", o)
		if !mongoerr.IsTimeout(err) || !strings.Contains(err.Error(), "connectTimeoutMS of 1s ran out") {
			t.Errorf("%v", err)
		}
	})
}

func TestCancelledOpenReturnsAtOnceAndBlamesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := played(t, func(p *peer) { p.read(); p.hold() })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		_, err := Open(ctx, "db1:27017", o)
		e, _ := errors.AsType[*mongoerr.Error](err)
		if !errors.Is(err, context.Canceled) || mongoerr.IsNetwork(err) || mongoerr.IsTimeout(err) || len(e.Labels) != 0 {
			t.Errorf("%v, labels %v", err, e.Labels)
		}
	})
}

func TestASlowServerIsUnderstoodByteByByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		open(t, played(t, func(p *peer) {
			m := p.read()
			for _, b := range message(9, m.RequestID, 0, helloReply) {
				time.Sleep(time.Millisecond)
				p.write([]byte{b})
			}
			p.hold()
		}))
		if time.Since(start) < 100*time.Millisecond {
			t.Error("the reply did not come slowly")
		}
	})
}

func TestUnixSocketsAreDialledAsSuch(t *testing.T) {
	var network string
	_, err := Open(t.Context(), "/tmp/mongodb-27017.sock", &Options{Dial: func(_ context.Context, n, _ string) (net.Conn, error) {
		network = n
		return nil, errors.New("not here")
	}})
	if network != "unix" || err == nil {
		t.Errorf("network %q, %v", network, err)
	}
}
