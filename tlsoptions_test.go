package sextant

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
	"github.com/youmark/pkcs8"
)

// identity makes a certificate of its own authority and the key to it, as PEM blocks.
func identity(t *testing.T) (cert *pem.Block, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "joe"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &pem.Block{Type: "CERTIFICATE", Bytes: der}, key
}

func keyBlock(t *testing.T, key *ecdsa.PrivateKey, password string) *pem.Block {
	t.Helper()
	der, err := pkcs8.MarshalPrivateKey(key, []byte(password), nil)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		return &pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der}
	}
	return &pem.Block{Type: "PRIVATE KEY", Bytes: der}
}

func pemFile(t *testing.T, blocks ...*pem.Block) string {
	t.Helper()
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(b)...)
	}
	file := filepath.Join(t.TempDir(), "client.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCertificateAndKeyComeFromOneFileInAnyOrder(t *testing.T) {
	cert, key := identity(t)
	ec, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{
		"key last":   {TLSCertificateKeyFile: pemFile(t, cert, keyBlock(t, key, ""))},
		"key first":  {TLSCertificateKeyFile: pemFile(t, keyBlock(t, key, ""), cert)},
		"old format": {TLSCertificateKeyFile: pemFile(t, cert, &pem.Block{Type: "EC PRIVATE KEY", Bytes: ec})},
		"encrypted":  {TLSCertificateKeyFile: pemFile(t, cert, keyBlock(t, key, "s3cr3t")), TLSCertificateKeyFilePassword: "s3cr3t"},
		"needless":   {TLSCertificateKeyFile: pemFile(t, cert, keyBlock(t, key, "")), TLSCertificateKeyFilePassword: "s3cr3t"},
	} {
		tc, err := c.tls()
		if err != nil || len(tc.Certificates) != 1 || !key.Equal(tc.Certificates[0].PrivateKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeyFilesThatCannotBeUsedSayWhy(t *testing.T) {
	cert, key := identity(t)
	_, other := identity(t)
	locked := keyBlock(t, key, "s3cr3t")
	old := &pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, Bytes: []byte("x")}
	damaged := &pem.Block{Type: locked.Type, Bytes: locked.Bytes[:len(locked.Bytes)-1]}
	odd := &pem.Block{Type: locked.Type, Bytes: withoutLastByte(t, locked.Bytes)}
	for words, c := range map[string]Config{
		"no such file":                       {TLSCertificateKeyFile: filepath.Join(t.TempDir(), "none.pem")},
		"holds no certificate":               {TLSCertificateKeyFile: pemFile(t, keyBlock(t, key, ""))},
		"holds no private key":               {TLSCertificateKeyFile: pemFile(t, cert)},
		"private key does not match":         {TLSCertificateKeyFile: pemFile(t, cert, keyBlock(t, other, ""))},
		"give tlsCertificateKeyFilePassword": {TLSCertificateKeyFile: pemFile(t, cert, locked)},
		"incorrect password":                 {TLSCertificateKeyFile: pemFile(t, cert, locked), TLSCertificateKeyFilePassword: "wr0ng"},
		"old way of OpenSSL":                 {TLSCertificateKeyFile: pemFile(t, cert, old), TLSCertificateKeyFilePassword: "s3cr3t"},
		"only PKCS #5":                       {TLSCertificateKeyFile: pemFile(t, cert, damaged), TLSCertificateKeyFilePassword: "s3cr3t"},
		"is damaged":                         {TLSCertificateKeyFile: pemFile(t, cert, odd), TLSCertificateKeyFilePassword: "s3cr3t"},
		"no tlsCertificateKeyFile":           {TLSCertificateKeyFilePassword: "s3cr3t"},
		"must not be given together":         {TLSDisableOCSPEndpointCheck: true, TLSInsecure: true},
	} {
		_, err := c.tls()
		if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "wr0ng")) {
			t.Errorf("the password is in %v", err)
		}
	}
	secret := Config{TLSCertificateKeyFilePassword: "s3cr3t"}
	if text := fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, secret.LogValue()); strings.Contains(text, "s3cr3t") {
		t.Errorf("the password is in %s", text)
	}
}

// withoutLastByte shortens what is encrypted by a byte, so that the library finds no whole blocks.
func withoutLastByte(t *testing.T, der []byte) []byte {
	t.Helper()
	var key struct {
		Algorithm asn1.RawValue
		Data      []byte
	}
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		t.Fatal(err)
	}
	key.Data = key.Data[:len(key.Data)-1]
	out, err := asn1.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTLSOptionsOfAURIReachTheirFields(t *testing.T) {
	c := parse(t, "mongodb://a/?tlsCAFile=/ca&tlsCertificateKeyFile=/key&tlsCertificateKeyFilePassword=pw&tlsAllowInvalidHostnames=true&tlsDisableOCSPEndpointCheck=true")
	if !c.TLS || c.TLSCAFile != "/ca" || c.TLSCertificateKeyFile != "/key" || c.TLSCertificateKeyFilePassword != "pw" ||
		!c.TLSAllowInvalidHostnames || !c.TLSDisableOCSPEndpointCheck || len(c.Warnings) != 0 {
		t.Errorf("%+v", c)
	}
	c = parse(t, "mongodb://a/?ssl=true&tlsDisableCertificateRevocationCheck=true")
	if !c.TLS || !c.TLSDisableCertificateRevocationCheck || len(c.Warnings) != 0 {
		t.Errorf("%+v", c)
	}
	for uri, want := range map[string]bool{"mongodb://a/?tlsInsecure=true": true, "mongodb://a/?tlsAllowInvalidCertificates=true": true, "mongodb://a/?tls=false": false} {
		if c := parse(t, uri); c.TLS != want {
			t.Errorf("%s: TLS is %v", uri, c.TLS)
		}
	}
}

func TestTLSOptionsWithoutEffectAreWarnedOf(t *testing.T) {
	c := parse(t, "mongodb://a/?tls=false&tlsCAFile=/ca&tlsInsecure=true")
	if tc, err := c.tls(); tc != nil || err != nil {
		t.Errorf("tls=false does not hold: %v, %v", tc, err)
	}
	if len(c.Warnings) != 2 || c.Warnings[0].Option != "tlsCAFile" || c.Warnings[1].Option != "tlsInsecure" {
		t.Errorf("%v", c.Warnings)
	}
	c = parse(t, "mongodb://a/?tlsDisableOCSPEndpointCheck=false")
	if len(c.Warnings) != 0 || !c.TLS {
		t.Errorf("%v", c.Warnings)
	}
}
