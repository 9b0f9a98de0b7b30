package sextant

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/sextantdb/sextant/mongoerr"
)

// tls is the TLS configuration of connections, nil for none.
func (c *Config) tls() (*tls.Config, error) {
	files := c.TLSCAFile != "" || c.TLSCertificateKeyFile != ""
	lenient := c.TLSAllowInvalidCertificates || c.TLSAllowInvalidHostnames || c.TLSInsecure
	switch {
	case c.TLSConfig != nil && (files || lenient):
		return nil, configError("TLSConfig is given, and TLS options beside it: only one of the two can hold")
	case c.TLSConfig != nil:
		return c.TLSConfig, nil
	case c.TLSInsecure && (c.TLSAllowInvalidCertificates || c.TLSAllowInvalidHostnames):
		return nil, configError("tlsInsecure stands for tlsAllowInvalidCertificates and tlsAllowInvalidHostnames: give it alone")
	case !c.TLS && !files && !lenient:
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLSCAFile != "" {
		pem, err := os.ReadFile(c.TLSCAFile)
		if err != nil {
			return nil, mongoerr.Wrap(mongoerr.StageConfig, err, "tlsCAFile cannot be read")
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, configError("tlsCAFile %s holds no certificate", c.TLSCAFile)
		}
	}
	if c.TLSCertificateKeyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCertificateKeyFile, c.TLSCertificateKeyFile)
		if err != nil {
			return nil, mongoerr.Wrap(mongoerr.StageConfig, err, "tlsCertificateKeyFile cannot be used")
		}
		t.Certificates = []tls.Certificate{pair}
	}
	switch {
	case c.TLSInsecure || c.TLSAllowInvalidCertificates:
		t.InsecureSkipVerify = true
	case c.TLSAllowInvalidHostnames:
		t.InsecureSkipVerify, t.VerifyConnection = true, chainOnly(t.RootCAs)
	}
	return t, nil
}

// chainOnly checks that a trusted authority signed the server's certificate, and not for which name.
func chainOnly(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
}
