// Package credential gets what authentication needs and no configuration holds: keys of AWS and access tokens of
// MONGODB-OIDC, from the environment, from files, from the metadata services of clouds, and from callbacks of the
// program. It keeps them as long as the authentication specification allows.
//
// It speaks HTTP/1.1 by itself: a request or two to an address inside the machine's own network need no more, and a
// program that logs in with a password does not link net/http for them. It starts no goroutine; all of it is safe for
// concurrent use, and no lock is held while something is fetched. No error holds a key or a token.
package credential

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
)

// System is where credentials are looked for. The zero value is this machine.
type System struct {
	Getenv   func(name string) string                                          // nil: os.Getenv
	ReadFile func(path string) ([]byte, error)                                 // nil: os.ReadFile
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error) // nil: a net.Dialer
	TLS      *tls.Config                                                       // of https; nil: the system's authorities
}

func (s *System) env(name string) string {
	if s.Getenv != nil {
		return s.Getenv(name)
	}
	return os.Getenv(name)
}

// file reads a file whose content is one token.
func (s *System) file(path string) (string, error) {
	read := s.ReadFile
	if read == nil {
		read = os.ReadFile
	}
	b, err := read(path)
	return strings.TrimSpace(string(b)), err
}

// failed marks an error as one of fetching credentials, which says nothing about the MongoDB server.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", mongoerr.ErrNoCredentials, err)
}

const (
	// fetchTimeout limits one request (authentication specification: "10 second read timeout").
	fetchTimeout = 10 * time.Second
	maxReply     = 256 << 10 // bytes of a reply
)

// request is one request of HTTP/1.1.
type request struct {
	method  string
	url     string
	headers [][2]string
	body    string
	secrets []string // what of all that no error may show
}

// Post sends a body of the content type to an address, on a connection of its own, and returns the body of a reply with
// status 200. It is for others that have a question or two and no more use of HTTP: those about revoked certificates.
func (s *System) Post(ctx context.Context, address, contentType string, body []byte) ([]byte, error) {
	return s.fetch(ctx, request{method: "POST", url: address, headers: [][2]string{{"Content-Type", contentType}}, body: string(body)})
}

// fetch sends the request on a connection of its own and returns the body of a reply with status 200. No redirection is
// followed and no proxy is asked.
func (s *System) fetch(ctx context.Context, r request) ([]byte, error) {
	u, err := url.Parse(r.url)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the address of the service is no URL with a host")
	}
	where := r.hide(u.Scheme + "://" + u.Host + u.Path) // a query may hold a secret
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	status, body, err := s.exchange(ctx, u, r)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s %s: no answer in time: %w", r.method, where, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", r.method, where, err)
	case status != 200:
		return nil, fmt.Errorf("%s %s answers with status %d: %s", r.method, where, status, r.quote(string(body)))
	}
	return body, nil
}

func (s *System) exchange(ctx context.Context, u *url.URL, r request) (status int, body []byte, err error) {
	nc, err := s.connect(ctx, u)
	if err != nil {
		return 0, nil, err
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	if _, err := io.WriteString(nc, r.text(u)); err != nil {
		return 0, nil, err
	}
	return parseReply(bufio.NewReader(io.LimitReader(nc, maxReply)))
}

func (s *System) connect(ctx context.Context, u *url.URL) (net.Conn, error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if port == "" {
		return nil, fmt.Errorf("the scheme %q is neither http nor https", u.Scheme)
	}
	dial := s.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	nc, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil || u.Scheme == "http" {
		return nc, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.TLS != nil {
		cfg = s.TLS.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = u.Hostname()
	}
	secure := tls.Client(nc, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return secure, nil
}

func (r request) text(u *url.URL) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nUser-Agent: sextant\r\n", r.method, u.RequestURI(), u.Host)
	for _, h := range r.headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], oneLine(h[1]))
	}
	if r.body != "" || r.method != "GET" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	return b.String() + "\r\n" + r.body
}

// oneLine keeps a value from the environment or from a server inside its header.
func oneLine(s string) string { return strings.NewReplacer("\r", "", "\n", "").Replace(s) }

// parseReply reads a reply of HTTP/1.1: to its Content-Length, in chunks, or to the end of the connection.
func parseReply(br *bufio.Reader) (status int, body []byte, err error) {
	line, err := readLine(br)
	if err != nil {
		return 0, nil, err
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	if status, err = strconv.Atoi(code); err != nil || !strings.HasPrefix(version, "HTTP/1.") {
		return 0, nil, fmt.Errorf("what answers there does not speak HTTP/1.1")
	}
	length, chunked := -1, false
	for {
		if line, err = readLine(br); err != nil {
			return 0, nil, err
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.Atoi(value); err != nil || length < 0 || length > maxReply {
				return 0, nil, fmt.Errorf("its Content-Length is none, or above %d bytes", maxReply)
			}
		case "transfer-encoding":
			chunked = strings.EqualFold(value, "chunked")
		}
	}
	switch {
	case chunked:
		body, err = readChunks(br)
	case length >= 0:
		body = make([]byte, length)
		_, err = io.ReadFull(br, body)
	default:
		body, err = io.ReadAll(br)
	}
	return status, body, err
}

func readLine(br *bufio.Reader) (string, error) {
	line, err := br.ReadSlice('\n')
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return strings.TrimRight(string(line), "\r\n"), err
}

func readChunks(br *bufio.Reader) (body []byte, err error) {
	for {
		line, err := readLine(br)
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 32)
		if err != nil || n > maxReply {
			return nil, fmt.Errorf("the length of a chunk of it is none, or above %d bytes", maxReply)
		}
		if n == 0 {
			return body, nil // what follows the last chunk does not matter
		}
		chunk := make([]byte, n)
		if _, err := io.ReadFull(br, chunk); err != nil {
			return nil, err
		}
		body = append(body, chunk...)
		if _, err := readLine(br); err != nil {
			return nil, err
		}
	}
}
