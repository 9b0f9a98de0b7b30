package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// secure puts TLS on a socket, which it closes if that fails.
func secure(ctx context.Context, nc net.Conn, addr string, cfg *tls.Config, r *Revocation) (net.Conn, error) {
	s := tls.Client(nc, tlsConfig(cfg, addr))
	if err := s.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, tlsError(ctx, addr, err)
	}
	if r == nil {
		return s, nil
	}
	if err := r.check(ctx, s.ConnectionState(), cfg.RootCAs); err != nil {
		nc.Close()
		if ctx.Err() != nil {
			return nil, tlsError(ctx, addr, err)
		}
		return nil, failure(mongoerr.StageTLS, addr, nil, "%v", err)
	}
	return s, nil
}

// tlsConfig is cfg for one server: unless it says otherwise, the server is asked for by the host of its address, as the
// set advertises it, and its certificate must be for that.
func tlsConfig(cfg *tls.Config, addr string) *tls.Config {
	sessions, ours := cfg.ClientSessionCache.(*Sessions)
	if cfg.ServerName != "" && !ours {
		return cfg
	}
	cfg = cfg.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = hostOf(addr)
	}
	if ours {
		cfg.ClientSessionCache = sessionsOf{sessions, addr}
	}
	return cfg
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

// tlsError says why the connection could not be secured. Only failures of the network may mean overload.
func tlsError(ctx context.Context, addr string, err error) error {
	var record tls.RecordHeaderError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return failure(mongoerr.StageTLS, addr, endOf(ctx), "the caller gave up during the TLS handshake")
	case ctx.Err() != nil:
		return overloaded(ctx, failure(mongoerr.StageTLS, addr, endOf(ctx),
			"the time was up during the TLS handshake, which the server did not finish (is it a port without TLS?)"))
	case errors.As(err, &record):
		what := ""
		if g := wire.Guess(record.RecordHeader[:]); g != "" && g != "a TLS record" {
			what = " (its bytes are " + g + ")"
		}
		return failure(mongoerr.StageTLS, addr, err, "the server did not answer in TLS%s: is it a port without TLS?", what)
	case certificateWords(err) != "":
		return failure(mongoerr.StageTLS, addr, err, "%s", certificateWords(err))
	case alertWords(err) != "":
		return failure(mongoerr.StageTLS, addr, err, "%s", alertWords(err))
	case isHangUp(err):
		return overloaded(ctx, failure(mongoerr.StageTLS, addr, err,
			"the server closed the connection during the TLS handshake: it may be a port without TLS, or refuse this address"))
	}
	return failure(mongoerr.StageTLS, addr, err, "the TLS handshake failed")
}

// certificateWords says what is wrong with the server's certificate; "" if that is not the trouble.
func certificateWords(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		refused   *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("the server's certificate is for %s, not for %s", namesOf(name.Certificate), name.Host)
	case errors.As(err, &authority):
		return "the server's certificate is signed by an authority that this client does not trust" + issuerOf(authority.Cert) +
			": name its certificate with tlsCAFile"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return validityOf(invalid.Cert)
	case errors.As(err, &refused):
		return "the server's certificate is not valid"
	}
	return ""
}

// namesOf are the names and addresses that a certificate is for.
func namesOf(c *x509.Certificate) string {
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	const shown = 5
	switch {
	case len(names) == 0:
		return "no host (it has no subject alternative names)"
	case len(names) > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

func issuerOf(c *x509.Certificate) string {
	if c == nil || c.Issuer.String() == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", c.Issuer)
}

// validityOf says when a certificate was or will be valid. The times are of this host's clock, which may be the culprit.
func validityOf(c *x509.Certificate) string {
	now := time.Now()
	if c != nil && now.Before(c.NotBefore) {
		return fmt.Sprintf("the server's certificate is not valid before %s, and here it is %s", utc(c.NotBefore), utc(now))
	}
	if c != nil {
		return fmt.Sprintf("the server's certificate has expired on %s, and here it is %s", utc(c.NotAfter), utc(now))
	}
	return "the server's certificate has expired or is not valid yet"
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// TLS alerts that a client can do something about (RFC 8446, section 6).
const (
	alertHandshakeFailure    = 40
	alertBadCertificate      = 42
	alertRevoked             = 44
	alertExpired             = 45
	alertCertificateUnknown  = 46
	alertUnknownAuthority    = 48
	alertProtocolVersion     = 70
	alertInternal            = 80
	alertUnrecognisedName    = 112
	alertCertificateRequired = 116
)

var alerts = map[tls.AlertError]string{
	alertHandshakeFailure:    "the server refused the TLS handshake: it may want a client certificate (tlsCertificateKeyFile), or other ciphers",
	alertBadCertificate:      "the server refused this client's certificate, or wants one (tlsCertificateKeyFile)",
	alertRevoked:             "the server refused this client's certificate: it was revoked",
	alertExpired:             "the server refused this client's certificate: it has expired",
	alertCertificateUnknown:  "the server refused this client's certificate",
	alertUnknownAuthority:    "the server refused this client's certificate: it does not trust the authority that signed it",
	alertProtocolVersion:     "the server speaks no version of TLS that this client does (1.2 and 1.3)",
	alertInternal:            "the server refused the TLS handshake; with MongoDB Atlas: this address is not in the access list, or the cluster is paused",
	alertUnrecognisedName:    "the server knows no host of this name",
	alertCertificateRequired: "the server wants a client certificate: give one with tlsCertificateKeyFile",
}

// alertWords says for what reason the TLS of the other side ended the connection; "" if it did not, so that the network
// failed. crypto/tls tells the alert by its text alone.
func alertWords(err error) string {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return ""
	}
	for alert, words := range alerts {
		if op.Err.Error() == alert.Error() {
			return words
		}
	}
	return "the server ended the connection by a TLS alert"
}

// refusedByTLS is the error for an alert that came instead of a reply. With TLS 1.3 a client learns on its first read
// what the server thinks of its certificate: that belongs to the stage tls.
func (c *Conn) refusedByTLS(stage mongoerr.Stage, err error) error {
	if c.phase != mongoerr.StageHandshake {
		return c.fail(stage, err, "%s", alertWords(err))
	}
	e := failure(mongoerr.StageTLS, c.addr, err, "%s", alertWords(err))
	c.Break(e)
	return e
}
