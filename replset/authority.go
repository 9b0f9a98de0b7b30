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

// authorityIn is the authority in a folder, which is made if there is none. Of several sets that start at once, in any
// number of processes, one makes it: ca-key.pem, which holds the certificate too, appears in whole or not at all, and who
// finds it writes ca.pem from it if need be.
func authorityIn(dir string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
	key, err := os.ReadFile(keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		if err := publishAuthority(certFile, keyFile); err != nil {
			return nil, err
		}
		key, err = os.ReadFile(keyFile)
	}
	cert, err2 := os.ReadFile(certFile)
	missing := errors.Is(err2, fs.ErrNotExist) && err == nil && bytes.Contains(key, []byte("BEGIN CERTIFICATE"))
	if missing { // who made the other file did not come to write this one, or has not yet
		cert, err2 = key, nil
	}
	if err != nil || err2 != nil {
		return nil, fmt.Errorf("the certificate authority cannot be read (remove ca.pem and ca-key.pem for a new one): %w", cmp.Or(err, err2))
	}
	a, err := readAuthority(dir, cert, key)
	if err == nil && missing {
		err = replaceFile(certFile, certPEM(a.cert.Raw), 0o644)
	}
	return a, err
}

func readAuthority(dir string, cert, key []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the certificate authority in %s cannot be used (remove ca.pem and ca-key.pem for a new one): %w", dir, err)
	}
	a := &authority{cert: pair.Leaf}
	ours := false
	if a.key, ours = pair.PrivateKey.(*ecdsa.PrivateKey); !ours || !a.cert.IsCA {
		return nil, fmt.Errorf("the certificate in %s is no authority that this set has made", filepath.Join(dir, "ca.pem"))
	}
	if now := time.Now(); now.After(a.cert.NotAfter.Add(-365 * day)) {
		return nil, fmt.Errorf("the certificate authority in %s ends on %s: remove ca.pem and ca-key.pem for a new one", dir, a.cert.NotAfter.Format(time.DateOnly))
	}
	return a, nil
}

// publishAuthority makes an authority, unless somebody else is quicker. A certificate without a key is somebody's: it
// stays.
func publishAuthority(certFile, keyFile string) error {
	if _, err := os.Stat(certFile); err == nil {
		if _, err := os.Stat(keyFile); err == nil {
			return nil // it has come in between
		}
		return fmt.Errorf("the certificate authority cannot be read (remove ca.pem and ca-key.pem for a new one): there is %s, but no %s", certFile, keyFile)
	}
	a, err := newAuthority()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(keyFile), 0o700); err != nil {
		return err
	}
	key, err := keyPEM(a.key)
	if err != nil {
		return err
	}
	return publish(keyFile, append(key, certPEM(a.cert.Raw)...))
}

// publish writes a file in whole, for the owner alone, unless there is one of that name.
func publish(file string, data []byte) error {
	half, err := writeBeside(file, data, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(half)
	err = os.Link(half, file)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without hard links
		var f *os.File
		if f, err = os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			_, err = f.Write(data)
			err = errors.Join(err, f.Close())
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// replaceFile writes a file in whole, in place of what there is.
func replaceFile(file string, data []byte, mode fs.FileMode) error {
	half, err := writeBeside(file, data, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(half, file); err != nil {
		return errors.Join(err, os.Remove(half))
	}
	return nil
}

// writeBeside writes a file of another name in the same folder, which nobody else writes.
func writeBeside(file string, data []byte, mode fs.FileMode) (half string, err error) {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.new")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close(), os.Chmod(f.Name(), mode)); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// writeIdentity writes a certificate and its key into one file, as tlsCertificateKeyFile wants them.
func writeIdentity(file string, c tls.Certificate) error {
	key, err := keyPEM(c.PrivateKey)
	if err != nil {
		return err
	}
	return replaceFile(file, bytes.Join([][]byte{certPEM(c.Certificate[0]), key}, nil), 0o600)
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
