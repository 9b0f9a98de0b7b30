package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset"
)

func TestDoctorSaysWhatIsWrongWithACertificate(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 4, TLS: &replset.TLS{}})
	past := replset.Certificate{NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour)}
	for i, c := range []replset.Certificate{past, {Stranger: true}, {Names: []string{"elsewhere.example"}}} {
		if err := set.Certify(i, c); err != nil {
			t.Fatal(err)
		}
	}
	ca, _ := set.TLSFiles()
	for i, c := range []struct{ cause, cure string }{
		{"has expired on", "renew"}, {"an authority that this client does not trust", "tlsCAFile"},
		{"is for elsewhere.example, not for 127.0.0.1", "subjectAltName"},
	} {
		addr := set.Member(i).Addr()
		look(t, "mongodb://"+addr+"/?directConnection=true&tlsCAFile="+ca, zone{}, nil).expect(t, Unreachable, "tls", addr, c.cause, c.cure)
	}
	addr := set.Member(3).Addr()
	look(t, "mongodb://"+addr+"/?directConnection=true&tls=true", zone{}, nil).
		expect(t, Unreachable, "tls", addr, "does not trust", "tlsCAFile")
	if d := look(t, "mongodb://"+addr+"/?directConnection=true&tlsCAFile="+ca, zone{}, nil); d.Verdict != Healthy {
		t.Errorf("the good one: %s %v", d.Verdict, d.Findings)
	}
	look(t, "mongodb://"+addr+"/?tlsCAFile=/no/such/file", zone{}, nil).expect(t, Unreachable, "uri", addr, "/no/such/file", "file")
}

const day = 24 * time.Hour

func TestDoctorWarnsOfCertificatesThatEndSoon(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 4, TLS: &replset.TLS{}})
	now := time.Now()
	for i, c := range []replset.Certificate{{NotAfter: now.Add(5*day + time.Hour)}, {NotAfter: now.Add(-day), NotBefore: now.Add(-2 * day)},
		{NotBefore: now.Add(day)}, {NotAfter: now.Add(31 * day)}} {
		if err := set.Certify(i, c); err != nil {
			t.Fatal(err)
		}
	}
	ca, _ := set.TLSFiles()
	uri := func(i int, options string) (addr, uri string) {
		addr = set.Member(i).Addr()
		return addr, "mongodb://" + addr + "/?directConnection=true&" + options
	}
	a, ending := uri(0, "tlsCAFile="+ca)
	d := look(t, ending, zone{}, nil)
	d.expect(t, Healthy, "tls", a, "the server's certificate expires on "+minute(now.Add(5*day+time.Hour))+", in 5 days", "rotateCertificates")
	if len(d.Findings) != 1 || d.Findings[0].Severity != Warning {
		t.Errorf("%v", d.Findings)
	}
	a, over := uri(1, "tlsInsecure=true")
	look(t, over, zone{}, nil).expect(t, Healthy, "tls", a, "the server's certificate has expired on "+minute(now.Add(-day)), "renew it")
	a, early := uri(2, "tlsInsecure=true")
	look(t, early, zone{}, nil).expect(t, Healthy, "tls", a, "is not valid before "+minute(now.Add(day)), "clock")
	a, early = uri(2, "tlsCAFile="+ca)
	look(t, early, zone{}, nil).expect(t, Unreachable, "tls", a, "is not valid before "+minute(now.Add(day)), "clock")
	if _, fine := uri(3, "tlsCAFile="+ca); len(look(t, fine, zone{}, nil).Findings) != 0 {
		t.Error("a certificate that is good for 31 days is warned of")
	}
}

// An authority that ends soon takes all certificates with it, also where the servers do not show it.
func TestDoctorWarnsOfAnAuthorityAndOfTheClientsOwnCertificate(t *testing.T) {
	now := time.Now()
	root, rootKey := certificate(t, "CN=root", now.Add(-day), now.Add(3*day+time.Hour), nil, nil)
	leaf, key := certificate(t, "CN=db", now.Add(-day), now.Add(300*day), root, rootKey)
	addr := listen(t, func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}})
		greet(s, func() bson.D { return plain()(nil) })
	})
	uri := "mongodb://" + addr + "/?tlsCAFile=" + file(t, root, nil)
	look(t, uri, zone{}, nil).expect(t, Healthy, "tls", addr, "the authority CN=root, on which the server's rests, expires on "+minute(now.Add(3*day+time.Hour)), "tlsCAFile")

	ending, endingKey := certificate(t, "CN=joe", now.Add(-day), now.Add(time.Hour+time.Minute), root, rootKey)
	look(t, uri+"&tlsCertificateKeyFile="+file(t, ending, endingKey), zone{}, nil).
		expect(t, Healthy, "tls", "", "this client's own certificate (CN=joe, in tlsCertificateKeyFile) expires on "+minute(now.Add(time.Hour+time.Minute))+", in 6", "tlsCertificateKeyFile")
	over, overKey := certificate(t, "CN=joe", now.Add(-2*day), now.Add(-day), root, rootKey)
	d := look(t, uri+"&tlsCertificateKeyFile="+file(t, over, overKey), zone{}, nil)
	d.expect(t, Degraded, "tls", "", "this client's own certificate (CN=joe, in tlsCertificateKeyFile) has expired on", "new certificate")
	if d.Findings[0].Severity != Trouble || d.Findings[len(d.Findings)-1].Severity != Warning {
		t.Errorf("what matters most does not come first: %v", d.Findings)
	}
}

func TestDoctorNamesTheUserOfACertificate(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1, TLS: &replset.TLS{}, Users: []replset.User{{Name: "joe", Password: "right"}}})
	ca, client := set.TLSFiles()
	addr := set.Member(0).Addr()
	uri := "mongodb://" + addr + "/?authMechanism=MONGODB-X509&tlsCAFile=" + ca
	look(t, uri, zone{}, nil).expect(t, Unreachable, "auth", addr, "no certificate was shown", "tlsCertificateKeyFile")
	look(t, uri+"&tlsCertificateKeyFile="+client, zone{}, nil).expect(t, Unreachable, "auth", addr, "by MONGODB-X509", certificatesOf(client)[0].Subject.String())
}

// certificate makes one that a parent has signed, or a root.
func certificate(t *testing.T, name string, from, to time.Time, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: strings.TrimPrefix(name, "CN=")}, NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: parent == nil, BasicConstraintsValid: true}
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c, key
}

// file writes a certificate, and its key if there is one, in PEM.
func file(t *testing.T, c *x509.Certificate, key *ecdsa.PrivateKey) string {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	if key != nil {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	}
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
