package sextant_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// Broken by clearing the pool, or making the member Unknown, when a connection fails before its hello is answered: an
// overloaded server that turns connections away would then lose those that it has let in.
func TestProseSDAM15PoolBackpressure(t *testing.T) {
	for _, secure := range []bool{false, true} {
		name := "without TLS"
		if secure {
			name = "with TLS"
		}
		t.Run(name, func(t *testing.T) {
			gate := &gate{rate: 20, burst: 20}
			inBubble(t, func(o *replset.Options, c *sextant.Config) {
				primaryFirst(o)
				gate.dial = c.Dial
				if secure {
					gate.server, c.TLSConfig = selfSigned(t, "127.0.0.1")
				}
				c.Dial, c.MaxConnecting = gate.open, 100
			}, func(t *testing.T, b *bubble) {
				if err := b.insert(t); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Block: 2 * time.Second})
				gate.shut(true)
				from := time.Now()
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() { _, _ = b.orders().FindOne(t.Context(), bson.D{}) })
				}
				wg.Wait()
				addr := b.set.Member(0).Addr()
				failed, cleared := b.log.pools(event.CheckOutFailed, addr, from), b.log.pools(event.PoolCleared, addr, from)
				if len(failed) < 10 || len(cleared) > 0 {
					t.Errorf("%d check-outs failed, the pool was cleared %d times", len(failed), len(cleared))
				}
				for _, e := range failed {
					if !mongoerr.HasLabel(e.E.Err, mongoerr.LabelSystemOverloaded) || !mongoerr.HasLabel(e.E.Err, mongoerr.LabelRetryable) {
						t.Fatalf("not labelled: %v", e.E.Err)
					}
				}
				if m := b.member(0); m.Kind != event.RSPrimary {
					t.Errorf("the member is %v: %v", m.Kind, m.LastError)
				}
				gate.shut(false)
				b.fail(t, 0, replset.FailCommand{Commands: []string{"none"}})
			})
		})
	}
}

// gate is a server's limit of the connections that are let in a second (ingressConnectionEstablishmentRateLimiter): it
// hangs up on those that are too many before it has read anything.
type gate struct {
	dial        dialFunc
	server      *tls.Config // nil: no TLS
	rate, burst float64

	mu     sync.Mutex // guards all below
	closed bool       // to more than the rate
	tokens float64
	last   time.Time
}

func (g *gate) shut(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.tokens, g.last = on, g.burst, time.Now()
}

func (g *gate) admits() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		return true
	}
	g.tokens = min(g.burst, g.tokens+g.rate*time.Since(g.last).Seconds())
	g.last = time.Now()
	if g.tokens < 1 {
		return false
	}
	g.tokens--
	return true
}

func (g *gate) open(ctx context.Context, network, addr string) (net.Conn, error) {
	if !g.admits() {
		near, far := net.Pipe()
		far.Close()
		return near, nil
	}
	nc, err := g.dial(ctx, network, addr)
	if err != nil || g.server == nil {
		return nc, err
	}
	near, far, err := connected()
	if err != nil {
		return nil, err
	}
	outside := tls.Server(far, g.server)
	go pump(outside, nc)
	go pump(nc, outside)
	return near, nil
}

// pump carries bytes one way until one end closes, and then closes both.
func pump(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// selfSigned makes a server's certificate, and what a client needs to trust it.
func selfSigned(t *testing.T, host string) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, IPAddresses: []net.IP{net.ParseIP(host)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: trusted}
}
