package replset

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of a set.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

const day = 24 * time.Hour

// organization stands in every certificate of a set.
const organization = "sextant, for development and tests"

// ClientSubject is the subject of a certificate that Set.ClientCertificate makes for the name, in the form in which a user
// of "$external" bears it: for Options.Users. The certificate of TLS.Dir and Set.TLSConfig has the name "client".
func ClientSubject(name string) string {
	return pkix.Name{CommonName: name, Organization: []string{organization}}.String()
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "sextant " + rand.Text()[:6], Organization: []string{organization}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(10 * 365 * day), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert: cert, key: key}, err
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return big.NewInt(time.Now().UnixNano())
	}
	return n
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// sign makes a certificate, for servers and clients, and a key to it.
func (a *authority) sign(name string, c Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name, Organization: []string{organization}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(365 * day), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if !c.NotBefore.IsZero() {
		template.NotBefore = c.NotBefore
	}
	if !c.NotAfter.IsZero() {
		template.NotAfter = c.NotAfter
	}
	if template.NotAfter.Before(template.NotBefore) {
		if !c.NotBefore.IsZero() {
			return tls.Certificate{}, fmt.Errorf("it would end (%v) before it begins (%v)", template.NotAfter, template.NotBefore)
		}
		template.NotBefore = template.NotAfter.Add(-day) // one that has expired was valid once
	}
	for _, n := range c.Names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func (id *identities) caFile() string     { return filepath.Join(id.opt.Dir, "ca.pem") }
func (id *identities) clientFile() string { return filepath.Join(id.opt.Dir, "client.pem") }

// authorityIn is the authority in a folder, which is made if there is none.
func authorityIn(dir string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
	cert, err := os.ReadFile(certFile)
	key, err2 := os.ReadFile(keyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(err2, fs.ErrNotExist):
		return makeAuthorityIn(dir, certFile, keyFile)
	case err != nil || err2 != nil:
		return nil, fmt.Errorf("the certificate authority cannot be read (remove ca.pem and ca-key.pem for a new one): %w", cmp.Or(err, err2))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the certificate authority in %s cannot be used (remove ca.pem and ca-key.pem for a new one): %w", dir, err)
	}
	a := &authority{cert: pair.Leaf}
	ours := false
	if a.key, ours = pair.PrivateKey.(*ecdsa.PrivateKey); !ours || !a.cert.IsCA {
		return nil, fmt.Errorf("the certificate in %s is no authority that this set has made", certFile)
	}
	if now := time.Now(); now.After(a.cert.NotAfter.Add(-365 * day)) {
		return nil, fmt.Errorf("the certificate authority in %s ends on %s: remove ca.pem and ca-key.pem for a new one", dir, a.cert.NotAfter.Format(time.DateOnly))
	}
	return a, nil
}

func makeAuthorityIn(dir, certFile, keyFile string) (*authority, error) {
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := keyPEM(a.key)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		return nil, err
	}
	return a, os.WriteFile(certFile, certPEM(a.cert.Raw), 0o644)
}

// writeIdentity writes a certificate and its key into one file, as tlsCertificateKeyFile wants them.
func writeIdentity(file string, c tls.Certificate) error {
	key, err := keyPEM(c.PrivateKey)
	if err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be readable for others
		return err
	}
	return os.WriteFile(file, bytes.Join([][]byte{certPEM(c.Certificate[0]), key}, nil), 0o600)
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
