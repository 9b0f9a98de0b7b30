package sextant_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"golang.org/x/crypto/ocsp"
)

// issuer is an authority that knows which certificates it has revoked: all or none.
type issuer struct {
	key      crypto.Signer
	cert     *x509.Certificate
	delegate *x509.Certificate // who signs the responses in its place; nil: itself
	signer   crypto.Signer     // of responses
	edit     func(*ocsp.Response)
	url      string
	asked    atomic.Int32
	revoked  atomic.Bool
	serial   int64
}

func newKey(t *testing.T, kind string) crypto.Signer {
	t.Helper()
	if kind == "RSA" {
		return must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	}
	return must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

// newIssuer makes an authority whose keys are RSA or ECDSA, and its responder, which delegate has sign by another key.
func newIssuer(t *testing.T, kind string, delegate bool) *issuer {
	t.Helper()
	i := &issuer{key: newKey(t, kind)}
	i.cert = i.issue(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}, i.key.Public())
	i.signer = i.key
	if delegate {
		i.signer = newKey(t, kind)
		i.delegate = i.issue(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning}}, i.signer.Public())
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		req, err := ocsp.ParseRequest(body)
		if err != nil || r.Header.Get("Content-Type") != "application/ocsp-request" {
			http.Error(w, "no request of OCSP", 400)
			return
		}
		w.Write(i.response(t, req.SerialNumber))
	}))
	t.Cleanup(srv.Close)
	i.url = srv.URL
	return i
}

func (i *issuer) issue(t *testing.T, c *x509.Certificate, public crypto.PublicKey) *x509.Certificate {
	t.Helper()
	i.serial++
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(i.serial), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	c.Subject = pkix.Name{CommonName: "certificate " + c.SerialNumber.String()}
	parent := i.cert
	if parent == nil {
		parent = c
	}
	return must[*x509.Certificate](t)(x509.ParseCertificate(must[[]byte](t)(x509.CreateCertificate(rand.Reader, c, parent, public, i.key))))
}

func (i *issuer) response(t *testing.T, serial *big.Int) []byte {
	now := time.Now()
	r := ocsp.Response{Status: ocsp.Good, SerialNumber: serial, ThisUpdate: now.Add(-time.Minute), NextUpdate: now.Add(time.Hour), IssuerHash: crypto.SHA1}
	if i.revoked.Load() {
		r.Status, r.RevokedAt = ocsp.Revoked, now.Add(-time.Minute)
	}
	responder := i.cert
	if i.delegate != nil {
		r.Certificate, responder = i.delegate, i.delegate
	}
	if i.edit != nil {
		i.edit(&r)
	}
	der, err := ocsp.CreateResponse(i.cert, responder, r, i.signer)
	if err != nil {
		t.Error(err)
	}
	return der
}

// server is what a server shows: a certificate that names the responder, with the status if it staples.
func (i *issuer) server(t *testing.T, kind string, mustStaple, staples bool) *tls.Config {
	t.Helper()
	key := newKey(t, kind)
	c := &x509.Certificate{DNSNames: []string{"db.example"}, OCSPServer: []string{i.url}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if mustStaple {
		c.ExtraExtensions = []pkix.Extension{{Id: []int{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, 5}}}
	}
	cert := i.issue(t, c, key.Public())
	shown := tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
	if staples {
		shown.OCSPStaple = i.response(t, cert.SerialNumber)
	}
	// A pipe holds nothing: tickets, which nobody reads before the first reply, would block it.
	return &tls.Config{Certificates: []tls.Certificate{shown}, SessionTicketsDisabled: true}
}

func (i *issuer) caFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// secured pings a server behind TLS with the options of a string, and says how it went.
func secured(t *testing.T, server *tls.Config, options string, edits ...func(*sextant.Config)) error {
	t.Helper()
	r := &routers{}
	cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb://db.example/?serverMonitoringMode=poll&" + options))
	cfg.FailFast, cfg.Dial = true, func(context.Context, string, string) (net.Conn, error) {
		client, sock, err := connected()
		if err == nil {
			go r.serve("db.example:27017", tls.Server(sock, server))
		}
		return client, err
	}
	for _, edit := range edits {
		edit(cfg)
	}
	cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), cfg))
	defer cl.Close(context.Background())
	// Without it the connection for the ping would be opened beside the monitor's.
	if err := cl.WaitReady(t.Context(), sextant.Want{}); err != nil {
		return err
	}
	_, err := cl.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}})
	return err
}

