package doctor

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/sextantdb/sextant/mongoerr"
)

// whyNot is the finding about a server that gave no hello.
func (x *examination) whyNot(p *probe) Finding {
	f := Finding{Stage: stageName(p.failed.Stage), Server: p.addr, Severity: Trouble}
	switch p.failed.Stage {
	case mongoerr.StageProxy:
		f.Cause, f.Cure = p.failed.Message+suffix(p.failed.Cause), "see the proxy's log"
		if way, ok := errors.AsType[*proxyFault](p.proxy); ok {
			f.Cause, f.Cure = strings.Replace(way.cause, "SOCKS5 proxy", "SOCKS5 proxy "+x.proxyAddress(), 1), way.cure
		}
	case mongoerr.StageDial:
		f.Cause, f.Cure = whyNoDial(p)
	case mongoerr.StageTLS:
		f.Cause, f.Cure = whyNoTLS(p)
	case mongoerr.StageConfig:
		f.Stage = "uri"
		f.Cause, f.Cure = p.failed.Message, "correct the connection string, or the file that it names"
		if p.failed.Cause != nil {
			f.Cause += ": " + headline(p.failed.Cause)
		}
	default:
		f.Cause, f.Cure = whyNoHello(p)
	}
	return f
}

func stageName(s mongoerr.Stage) string {
	switch s {
	case mongoerr.StageDial, mongoerr.StageProxy, mongoerr.StageTLS, mongoerr.StageAuth:
		return string(s)
	}
	return "hello"
}

const firewall = "let a firewall, a security group or an access list between this host and the server pass it; with MongoDB Atlas add this host's address to the IP access list"

func whyNoDial(p *probe) (cause, cure string) {
	err := p.failed
	switch {
	case isSocket(p.addr) && errors.Is(err, fs.ErrNotExist):
		return "there is no such socket", "is the server running, and is this the path that it prints at its start (net.unixDomainSocket.pathPrefix)?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing accepts connections there (connection refused): the host answers, the port is closed",
			"start the server; check its port (net.port), and that it listens on this address and not on 127.0.0.1 alone (net.bindIp)"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to that address (" + errno(err) + ")", "check routes and VPN of this host, and whether the server's host is up"
	case errors.Is(err, fs.ErrPermission):
		return "this user may not connect there (" + errno(err) + ")", "check the permissions of the socket, or this host's firewall"
	case err.Timeout():
		return "nobody answers the attempt to connect (timeout): its packets are dropped, or the host is down", firewall
	}
	return err.Message + suffix(err.Cause), "check the address and this host's network"
}

func errno(err error) string {
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		return n.Error()
	}
	return headline(err)
}

func suffix(err error) string {
	if err == nil {
		return ""
	}
	return ": " + headline(err)
}

// whyNoTLS is for a connection string with TLS.
func whyNoTLS(p *probe) (cause, cure string) {
	err, seen := p.failed, p.tap.bytes()
	switch {
	case p.otherWay.answered():
		return "the server speaks no TLS: it answers without it" + ending(err), "leave out tls=true (and other TLS options), or turn TLS on at the server (net.tls.mode)"
	case p.web, isHTTP(seen), isHTTP(p.otherWay.tap.bytes()):
		return anHTTPServer, httpCure
	case errors.As(err, new(tls.RecordHeaderError)):
		return err.Message, "check the port: what listens there is neither MongoDB with TLS nor without"
	}
	if cause, cure = certificateTrouble(err); cause != "" {
		return cause, cure
	}
	switch alert := alertOf(err); {
	case alert == alertInternal:
		return "the server refuses the TLS handshake with alert 80 (internal error)",
			"with MongoDB Atlas: add this host's address to the IP access list, and see whether the cluster is paused or the account in order; otherwise see the server's log"
	case alert != 0:
		cause, _, _ = strings.Cut(err.Message, ": give one with")
		return cause, alertCure(alert)
	case isEOF(err):
		return "the server closes the connection after the first message of TLS (EOF after ClientHello): it speaks no TLS, or refuses this address",
			"if it is a server without TLS, leave out tls=true; otherwise " + firewall
	case err.Timeout():
		return "the server accepts the connection and does not answer the first message of TLS", "check that it is a MongoDB port and that the server is not hung; behind a proxy or a port forwarding, that its other side is up"
	}
	return err.Message + suffix(err.Cause), "see the server's log for the reason"
}

func ending(err *mongoerr.Error) string {
	if isEOF(err) {
		return " (with TLS it closes the connection: EOF after ClientHello)"
	}
	return ""
}

