package credential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/internal/auth"
)

func environment(t *testing.T, s *stub, env map[string]string, name, resource, user string) (string, error) {
	t.Helper()
	f, err := s.system(env).Environment(name, resource)
	if err != nil {
		t.Fatal(err)
	}
	return NewMachine(user, f).Machine(t.Context())
}

func TestTokensOfAzure(t *testing.T) {
	query := ""
	s := newStub(t, map[string]http.HandlerFunc{"GET 169.254.169.254/metadata/identity/oauth2/token": func(w http.ResponseWriter, r *http.Request) {
		if query = r.URL.RawQuery; r.Header.Get("Metadata") != "true" || r.Header.Get("Accept") != "application/json" {
			w.WriteHeader(400)
		}
		io.WriteString(w, `{"access_token":"azure-token","expires_in":"3599"}`)
	}})
	if token, err := environment(t, s, nil, Azure, "mongodb://my cluster", ""); token != "azure-token" || err != nil || query != "api-version=2018-02-01&resource=mongodb%3A%2F%2Fmy+cluster" {
		t.Errorf("%q, %v, %s", token, err, query)
	}
	if _, err := environment(t, s, nil, Azure, "r", "id&1"); err != nil || !strings.HasSuffix(query, "&client_id=id%261") {
		t.Errorf("%v, %s", err, query)
	}
	_, err := environment(t, s, map[string]string{"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://pod"}, Azure, "r", "")
	if mustFail(t, err); !strings.Contains(err.Error(), "http://pod/metadata") {
		t.Errorf("%v", err)
	}
}

func TestTokensOfGoogleCloud(t *testing.T) {
	s := newStub(t, map[string]http.HandlerFunc{"GET metadata/computeMetadata/v1/instance/service-accounts/default/identity": func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" || r.URL.Query().Get("audience") != "mongodb://c" {
			w.WriteHeader(400)
		}
		io.WriteString(w, "gcp-token")
	}})
	if token, err := environment(t, s, nil, GCP, "mongodb://c", ""); token != "gcp-token" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	_, err := environment(t, s, map[string]string{"GCE_METADATA_HOST": "elsewhere"}, GCP, "r", "")
	if mustFail(t, err); !strings.Contains(err.Error(), "http://elsewhere/") || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
}

// The files in order (authentication specification, "Kubernetes").
func TestTokensOfKubernetes(t *testing.T) {
	for _, env := range []map[string]string{{"AZURE_FEDERATED_TOKEN_FILE": "/token", "AWS_WEB_IDENTITY_TOKEN_FILE": "/other"}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}} {
		if token, err := environment(t, &stub{}, env, Kubernetes, "", ""); token != "the.web.token" || err != nil {
			t.Errorf("%v: %q, %v", env, token, err)
		}
	}
	_, err := environment(t, &stub{}, nil, Kubernetes, "", "")
	if mustFail(t, err); !strings.Contains(err.Error(), "/var/run/secrets/kubernetes.io/serviceaccount/token") {
		t.Errorf("%v", err)
	}
}

func TestTokensOfTheTestEnvironment(t *testing.T) {
	if token, err := environment(t, &stub{}, map[string]string{"OIDC_TOKEN_FILE": "/token"}, Test, "", ""); token != "the.web.token" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	_, err := environment(t, &stub{}, nil, Test, "", "")
	mustFail(t, err)
	if _, err := (System{}).Environment("aws", ""); err == nil {
		t.Error("an unknown environment was taken")
	}
}

// Without the turn, callbacks run side by side; without the look at the cache after it, each caller calls its own.
func TestOneCallbackServesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		o := NewMachine("", func(context.Context, OIDCArgs) (OIDCToken, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return OIDCToken{AccessToken: "token"}, nil
		})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if token, err := o.Machine(t.Context()); token != "token" || err != nil {
					t.Errorf("%q, %v", token, err)
				}
			})
		}
		wg.Wait()
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

func TestCallbacksAreATenthOfASecondApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		o := NewMachine("", func(context.Context, OIDCArgs) (OIDCToken, error) {
			n++
			return OIDCToken{AccessToken: fmt.Sprint("t", n)}, nil
		})
		start := time.Now()
		for i := range 3 {
			token, err := o.Machine(t.Context())
			if token != fmt.Sprint("t", i+1) || err != nil {
				t.Errorf("%q, %v", token, err)
			}
			o.Invalidate("somebody else's")
			if o.Cached() != token {
				t.Error("invalidating another token dropped the good one")
			}
			o.Invalidate(token)
		}
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestWhoWaitsForACallbackMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewHuman("", func(ctx context.Context, _ OIDCArgs) (OIDCToken, error) { <-ctx.Done(); return OIDCToken{}, ctx.Err() }, nil)
		start := time.Now()
		first := make(chan error)
		go func() { _, err := o.LogIn(t.Context(), auth.IDPInfo{}); first <- err }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := o.LogIn(ctx, auth.IDPInfo{})
		if mustFail(t, err); time.Since(start) != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second: %v after %v", err, time.Since(start))
		}
		err = <-first
		if mustFail(t, err); time.Since(start) != HumanTimeout || !strings.Contains(err.Error(), "longer than 5m") {
			t.Errorf("first: %v after %v", err, time.Since(start))
		}
	})
}

