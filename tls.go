package sextant

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/youmark/pkcs8"
)

// tls is the TLS configuration of connections, nil for none.
func (c *Config) tls() (*tls.Config, error) {
	if err := c.checkTLS(); err != nil {
		return nil, err
	}
	switch {
	case c.TLSConfig != nil && c.TLSConfig.ClientSessionCache != nil:
		return c.TLSConfig, nil
	case c.TLSConfig != nil:
		t := c.TLSConfig.Clone()
		t.ClientSessionCache = conn.NewSessions()
		return t, nil
	case !c.TLS && !c.tlsOptions():
		return nil, nil
	}
	// Pools, and clients after a failover, open many connections to one server at once: resumed sessions spare it work.
	t := &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: conn.NewSessions()}
	if c.TLSCAFile != "" {
		roots, err := authorities(c.TLSCAFile)
		if err != nil {
			return nil, err
		}
		t.RootCAs = roots
	}
	if c.TLSCertificateKeyFile != "" {
		pair, err := keyPair(c.TLSCertificateKeyFile, c.TLSCertificateKeyFilePassword)
		if err != nil {
			return nil, mongoerr.Wrap(mongoerr.StageConfig, err, "tlsCertificateKeyFile %s cannot be used", c.TLSCertificateKeyFile)
		}
		t.Certificates = []tls.Certificate{pair}
		// Show it even to a server that names other authorities: its refusal says more than that a certificate is missing.
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	switch {
	case c.TLSInsecure || c.TLSAllowInvalidCertificates:
		t.InsecureSkipVerify = true
	case c.TLSAllowInvalidHostnames:
		t.InsecureSkipVerify, t.VerifyConnection = true, chainOnly(t.RootCAs)
	}
	return t, nil
}

// revocation is what asks whether servers' certificates were revoked, nil for nobody: there is nothing to ask about a
// certificate that was not verified (OCSP support specification, "How OCSP interacts with existing configuration options").
func (c *Config) revocation(t *tls.Config) *conn.Revocation {
	unverified := c.TLSInsecure || c.TLSAllowInvalidCertificates || c.TLSConfig != nil && c.TLSConfig.InsecureSkipVerify
	if t == nil || unverified || c.TLSDisableCertificateRevocationCheck {
		return nil
	}
	return &conn.Revocation{StapledOnly: c.TLSDisableOCSPEndpointCheck}
}

// tlsOptions says whether an option is given that makes no sense without TLS.
func (c *Config) tlsOptions() bool {
	return c.TLSCAFile != "" || c.TLSCertificateKeyFile != "" || c.TLSCertificateKeyFilePassword != "" || c.TLSAllowInvalidCertificates ||
		c.TLSAllowInvalidHostnames || c.TLSInsecure || c.TLSDisableOCSPEndpointCheck || c.TLSDisableCertificateRevocationCheck
}

// checkTLS refuses options that contradict each other (URI options specification, conflicting TLS options).
func (c *Config) checkTLS() error {
	rest := *c // of the options, those about revocation alone say what no tls.Config can
	rest.TLSDisableOCSPEndpointCheck, rest.TLSDisableCertificateRevocationCheck = false, false
	if c.TLSConfig != nil && rest.tlsOptions() {
		return configError("TLSConfig is given, and TLS options beside it: only one of the two can hold")
	}
	if c.TLSCertificateKeyFilePassword != "" && c.TLSCertificateKeyFile == "" {
		return configError("tlsCertificateKeyFilePassword is given, but no tlsCertificateKeyFile that it could open")
	}
	type option struct {
		name string
		on   bool
	}
	insecure, anybody := option{"tlsInsecure", c.TLSInsecure}, option{"tlsAllowInvalidCertificates", c.TLSAllowInvalidCertificates}
	endpoint := option{"tlsDisableOCSPEndpointCheck", c.TLSDisableOCSPEndpointCheck}
	revoked := option{"tlsDisableCertificateRevocationCheck", c.TLSDisableCertificateRevocationCheck}
	for _, two := range [][2]option{
		{insecure, anybody}, {insecure, {"tlsAllowInvalidHostnames", c.TLSAllowInvalidHostnames}}, {insecure, endpoint},
		{insecure, revoked}, {anybody, endpoint}, {anybody, revoked}, {endpoint, revoked},
	} {
		if two[0].on && two[1].on {
			return configError("%s and %s must not be given together", two[0].name, two[1].name)
		}
	}
	return nil
}

// authorities reads the certificates of a PEM file.
func authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, mongoerr.Wrap(mongoerr.StageConfig, err, "tlsCAFile cannot be read")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, configError("tlsCAFile %s holds no certificate", file)
	}
	return roots, nil
}

// keyPair reads certificates and one key, which may be encrypted, from a PEM file, in any order.
func keyPair(file, password string) (tls.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return tls.Certificate{}, err
	}
	var certs, key []byte
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		switch {
		case block.Type == "CERTIFICATE":
			certs = append(certs, pem.EncodeToMemory(block)...)
		case key != nil:
		case block.Type == "ENCRYPTED PRIVATE KEY":
			if block, err = decrypted(block.Bytes, password); err != nil {
				return tls.Certificate{}, err
			}
			key = pem.EncodeToMemory(block)
		case block.Headers["DEK-Info"] != "":
			return tls.Certificate{}, fmt.Errorf("the key is encrypted in the old way of OpenSSL, which is not safe: rewrite it with openssl pkcs8 -topk8 -v2 aes256")
		case block.Type == "PRIVATE KEY" || block.Type == "RSA PRIVATE KEY" || block.Type == "EC PRIVATE KEY":
			key = pem.EncodeToMemory(block)
		}
	}
	switch {
	case certs == nil:
		return tls.Certificate{}, fmt.Errorf("it holds no certificate (BEGIN CERTIFICATE)")
	case key == nil:
		return tls.Certificate{}, fmt.Errorf("it holds no private key (BEGIN PRIVATE KEY): certificate and key belong in one file")
	}
	return tls.X509KeyPair(certs, key)
}

// decrypted is an encrypted key as a plain one. What the library makes of a damaged file, a panic included, is an error.
func decrypted(der []byte, password string) (block *pem.Block, err error) {
	if password == "" {
		return nil, fmt.Errorf("its key is encrypted: give tlsCertificateKeyFilePassword")
	}
	defer func() {
		if recover() != nil {
			block, err = nil, fmt.Errorf("its encrypted key is damaged")
		}
	}()
	key, err := pkcs8.ParsePKCS8PrivateKey(der, []byte(password))
	if err != nil {
		return nil, fmt.Errorf("its key cannot be decrypted with the tlsCertificateKeyFilePassword given: %w", err)
	}
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &pem.Block{Type: "PRIVATE KEY", Bytes: plain}, nil
}

// chainOnly checks that a trusted authority signed the server's certificate, and not for which name.
func chainOnly(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		if _, err := s.PeerCertificates[0].Verify(o); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		return nil
	}
}
