package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// probe is one server as this host sees it.
type probe struct {
	addr   string
	by     string // "the URI", "the set" or "both"
	seed   bool
	ips    []string
	tap    tap
	member event.Member
	failed *mongoerr.Error // why there is no hello
	dnsErr error
	proxy  error               // after a failure to connect through a proxy: why, as far as the proxy says
	chain  []*x509.Certificate // what the server has shown within TLS

	version   string
	lag       time.Duration
	lagKnown  bool
	skew      time.Duration // the server's clock minus this host's
	skewKnown bool

	secure   bool   // TLS was spoken, or tried
	otherWay *probe // after a failure: the same server with TLS where the URI has none, or the other way round
	bare     *probe // after a failure for want of a load balancer: what answers without one
	web      bool   // after a failure: an HTTP server answers
}

func (p *probe) answered() bool { return p.member.Kind.Known() }

// tap watches what happens on the sockets to one server.
type tap struct {
	mu    sync.Mutex // guards what follows
	took  time.Duration
	first []byte // what the server said first
}

func (t *tap) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first
}

// tapped is a socket that is listened to.
type tapped struct {
	net.Conn
	t *tap
}

func (c tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	const enough = 64
	if n > 0 && len(c.t.first) < enough {
		c.t.first = append(c.t.first, b[:min(n, enough-len(c.t.first))]...)
	}
	return n, err
}

// probeAll asks each server who it is, all at once.
func (x *examination) probeAll(ctx context.Context, probes []*probe) {
	addrs := make([]string, len(probes))
	for i, p := range probes {
		addrs[i] = p.addr
	}
	if x.cfg.ProxyHost == "" { // else the proxy resolves
		x.names.resolve(ctx, x.timeout/8, addrs)
	}
	var wg sync.WaitGroup
	for _, p := range probes {
		a := x.names.of(p.addr)
		if p.dnsErr = a.err; a.err != nil {
			continue
		}
		if !literal(hostOf(p.addr)) && !isSocket(p.addr) {
			p.ips = a.ips
		}
		wg.Go(func() { x.ask(ctx, p) })
	}
	wg.Wait()
}

// ask gets a hello out of a server. If the connection string's way does not work, the other one, with or without TLS,
// may tell why.
func (x *examination) ask(ctx context.Context, p *probe) {
	p.secure = x.cfg.TLS || x.cfg.TLSConfig != nil
	x.greet(ctx, p, x.direct(p, x.timeout/5), x.timeout/5)
	if p.failed != nil && noService(p.failed) {
		p.bare = &probe{addr: p.addr}
		cfg := x.direct(p.bare, x.timeout/10)
		cfg.LoadBalanced, cfg.DirectConnection = nil, true
		x.greet(ctx, p.bare, cfg, x.timeout/10)
		return
	}
	switch {
	case p.failed == nil && p.secure:
		x.readCertificates(ctx, p)
	case p.failed != nil && p.failed.Stage == mongoerr.StageProxy:
		p.proxy = x.whyNoWay(ctx, p.addr)
	}
	if p.failed == nil || p.failed.Stage != mongoerr.StageTLS && p.failed.Stage != mongoerr.StageHandshake {
		return
	}
	p.otherWay = &probe{addr: p.addr, secure: !p.secure}
	cfg := x.direct(p.otherWay, x.timeout/10)
	withoutTLS(cfg)
	if p.otherWay.secure {
		cfg.TLS, cfg.TLSInsecure = true, true // it is only asked whether TLS is spoken
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.web = x.browse(ctx, p) })
	x.greet(ctx, p.otherWay, cfg, x.timeout/10)
	wg.Wait()
}

// browse says whether the server speaks HTTP. It is asked only of servers that do not answer hello, for MongoDB itself
// answers browsers, with a remark.
func (x *examination) browse(ctx context.Context, p *probe) bool {
	if isSocket(p.addr) {
		return false
	}
	ctx, cancel := within(ctx, x.timeout/10)
	defer cancel()
	c, err := x.connect(ctx, p.addr)
	if err != nil {
		return false
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return false
	}
	said := make([]byte, len("HTTP/"))
	_, err = io.ReadFull(c, said)
	return err == nil && isHTTP(said)
}

