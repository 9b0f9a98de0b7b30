package conn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
)

// certificate makes a self-signed one for the host, valid until end.
func certificate(t *testing.T, host string, end time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: end.Add(-48 * time.Hour), NotAfter: end, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// secured are options that lead to a TLS server with the certificate. A pipe has no buffer, so that a hang-up of the
// client could block the server's goodbye: the server just closes.
func secured(t *testing.T, cert tls.Certificate, cfg *tls.Config) *Options {
	o := played(t, func(p *peer) {
		s := tls.Server(p.nc, &tls.Config{Certificates: []tls.Certificate{cert}})
		if s.Handshake() != nil {
			return
		}
		q := &peer{p.t, s}
		q.greet()
		q.hold()
	})
	o.TLS = cfg
	return o
}

func TestTLSVerifiesTheHostOfTheAddress(t *testing.T) {
	cert, pool := certificate(t, "db1", time.Now().Add(time.Hour))
	c := open(t, secured(t, cert, &tls.Config{RootCAs: pool}))
	if name := c.nc.(*tls.Conn).ConnectionState().ServerName; name != "db1" {
		t.Errorf("server name %q", name)
	}
	if !c.Alive() {
		t.Error("a fresh connection is dead")
	}
	cert, pool = certificate(t, "other", time.Now().Add(time.Hour))
	refusal{stage: mongoerr.StageTLS, words: "certificate is for other, not for db1"}.check(t, secured(t, cert, &tls.Config{RootCAs: pool}))
	open(t, secured(t, cert, &tls.Config{RootCAs: pool, ServerName: "other"}))
}

func TestTLSSaysWhyItFailed(t *testing.T) {
	cert, _ := certificate(t, "db1", time.Now().Add(time.Hour))
	refusal{stage: mongoerr.StageTLS, words: "an authority that this client does not trust"}.
		check(t, secured(t, cert, &tls.Config{RootCAs: x509.NewCertPool()}))
	expired, pool := certificate(t, "db1", time.Now().Add(-time.Hour))
	refusal{stage: mongoerr.StageTLS, words: "certificate has expired on "}.
		check(t, secured(t, expired, &tls.Config{RootCAs: pool}))

	plain := played(t, func(p *peer) {
		b := make([]byte, 4096)
		p.nc.Read(b)
		p.write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	})
	plain.TLS = &tls.Config{}
	refusal{stage: mongoerr.StageTLS, words: "did not answer in TLS (its bytes are an HTTP answer): is it a port without TLS?"}.check(t, plain)

	mute := played(t, func(p *peer) { p.nc.Read(make([]byte, 4096)) })
	mute.TLS = &tls.Config{}
	refusal{stage: mongoerr.StageTLS, words: "closed the connection during the TLS handshake", overload: true}.check(t, mute)

	silent := played(t, func(p *peer) { p.hold() })
	silent.TLS, silent.ConnectTimeout = &tls.Config{}, 20*time.Millisecond
	refusal{stage: mongoerr.StageTLS, words: "which the server did not finish (is it a port without TLS?): the connectTimeoutMS of 20ms ran out", overload: true}.check(t, silent)
}

func TestServerThatWantsAClientCertificateIsNotOverloaded(t *testing.T) {
	cert, pool := certificate(t, "db1", time.Now().Add(time.Hour))
	// Not over a pipe: both sides write at once, and a pipe has no buffer.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		s := tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert})
		if s.Handshake() == nil {
			t.Error("the server was content without a certificate")
		}
		(&peer{t, nc}).hold() // a reset must not overtake the alert
	}()
	defer func() { l.Close(); <-served }()
	o := &Options{ConnectTimeout: 10 * time.Second, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, l.Addr().String())
	}}
	o.TLS = &tls.Config{RootCAs: pool}
	refusal{stage: mongoerr.StageTLS, words: "wants a client certificate: give one with tlsCertificateKeyFile"}.check(t, o)
}

func TestTLSServerNameIsTheHostAlone(t *testing.T) {
	for addr, want := range map[string]string{"db1:27017": "db1", "[::1]:27017": "::1", "db1": "db1"} {
		if got := tlsConfig(&tls.Config{}, addr).ServerName; got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}

func TestDialGetsTheAddressAsGiven(t *testing.T) {
	var got string
	_, _ = Open(t.Context(), "[::1]:27017", &Options{Dial: func(_ context.Context, network, addr string) (net.Conn, error) {
		got = network + " " + addr
		return nil, context.Canceled
	}})
	if got != "tcp [::1]:27017" {
		t.Errorf("%s", got)
	}
}