// Broken by taking what the server stapled unread (2), by not asking the responder (4), by failing when it is away (soft
// fail), by not looking for must-staple (malicious), by a delegate that is not accepted, and by asking for a certificate
// that nobody verifies.
func TestProseOCSPMatrix(t *testing.T) {
	columns := []struct {
		name                                 string
		revoked, staples, mustStaple, nobody bool
		words                                string // of the failure; "": it gets through
	}{
		{name: "1 valid, stapled", staples: true, mustStaple: true},
		{name: "2 revoked, stapled", staples: true, mustStaple: true, revoked: true, words: "certificate was revoked on"},
		{name: "3 valid, asked"},
		{name: "4 revoked, asked", revoked: true, words: "certificate was revoked on"},
		{name: "soft fail", nobody: true},
		{name: "malicious 1", revoked: true, mustStaple: true, words: "must-staple"},
		{name: "malicious 2", nobody: true, mustStaple: true, words: "must-staple"},
	}
	for _, kind := range []string{"RSA", "ECDSA"} {
		for _, delegate := range []bool{false, true} {
			i := newIssuer(t, kind, delegate)
			trust := "tlsCAFile=" + i.caFile(t)
			for _, c := range columns {
				if c.nobody && delegate {
					continue
				}
				i.revoked.Store(c.revoked)
				url := i.url
				if c.nobody {
					i.url = "http://127.0.0.1:1/"
				}
				server := i.server(t, kind, c.mustStaple, c.staples)
				i.url = url
				for options, words := range map[string]string{"tls=true&" + trust: c.words, "tls=true&tlsInsecure=true": "", "tls=true&tlsAllowInvalidCertificates=true": ""} {
					before := i.asked.Load()
					err := secured(t, server, options)
					if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
						t.Errorf("%s, delegate %v, %s, %s: %v", kind, delegate, c.name, options, err)
					}
					asks := !c.staples && !c.mustStaple && !c.nobody && strings.Contains(options, trust)
					if asked := i.asked.Load() > before; asked != asks {
						t.Errorf("%s, %s, %s: the responder was asked: %v", kind, c.name, options, asked)
					}
				}
			}
		}
	}
}

func TestOptionsSayWhoIsAskedAboutRevocation(t *testing.T) {
	i := newIssuer(t, "ECDSA", false)
	i.revoked.Store(true)
	trust := "tlsCAFile=" + i.caFile(t)
	roots := x509.NewCertPool()
	roots.AddCert(i.cert)
	own := func(c *sextant.Config) { c.TLSConfig = &tls.Config{RootCAs: roots} }
	asked, stapled := i.server(t, "ECDSA", false, false), i.server(t, "ECDSA", false, true)
	for _, c := range []struct {
		name    string
		server  *tls.Config
		options string
		edit    func(*sextant.Config)
		refused bool
	}{
		{"no responder", asked, trust + "&tlsDisableOCSPEndpointCheck=true", nil, false},
		{"no responder, but stapled", stapled, trust + "&tlsDisableOCSPEndpointCheck=true", nil, true},
		{"no check", asked, trust + "&tlsDisableCertificateRevocationCheck=true", nil, false},
		{"no check, though stapled", stapled, trust + "&tlsDisableCertificateRevocationCheck=true", nil, false},
		{"hosts do not matter", asked, trust + "&tlsAllowInvalidHostnames=true", nil, true},
		{"TLSConfig", asked, "", own, true},
		{"TLSConfig, no check", asked, "", func(c *sextant.Config) { own(c); c.TLSDisableCertificateRevocationCheck = true }, false},
		{"TLSConfig that verifies nothing", asked, "", func(c *sextant.Config) { c.TLSConfig = &tls.Config{InsecureSkipVerify: true} }, false},
	} {
		var edits []func(*sextant.Config)
		if c.edit != nil {
			edits = append(edits, c.edit)
		}
		if err := secured(t, c.server, c.options, edits...); c.refused != (err != nil) || err != nil && !strings.Contains(err.Error(), "revoked on") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestStaplesThatDoNotCountEndTheConnection(t *testing.T) {
	i, other := newIssuer(t, "ECDSA", true), newIssuer(t, "ECDSA", false)
	trust := "tlsDisableOCSPEndpointCheck=true&tlsCAFile=" + i.caFile(t)
	plain := i.issue(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, i.signer.Public())
	now := time.Now()
	for words, edit := range map[string]func(*ocsp.Response){
		"no response matching":      func(r *ocsp.Response) { r.SerialNumber = big.NewInt(99) },
		"it has expired on":         func(r *ocsp.Response) { r.NextUpdate = now.Add(-time.Second) },
		"and here it is":            func(r *ocsp.Response) { r.ThisUpdate = now.Add(time.Hour) },
		"not charged with that":     func(r *ocsp.Response) { r.Certificate = plain },
		"bad signature on embedded": func(r *ocsp.Response) { r.Certificate = other.cert },
		"OCSP stapling) does not c": func(r *ocsp.Response) { r.NextUpdate = now.Add(-time.Second) },
		"":                          func(r *ocsp.Response) { r.Status = ocsp.Unknown },
	} {
		i.edit = edit
		err := secured(t, i.server(t, "ECDSA", false, true), trust)
		if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

func TestAnswersOfRespondersAreKept(t *testing.T) {
	i := newIssuer(t, "ECDSA", false)
	server := i.server(t, "ECDSA", false, false)
	trust := "tlsCAFile=" + i.caFile(t)
	if err := secured(t, server, trust); err != nil {
		t.Fatal(err)
	}
	// The monitor's connection is open before the first of the pool is made, so one question serves both.
	if n := i.asked.Load(); n != 1 {
		t.Errorf("asked %d times for one client", n)
	}
}
