package credential

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepliesAreReadInEveryForm(t *testing.T) {
	for reply, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellomore":                                   "hello",
		"HTTP/1.0 200 OK\r\n\r\nhello":                                                            "hello",
		"HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello":                                           "hello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x\r\nlo\r\n0\r\n\r\n": "hello",
		"HTTP/1.1 200 OK\nContent-Length: 0\n\n":                                                  "",
	} {
		status, body, err := parseReply(bufio.NewReader(strings.NewReader(reply)))
		if status != 200 || string(body) != want || err != nil {
			t.Errorf("%q: %d %q %v", reply, status, body, err)
		}
	}
	for reply, want := range map[string]string{
		"":                              "unexpected EOF",
		"SSH-2.0-OpenSSH\r\n":           "does not speak HTTP",
		"HTTP/1.1 abc\r\n\r\n":          "does not speak HTTP",
		"HTTP/1.1 200 OK\r\nContent-Le": "unexpected EOF",
		"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhel":                   "unexpected EOF",
		"HTTP/1.1 200\r\nContent-Length: -1\r\n\r\n":                     "Content-Length",
		"HTTP/1.1 200\r\nContent-Length: 99999999999\r\n\r\n":            "Content-Length",
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n":      "chunk",
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n": "chunk",
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel":     "unexpected EOF",
		"HTTP/1.1 200\r\n" + strings.Repeat("x", 8192):                   "buffer full",
	} {
		if _, _, err := parseReply(bufio.NewReader(strings.NewReader(reply))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", reply, err, want)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, body, err := parseReply(bufio.NewReader(strings.NewReader(string(b)))); err == nil && len(body) > len(b) {
			t.Fatalf("%d bytes from %d", len(body), len(b))
		}
	})
}

func TestRefusalsAreShownButBounded(t *testing.T) {
	s := newStub(t, map[string]http.HandlerFunc{"GET meta/": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(403)
		fmt.Fprint(w, "no identity assigned "+strings.Repeat("x y ", 2000))
	}})
	sys := s.system(nil)
	_, err := sys.fetch(t.Context(), request{method: "GET", url: "http://meta/?secret=hunter2"})
	if err == nil || !strings.Contains(err.Error(), `GET http://meta/ answers with status 403: "no identity assigned`) || len(err.Error()) > 500 || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestHeadersCannotBeSplit(t *testing.T) {
	got := ""
	s := newStub(t, map[string]http.HandlerFunc{"GET meta/": func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Token") + r.Header.Get("X-Evil") }})
	sys := s.system(nil)
	if _, err := sys.fetch(t.Context(), request{method: "GET", url: "http://meta/", headers: [][2]string{{"X-Token", "a\r\nX-Evil: b"}}}); err != nil || got != "aX-Evil: b" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAddressesMustBeURLs(t *testing.T) {
	sys := (&stub{}).system(nil)
	for address, want := range map[string]string{"": "no URL", "169.254.169.254": "no URL", "ftp://meta/": "neither http nor https", "http://a b/": "no URL"} {
		if _, err := sys.fetch(t.Context(), request{method: "GET", url: address}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// Without the limit of ten seconds, or without closing the connection when it is over, this test hangs.
func TestSilentServicesAreGivenUpAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		go func() { _, _ = server.Read(make([]byte, 4096)) }()
		sys := System{Dial: func(context.Context, string, string) (net.Conn, error) { return client, nil }}
		start := time.Now()
		_, err := sys.fetch(t.Context(), request{method: "GET", url: "http://meta/"})
		if took := time.Since(start); took != fetchTimeout || err == nil || !strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("%v after %v", err, took)
		}
	})
}