func TestCallbacksThatReturnNonsenseAreRefused(t *testing.T) {
	for want, got := range map[string]OIDCToken{"no access token": {RefreshToken: "hunter2"}, "expires in -1s": {AccessToken: "hunter2", ExpiresIn: -time.Second}} {
		o := NewMachine("", func(context.Context, OIDCArgs) (OIDCToken, error) { return got, nil })
		_, err := o.Machine(t.Context())
		if mustFail(t, err); !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || o.Cached() != "" {
			t.Errorf("%q: %v", want, err)
		}
	}
	o := NewMachine("", func(context.Context, OIDCArgs) (OIDCToken, error) { panic("hunter2") })
	_, err := o.Machine(t.Context())
	if mustFail(t, err); !strings.Contains(err.Error(), "panicked") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestRefreshTokensGoToTheNextCallOnly(t *testing.T) {
	var got []OIDCArgs
	o := NewHuman("joe", func(_ context.Context, a OIDCArgs) (OIDCToken, error) {
		got = append(got, a)
		if a.RefreshToken != "" { // the provider lets it be used again
			return OIDCToken{AccessToken: fmt.Sprint("t", len(got))}, nil
		}
		return OIDCToken{AccessToken: fmt.Sprint("t", len(got)), RefreshToken: fmt.Sprint("r", len(got))}, nil
	}, nil)
	idp := auth.IDPInfo{Issuer: "https://issuer"}
	if o.CanRefresh() {
		t.Error("there is something to refresh before anybody logged in")
	}
	if _, err := o.LogIn(t.Context(), idp); err != nil || !o.CanRefresh() {
		t.Fatalf("%v, can refresh: %v", err, o.CanRefresh())
	}
	o.Invalidate("t1")
	if token, err := o.Refresh(t.Context()); token != "t2" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	o.Invalidate("t2")
	if !o.CanRefresh() {
		t.Error("a refresh token that was used and not replaced is forgotten")
	}
	o.ForgetRefresh()
	if o.CanRefresh() {
		t.Error("a refused refresh token is kept")
	}
	if _, err := o.LogIn(t.Context(), idp); err != nil || len(got) != 3 {
		t.Fatalf("%v, %d calls", err, len(got))
	}
	for i, want := range []string{"", "r1", ""} {
		if a := got[i]; a.RefreshToken != want || a.Version != 1 || a.Username != "joe" || a.IDPInfo.Issuer != "https://issuer" {
			t.Errorf("call %d was told %+v", i+1, a)
		}
	}
}

func TestTokensOfPeopleGoToAllowedHostsAlone(t *testing.T) {
	human := func(hosts []string) *OIDC {
		return NewHuman("", func(context.Context, OIDCArgs) (OIDCToken, error) { return OIDCToken{}, nil }, hosts)
	}
	for addr, allowed := range map[string]bool{
		"c0.abc.mongodb.net:27017": true, "C0.ABC.MongoDB.net:27017": true, "localhost:1": true, "127.0.0.1:1": true, "[::1]:27017": true,
		"mongodb.net:27017": false, "evilmongodb.net:27017": false, "c0.mongodb.net.evil.com:27017": false, "example.com:27017": false, "/tmp/m.sock": false,
	} {
		if err := human(nil).CheckHost(addr); (err == nil) != allowed {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := human([]string{}).CheckHost("localhost:27017"); err == nil {
		t.Error("an empty list allows localhost")
	}
	if err := human([]string{"*.Example.com", "db"}).CheckHost("a.b.example.com:1"); err != nil {
		t.Error(err)
	}
	if err := NewMachine("", nil).CheckHost("example.com:1"); err != nil {
		t.Errorf("a program's token: %v", err)
	}
}

func TestTokensAreNeverPrinted(t *testing.T) {
	token := OIDCToken{AccessToken: "hunter2", RefreshToken: "hunter3"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if s := fmt.Sprintf(verb, token) + fmt.Sprintf(verb, &token); strings.Contains(s, "hunter") {
			t.Errorf("%s: %s", verb, s)
		}
	}
}
