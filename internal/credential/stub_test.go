package credential

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/sextantdb/sextant/mongoerr"
)

// stub is a metadata service that writes down what it was asked.
type stub struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newStub(t *testing.T, routes map[string]http.HandlerFunc) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(s.handler(routes))
	t.Cleanup(s.Close)
	return s
}

func (s *stub) handler(routes map[string]http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + r.Host + r.URL.Path
		s.mu.Lock()
		s.asked = append(s.asked, key)
		s.mu.Unlock()
		if h := routes[key]; h != nil {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	})
}

func (s *stub) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// system is a machine with these environment variables, all of whose connections lead to the stub.
func (s *stub) system(env map[string]string) System {
	return System{
		Getenv: func(name string) string { return env[name] },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
		ReadFile: func(path string) ([]byte, error) {
			if path == "/token" {
				return []byte("the.web.token\n"), nil
			}
			return nil, errors.New("no such file: " + path)
		},
	}
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
}

func mustFail(t *testing.T, err error) {
	t.Helper()
	if err == nil || !errors.Is(err, mongoerr.ErrNoCredentials) {
		t.Errorf("%v does not say that there are no credentials", err)
	}
	if e := mongoerr.Wrap(mongoerr.StageAuth, err, ""); mongoerr.IsNetwork(e) || !mongoerr.IsAuth(e) {
		t.Errorf("%v counts as a failure of the server's network", err)
	}
}
