package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// soon is how long before its end a certificate is warned of.
const soon = 30 * 24 * time.Hour

const (
	renewServers   = "renew it (net.tls.certificateKeyFile, then the command rotateCertificates)"
	renewAuthority = "have a new certificate of the authority made, and give it to servers (net.tls.CAFile) and clients (tlsCAFile) before that day"
	renewClients   = "have a new certificate made, and give it with tlsCertificateKeyFile"
)

// readCertificates looks at the certificates of a server that has answered within TLS: on a connection of its own, which is
// closed after the handshake, for the driver has judged them already.
func (x *examination) readCertificates(ctx context.Context, p *probe) {
	ctx, cancel := within(ctx, x.timeout/10)
	defer cancel()
	c, err := x.connect(ctx, p.addr)
	if err != nil {
		return
	}
	defer c.Close()
	// Nothing is sent but the greeting. What the server thinks of a client without a certificate comes after its own.
	s := tls.Client(c, &tls.Config{ServerName: hostOf(p.addr), InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error { p.chain = s.PeerCertificates; return nil }})
	_ = s.HandshakeContext(ctx)
}

// judgeCertificates warns of certificates that are not valid much longer, or not valid and let through by an option.
func (x *examination) judgeCertificates(now time.Time) {
	roots := x.authorities()
	for _, p := range x.probes {
		for i, c := range withRoot(p.chain, roots, now) {
			if i == 0 {
				x.judgeCertificate(Finding{Stage: "tls", Server: p.addr, Severity: Warning, Cure: renewServers}, "the server's certificate", c, now)
				continue
			}
			x.judgeCertificate(Finding{Stage: "tls", Server: p.addr, Severity: Warning, Cure: renewAuthority},
				fmt.Sprintf("the certificate of the authority %s, on which the server's rests,", nameOf(c)), c, now)
		}
	}
	for i, c := range certificatesOf(x.cfg.TLSCertificateKeyFile) {
		f := Finding{Stage: "tls", Severity: Warning, Cure: renewClients}
		if now.Before(c.NotBefore) || now.After(c.NotAfter) {
			f.Severity = Trouble // servers refuse it
		}
		who := fmt.Sprintf("this client's own certificate (%s, in tlsCertificateKeyFile)", nameOf(c))
		if i > 0 {
			who = fmt.Sprintf("the certificate of the authority %s in tlsCertificateKeyFile", nameOf(c))
		}
		x.judgeCertificate(f, who, c, now)
	}
}

// judgeCertificate completes and adds a finding if there is one to make.
func (x *examination) judgeCertificate(f Finding, who string, c *x509.Certificate, now time.Time) {
	switch {
	case now.Before(c.NotBefore):
		f.Cause = fmt.Sprintf("%s is not valid before %s, and here it is %s", who, minute(c.NotBefore), minute(now))
		f.Cure = "set the clock of this host if it is wrong; otherwise wait, or have one made that is valid now"
	case now.After(c.NotAfter):
		f.Cause = fmt.Sprintf("%s has expired on %s", who, minute(c.NotAfter))
	case c.NotAfter.Sub(now) < soon:
		f.Cause = fmt.Sprintf("%s expires on %s, in %s", who, minute(c.NotAfter), days(c.NotAfter.Sub(now)))
	default:
		return
	}
	x.add(f)
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func days(d time.Duration) string {
	switch n := int(d / (24 * time.Hour)); {
	case n >= 2:
		return fmt.Sprintf("%d days", n)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d/time.Hour))
	}
	return fmt.Sprintf("%d minutes", int(d/time.Minute))
}

func nameOf(c *x509.Certificate) string {
	if name := c.Subject.String(); name != "" {
		return name
	}
	return "without a name"
}

// withRoot is the chain from the server's certificate to a trusted authority that lasts longest; what the server has
// shown if there is none.
func withRoot(shown []*x509.Certificate, roots *x509.CertPool, now time.Time) []*x509.Certificate {
	if len(shown) == 0 {
		return nil
	}
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, c := range shown[1:] {
		o.Intermediates.AddCert(c)
	}
	best := shown
	var until time.Time
	chains, _ := shown[0].Verify(o)
	for _, chain := range chains {
		if end := endOf(chain); end.After(until) {
			best, until = chain, end
		}
	}
	return best
}

func endOf(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, c := range chain {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}

// authorities are those that the connection string trusts, nil for the system's. A file that can not be read is the
// driver's to tell.
func (x *examination) authorities() *x509.CertPool {
	if x.cfg.TLSCAFile == "" {
		return nil
	}
	pool := x509.NewCertPool()
	for _, c := range certificatesOf(x.cfg.TLSCAFile) {
		pool.AddCert(c)
	}
	return pool
}

// certificatesOf are the certificates in a PEM file.
func certificatesOf(file string) (out []*x509.Certificate) {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
}
