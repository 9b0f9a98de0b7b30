package conn

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sextantdb/sextant/internal/credential"
	"golang.org/x/crypto/ocsp"
)

// Revocation asks whether the certificates of servers were revoked (OCSP support specification): of what the server
// staples to its certificate, else of the responders that the certificate names. A responder that gives no answer, or none
// that counts, hinders nobody. Of the chain only the server's own certificate is judged, and no lists of revoked ones are
// loaded. One value serves all connections of a client, for it keeps the answers until they expire. The zero value is
// ready; it has no goroutine that outlives a call.
type Revocation struct {
	StapledOnly bool              // ask no responder (tlsDisableOCSPEndpointCheck)
	Responders  credential.System // where responders are dialled; the zero value: from this machine

	mu   sync.Mutex        // guards kept
	kept map[string]status // by the request for the certificate, which is its CertID
}

// status is what is known about a certificate until a moment. Neither good nor bad: nobody could say.
type status struct {
	good, bad bool
	revoked   time.Time // when, if bad
	until     time.Time
}

const (
	responderTimeout = 5 * time.Second // for all responders of a certificate (the specification's default)
	maxResponders    = 4
	askAgain         = time.Minute // after which responders that did not answer are asked anew
)

// check judges the server at the other end of a finished handshake. nil says that nothing speaks against its certificate.
func (r *Revocation) check(ctx context.Context, s tls.ConnectionState, roots *x509.CertPool) error {
	cert, issuer, err := issued(s, roots)
	if err != nil || issuer == nil {
		return err
	}
	request, err := ocsp.CreateRequest(cert, issuer, nil)
	if err != nil {
		return nil // an issuer with a key that no OCSP knows: nobody can be asked
	}
	known, err := r.stapled(s, cert, issuer)
	if err != nil {
		return err
	}
	if known.conclusive() {
		r.keep(request, known)
		return known.err()
	}
	if known, found := r.recall(request); found {
		return known.err()
	}
	if r.StapledOnly || len(cert.OCSPServer) == 0 {
		return nil
	}
	known = r.ask(ctx, request, cert, issuer)
	if ctx.Err() != nil && !known.conclusive() {
		return ctx.Err()
	}
	r.keep(request, known)
	return known.err()
}

func (k status) conclusive() bool { return k.good || k.bad }

func (k status) err() error {
	if !k.bad {
		return nil
	}
	return fmt.Errorf("the server's certificate was revoked on %s", utc(k.revoked))
}

// issued is the server's certificate and that of its issuer; the latter is nil if the certificate is trusted by itself.
func issued(s tls.ConnectionState, roots *x509.CertPool) (cert, issuer *x509.Certificate, err error) {
	chains := s.VerifiedChains
	if len(chains) == 0 { // with tlsAllowInvalidHostnames the package tls does not tell the chain that was verified
		if chains, err = chainsOf(s, roots); err != nil {
			return nil, nil, err
		}
	}
	if len(chains[0]) < 2 {
		return nil, nil, nil
	}
	return chains[0][0], chains[0][1], nil
}

func chainsOf(s tls.ConnectionState, roots *x509.CertPool) ([][]*x509.Certificate, error) {
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	return s.PeerCertificates[0].Verify(o)
}

// stapled judges by what came with the certificate. A session that is resumed has what came with the first handshake,
// which counts no more when it has expired.
func (r *Revocation) stapled(s tls.ConnectionState, cert, issuer *x509.Certificate) (status, error) {
	if len(s.OCSPResponse) == 0 {
		if mustStaple(cert) && !s.DidResume {
			return status{}, errors.New("the server's certificate demands that its status comes with it (OCSP must-staple), and it did not")
		}
		return status{}, nil
	}
	known, err := judge(s.OCSPResponse, cert, issuer)
	if err != nil && !s.DidResume {
		return status{}, fmt.Errorf("the status that came with the server's certificate (OCSP stapling) does not count: %w", err)
	}
	return known, nil
}

// judge reads a response and says what it means now (RFC 6960, section 3.2). A status of unknown is no error.
func judge(der []byte, cert, issuer *x509.Certificate) (status, error) {
	res, err := ocsp.ParseResponseForCert(der, cert, issuer)
	if err != nil {
		return status{}, err
	}
	now := time.Now()
	if d := res.Certificate; d != nil && !bytes.Equal(d.Raw, issuer.Raw) {
		if !signsResponses(d) || now.Before(d.NotBefore) || now.After(d.NotAfter) {
			return status{}, fmt.Errorf("it is signed by %s, which the authority has not charged with that", d.Subject)
		}
	}
	switch {
	case now.Before(res.ThisUpdate):
		return status{}, fmt.Errorf("it is of %s, and here it is %s", utc(res.ThisUpdate), utc(now))
	case !res.NextUpdate.IsZero() && !now.Before(res.NextUpdate):
		return status{}, fmt.Errorf("it has expired on %s, and here it is %s", utc(res.NextUpdate), utc(now))
	case res.Status == ocsp.Good:
		return status{good: true, until: res.NextUpdate}, nil
	case res.Status == ocsp.Revoked:
		return status{bad: true, revoked: res.RevokedAt, until: res.NextUpdate}, nil
	}
	return status{}, nil
}

// signsResponses says whether an authority has delegated the signing of responses to a certificate.
func signsResponses(c *x509.Certificate) bool {
	for _, use := range c.ExtKeyUsage {
		if use == x509.ExtKeyUsageOCSPSigning {
			return true
		}
	}
	return false
}

var tlsFeature = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}

// mustStaple says whether a certificate demands stapling: the TLS feature status_request, which is 5 (RFC 7633).
func mustStaple(c *x509.Certificate) bool {
	for _, e := range c.Extensions {
		if !e.Id.Equal(tlsFeature) {
			continue
		}
		var features []int
		if _, err := asn1.Unmarshal(e.Value, &features); err != nil {
			return false
		}
		for _, f := range features {
			if f == 5 {
				return true
			}
		}
	}
	return false
}

// ask asks the responders side by side; the first answer that settles it ends the questions.
func (r *Revocation) ask(ctx context.Context, request []byte, cert, issuer *x509.Certificate) status {
	ctx, cancel := context.WithTimeout(ctx, responderTimeout)
	defer cancel()
	servers := cert.OCSPServer[:min(len(cert.OCSPServer), maxResponders)]
	answers := make(chan status, len(servers))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, address := range servers {
		wg.Go(func() {
			var known status
			if der, err := r.Responders.Post(ctx, address, "application/ocsp-request", request); err == nil {
				known, _ = judge(der, cert, issuer)
			}
			answers <- known
		})
	}
	for range servers {
		if known := <-answers; known.conclusive() {
			return known
		}
	}
	return status{until: time.Now().Add(askAgain)}
}

// keep remembers a status for as long as it holds; one without an end holds for this connection alone.
func (r *Revocation) keep(request []byte, known status) {
	now := time.Now()
	if !now.Before(known.until) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, old := range r.kept {
		if !now.Before(old.until) {
			delete(r.kept, id)
		}
	}
	if r.kept == nil {
		r.kept = map[string]status{}
	}
	if old := r.kept[string(request)]; !old.conclusive() || known.until.After(old.until) {
		r.kept[string(request)] = known
	}
}

func (r *Revocation) recall(request []byte) (status, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.kept[string(request)]
	return known, found && time.Now().Before(known.until)
}