// direct is the configuration of a client that talks to this server only, and to whose name nobody logs in.
func (x *examination) direct(p *probe, limit time.Duration) *sextant.Config {
	cfg := *x.cfg
	cfg.Hosts, cfg.DirectConnection, cfg.ReplicaSet = []string{p.addr}, !x.balanced(), ""
	cfg.Username, cfg.Password, cfg.AuthMechanism, cfg.AuthMechanismProperties, cfg.AuthSource = "", "", "", nil, ""
	cfg.Compressors = nil
	cfg.ServerMonitoringMode, cfg.MinPoolSize, cfg.ServerSelectionTimeout = "poll", 0, limit
	if cfg.ConnectTimeout == nil || *cfg.ConnectTimeout <= 0 || *cfg.ConnectTimeout > limit {
		cfg.ConnectTimeout = &limit
	}
	cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		start := time.Now()
		c, err := x.names.dial(ctx, x.open, network, addr)
		if err != nil {
			return nil, err
		}
		p.tap.mu.Lock()
		p.tap.took = max(time.Since(start), 1)
		p.tap.mu.Unlock()
		return tapped{c, &p.tap}, nil
	}
	return &cfg
}

func withoutTLS(c *sextant.Config) {
	c.TLS, c.TLSConfig, c.TLSCAFile, c.TLSCertificateKeyFile, c.TLSCertificateKeyFilePassword = false, nil, "", "", ""
	c.TLSInsecure, c.TLSAllowInvalidCertificates, c.TLSAllowInvalidHostnames = false, false, false
	c.TLSDisableOCSPEndpointCheck, c.TLSDisableCertificateRevocationCheck = false, false
}

// greet fills in what the server says of itself, or why it says nothing.
func (x *examination) greet(ctx context.Context, p *probe, cfg *sextant.Config, limit time.Duration) {
	ctx, cancel := within(ctx, limit+x.timeout/20) // a little more, so that the connection's own limit speaks first
	defer cancel()
	client, err := sextant.ConnectConfig(ctx, cfg)
	if err != nil {
		p.fail(err)
		return
	}
	defer leave(client)
	if cfg.LoadBalanced != nil && *cfg.LoadBalanced { // nobody watches a load balancer: a connection has to be made
		_, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
		if e := asError(err); err != nil && (e == nil || e.Stage != mongoerr.StageServer) {
			p.fail(err)
			return
		}
	}
	err = client.Refresh(ctx)
	if members := client.Hosts().Members; len(members) == 1 {
		p.member = members[0]
	}
	if !p.answered() {
		if p.member.LastError != nil {
			err = p.member.LastError
		}
		p.fail(err)
		return
	}
	p.readClock()
	p.version = x.versionOf(ctx, client, p.member.MaxWire)
}

func (p *probe) fail(err error) {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok {
		e = mongoerr.Wrap(mongoerr.StageHandshake, err, "the server did not answer")
	}
	if e.Stage == mongoerr.StageSelection {
		e = mongoerr.Wrap(mongoerr.StageHandshake, e, "the server did not answer in time")
	}
	p.failed = e
}

// readClock compares the time in the hello with that of this host at half of the round trip.
func (p *probe) readClock() {
	if theirs, ok := p.member.Hello.Lookup("localTime").TimeOK(); ok {
		p.skew = theirs.Sub(p.member.LastUpdate.Add(-p.member.RTT / 2))
		p.skewKnown = true
	}
}

// releases are the versions by the wire version that they speak.
var releases = map[int32]string{6: "3.6", 7: "4.0", 8: "4.2", 9: "4.4", 13: "5.0", 17: "6.0", 21: "7.0", 25: "8.0"}

// versionOf is what the server calls itself, or if it will not tell a stranger, the release by its wire version.
func (x *examination) versionOf(ctx context.Context, client *sextant.Client, wire int32) string {
	reply, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}})
	if err == nil {
		if v, ok := reply.Lookup("version").StringValueOK(); ok {
			return v
		}
	}
	if v, ok := releases[wire]; ok {
		return v
	}
	return "-"
}

// leave closes a client without waiting for servers that do not answer.
func leave(client *sextant.Client) {
	ctx, cancel := within(context.Background(), 200*time.Millisecond)
	defer cancel()
	_ = client.Close(ctx)
}