// certificateTrouble is what is wrong with the server's certificate; "" if nothing is.
func certificateTrouble(err *mongoerr.Error) (cause, cure string) {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		refused   *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &name):
		return err.Message, "use a name of the certificate in the connection string (and in the set's configuration), or have a certificate issued for this one (subjectAltName)"
	case errors.As(err, &authority):
		return strings.TrimSuffix(err.Message, ": name its certificate with tlsCAFile"), "give the authority's certificate with tlsCAFile; if that is given, it is the wrong one or an intermediate certificate is missing at the server"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && strings.Contains(err.Message, "not valid before"):
		return err.Message, "set the clock of this host if it is wrong; otherwise have the server show a certificate that is valid now"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return err.Message, "renew the server's certificate (net.tls.certificateKeyFile, then rotateCertificates); if this host's clock is wrong, set it"
	case errors.As(err, &refused), errors.As(err, &invalid):
		return err.Message + suffix(err.Cause), "have a valid certificate issued for the server"
	}
	return "", ""
}

// Alerts of TLS (RFC 8446, section 6) that have a cure of their own.
const (
	alertUnrecognised = 112
	alertVersion      = 70
	alertInternal     = 80
)

// alertOf is the alert by which the other side ended TLS, 0 if it did not. crypto/tls tells it by its text alone.
func alertOf(err error) tls.AlertError {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" || op.Err == nil {
		return 0
	}
	for a := 1; a < 256; a++ {
		if op.Err.Error() == tls.AlertError(a).Error() && !strings.Contains(op.Err.Error(), "alert(") {
			return tls.AlertError(a)
		}
	}
	return 255 // one that crypto/tls has no text for
}

func alertCure(a tls.AlertError) string {
	switch a {
	case alertVersion:
		return "let the server speak TLS 1.2 or 1.3 (net.tls.disabledProtocols)"
	case alertUnrecognised:
		return "use a host name that the server's certificate is for"
	}
	return "give a client certificate that the server trusts with tlsCertificateKeyFile"
}

const (
	anHTTPServer = "an HTTP server answers on this port, not MongoDB"
	httpCure     = "check the port: MongoDB's is 27017 by default; a web page, a REST gateway or a proxy is not the database"
)

// whyNoHello is for a server that accepted the connection and did not answer hello.
func whyNoHello(p *probe) (cause, cure string) {
	err, seen := p.failed, p.tap.bytes()
	if noService(err) {
		return whyNoService(p)
	}
	const addTLS = "add tls=true to the connection string, and tlsCAFile if the authority is one of your own; with a client certificate, tlsCertificateKeyFile"
	if p.web || isHTTP(seen) {
		return anHTTPServer, httpCure
	}
	if other := p.otherWay; other != nil && !p.secure && speaksTLS(other) {
		return "the server wants TLS: it answers with it" + plainEnding(err), addTLS
	}
	switch {
	case isTLS(seen):
		return "the server wants TLS: it answers with a TLS record", addTLS
	case mongoerr.CodeName(err.Code) == "LoadBalancerSupportMismatch":
		return "the server is behind a load balancer, and the connection string does not say so", "add loadBalanced=true to the connection string"
	case err.Code != 0:
		return "the server refuses the hello: " + err.Message, "see the server's log"
	case len(seen) > 0 && !err.Timeout() && !isEOF(err):
		return "what listens there is not MongoDB: " + strings.TrimPrefix(headline(err), "on "+p.addr+": "), "check host and port"
	case isEOF(err) && !p.secure:
		return "the server closes the connection after the hello (EOF): it wants TLS, or an access list refuses this address",
			"try tls=true; otherwise " + firewall
	case isEOF(err):
		return "the server closes the connection after the hello, within TLS", "it may refuse this client's certificate or address: see the server's log; " + firewall
	case err.Timeout():
		return "the server accepts the connection and does not answer the hello", "see whether the server hangs (its log, its disk), or whether a proxy in front of it has lost it"
	}
	return err.Message + suffix(err.Cause), "see the server's log"
}

func plainEnding(err *mongoerr.Error) string {
	if isEOF(err) {
		return ", and closes the connection without (EOF after a plain hello)"
	}
	return ""
}

// speaksTLS says whether a server that was asked in TLS has shown that it speaks it, be it by a refusal.
func speaksTLS(p *probe) bool {
	return p.answered() || isTLS(p.tap.bytes())
}

func isHTTP(b []byte) bool { return bytes.HasPrefix(b, []byte("HTTP/")) }

// isTLS says whether bytes begin a handshake record or an alert of TLS.
func isTLS(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0x16 || b[0] == 0x15) && b[1] == 3
}

func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
