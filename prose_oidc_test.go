package sextant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// The prose tests of MONGODB-OIDC for programs (mongodb-oidc.md), against the embedded set, which takes any text for a
// token. Those for people stand in prose_oidchuman_test.go.

// oidcWorld is a set that takes tokens, a client that gets them from a callback, and what both have seen.
type oidcWorld struct {
	set *replset.Set
	cl  *sextant.Client

	mu          sync.Mutex // guards all below
	refuse      int        // how many good tokens to refuse
	good        map[string]string
	calls       []sextant.OIDCArgs
	limits      []time.Duration // that the callback was given
	answer      func(n int) (*sextant.OIDCCredential, error)
	connections map[int64]bool // that commands were sent on
	commands    []string       // "+name" began, "-name" succeeded, "!name" failed
}

// valid always returns the same good token.
func valid(int) (*sextant.OIDCCredential, error) {
	return &sextant.OIDCCredential{AccessToken: "test_user1"}, nil
}

// machine makes a world of a program.
func machine(t *testing.T, answer func(n int) (*sextant.OIDCCredential, error)) *oidcWorld {
	t.Helper()
	return newOIDC(t, answer, nil, func(cfg *sextant.Config, f sextant.OIDCCallback) { cfg.OIDCMachineCallback = f })
}

func newOIDC(t *testing.T, answer func(n int) (*sextant.OIDCCredential, error), providers []replset.OIDCProvider, set func(*sextant.Config, sextant.OIDCCallback)) *oidcWorld {
	t.Helper()
	w := &oidcWorld{connections: map[int64]bool{}, good: map[string]string{"test_user1": "test_user1", "test_user2": "test_user2"}, answer: answer}
	w.set = replset.Run(t, replset.Options{OIDC: &replset.OIDC{Check: w.check, Providers: providers}})
	cfg, err := sextant.ParseURI(w.set.URI() + "&authMechanism=MONGODB-OIDC&retryReads=false&retryWrites=false&appName=oidc")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Monitor = w.monitor()
	set(cfg, w.callback)
	if w.cl, err = sextant.ConnectConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.cl.Close(context.Background()) })
	return w
}

func (w *oidcWorld) check(token string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse > 0 {
		w.refuse--
		return "", errors.New("refused for once")
	}
	if user := w.good[token]; user != "" {
		return user, nil
	}
	return "", errors.New("no good token")
}

// revoke makes the server refuse a token from now on.
func (w *oidcWorld) revoke(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.good, token)
}

func (w *oidcWorld) callback(ctx context.Context, args sextant.OIDCArgs) (*sextant.OIDCCredential, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, args)
	if end, limited := ctx.Deadline(); limited {
		w.limits = append(w.limits, time.Until(end))
	}
	return w.answer(len(w.calls))
}

func (w *oidcWorld) monitor() *event.Monitor {
	note := func(s string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.commands = append(w.commands, s)
	}
	return &event.Monitor{
		CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) {
			note("+" + e.Name)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.connections[e.ConnectionID] = true
		},
		CommandSucceeded: func(_ context.Context, e *event.CommandSucceededEvent) { note("-" + e.Name) },
		CommandFailed:    func(_ context.Context, e *event.CommandFailedEvent) { note("!" + e.Name) },
	}
}

func (w *oidcWorld) find(t *testing.T) error {
	_, err := w.cl.Database("test").Collection("c").FindOne(t.Context(), bson.D{})
	if errors.Is(err, sextant.ErrNoDocuments) {
		return nil
	}
	return err
}

func (w *oidcWorld) insert(t *testing.T) error {
	_, err := w.cl.Database("test").Collection("c").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	return err
}

// works wants operations to succeed.
func (w *oidcWorld) works(t *testing.T, op func(*testing.T) error) {
	t.Helper()
	if err := op(t); err != nil {
		t.Fatal(err)
	}
}

// fails wants an operation to fail with an error of authentication that holds the words and no token.
func (w *oidcWorld) fails(t *testing.T, op func(*testing.T) error, words string) {
	t.Helper()
	err := op(t)
	if err == nil || !mongoerr.IsAuth(err) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "test_user") {
		t.Fatalf("%v, wanted an error of authentication with %q", err, words)
	}
}

// called wants the callback to have been called so often.
func (w *oidcWorld) called(t *testing.T, n int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) != n {
		t.Fatalf("the callback was called %d times, wanted %d", len(w.calls), n)
	}
}

// fail sets a fail point for the next commands of these names.
func (w *oidcWorld) fail(t *testing.T, times int, code int32, commands ...string) {
	t.Helper()
	if err := w.set.FailCommand(0, &replset.FailCommand{Commands: commands, Times: times, ErrorCode: code, CloseConnection: code == 0}); err != nil {
		t.Fatal(err)
	}
}

// starts is how many saslStart the server has seen.
func (w *oidcWorld) starts() int64 { return w.set.Member(0).OpCounters("oidc")["saslStart"] }

// Broken by logging in without the callback, or twice.
func TestProseOIDC1_1CallbackIsCalledDuringAuthentication(t *testing.T) {
	w := machine(t, valid)
	w.works(t, w.find)
	w.called(t, 1)
}

// Broken by a token cached per connection, and by callbacks that run side by side.
func TestProseOIDC1_2CallbackIsCalledOnceForManyConnections(t *testing.T) {
	w := machine(t, func(int) (*sextant.OIDCCredential, error) { time.Sleep(50 * time.Millisecond); return valid(1) })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 100 {
				if err := w.find(t); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	w.called(t, 1)
}

// Broken by a callback without a limit, or with that of connectTimeoutMS, or without the version.
func TestProseOIDC2_1CallbacksAreToldWhatTheyNeed(t *testing.T) {
	w := machine(t, valid)
	w.works(t, w.find)
	if a := w.calls[0]; a.Version != 1 || a.IDPInfo != nil || a.RefreshToken != "" || a.Username != "" {
		t.Errorf("told %+v", a)
	}
	if len(w.limits) != 1 || w.limits[0] > time.Minute || w.limits[0] < 50*time.Second {
		t.Errorf("limits %v", w.limits)
	}
}

// Broken by sending an empty token to the server. 2.2: nothing is returned; 2.3: a credential without a token.
func TestProseOIDC2_2And2_3CallbacksMustReturnAToken(t *testing.T) {
	for _, got := range []*sextant.OIDCCredential{nil, {ExpiresIn: time.Hour}} {
		w := machine(t, func(int) (*sextant.OIDCCredential, error) { return got, nil })
		w.fails(t, w.find, "no access token")
		if n := w.starts(); n != 0 {
			t.Errorf("%d saslStart", n)
		}
	}
}

// Broken by a client that prefers one of two sources of tokens, or works with none. 2.4: with ENVIRONMENT and a callback;
// 2.5: with ALLOWED_HOSTS where no person logs in.
func TestProseOIDC2_4And2_5SourcesOfTokensMustBeClear(t *testing.T) {
	f := func(context.Context, sextant.OIDCArgs) (*sextant.OIDCCredential, error) { return valid(1) }
	for words, change := range map[string]func(*sextant.Config){
		"2 are given": func(c *sextant.Config) {
			c.AuthMechanismProperties, c.OIDCMachineCallback = map[string]string{"environment": "test"}, f
		},
		"and 2 are":   func(c *sextant.Config) { c.OIDCHumanCallback, c.OIDCMachineCallback = f, f },
		"0 are given": func(*sextant.Config) {},
		"no such property": func(c *sextant.Config) {
			c.AuthMechanismProperties, c.OIDCMachineCallback = map[string]string{"PROVIDER_NAME": "aws"}, f
		},
		"ALLOWED_HOSTS": func(c *sextant.Config) {
			c.AuthMechanismProperties = map[string]string{"ENVIRONMENT": "azure", "TOKEN_RESOURCE": "x", "ALLOWED_HOSTS": "a"}
		},
		"OIDCAllowedHosts": func(c *sextant.Config) { c.OIDCMachineCallback, c.OIDCAllowedHosts = f, []string{} },
	} {
		cfg := &sextant.Config{Hosts: []string{"localhost"}, AuthMechanism: "MONGODB-OIDC"}
		change(cfg)
		if _, err := sextant.ConnectConfig(t.Context(), cfg); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

// Broken by raising the refusal of a cached token, or by trying it again. The cache is spoiled by revoking the token that
// it holds, so that the callback has been called once before.
func TestProseOIDC3_1RefusedCachedTokensAreReplaced(t *testing.T) {
	w := machine(t, func(n int) (*sextant.OIDCCredential, error) {
		return &sextant.OIDCCredential{AccessToken: fmt.Sprintf("test_user%d", n)}, nil
	})
	w.works(t, w.find)
	w.revoke("test_user1")
	w.breakConnection(t)
	w.works(t, w.find)
	w.called(t, 2)
	if n := w.starts(); n != 3 { // the first login; then, after a speculative one, the cached token and the new one
		t.Errorf("%d saslStart", n)
	}
}

// breakConnection has the client lose its connection.
func (w *oidcWorld) breakConnection(t *testing.T) {
	t.Helper()
	w.fail(t, 1, 0, "find")
	if err := w.find(t); !mongoerr.IsNetwork(err) {
		t.Fatalf("the connection was not lost: %v", err)
	}
}

// Broken by asking the callback again for a token that was refused when it was new.
func TestProseOIDC3_2RefusedNewTokensAreAnError(t *testing.T) {
	w := machine(t, func(int) (*sextant.OIDCCredential, error) { return &sextant.OIDCCredential{AccessToken: "bad"}, nil })
	w.fails(t, w.find, "the token was refused")
	w.called(t, 1)
}

// Broken by invalidating the token after any error.
func TestProseOIDC3_3OtherErrorsKeepTheToken(t *testing.T) {
	w := machine(t, valid)
	w.fail(t, 1, mongoerr.CodeIllegalOperation, "saslStart")
	if err := w.find(t); mongoerr.Code(err) != mongoerr.CodeIllegalOperation {
		t.Fatalf("%v", err)
	}
	w.called(t, 1)
	w.works(t, w.find)
	w.called(t, 1)
}

// The same for a token that is cached: the hello's step is refused, and then saslStart fails for another reason.
// Broken by asking for a new token after any failure with the cached one.
func TestOtherErrorsKeepACachedToken(t *testing.T) {
	w := machine(t, valid)
	w.works(t, w.find)
	w.breakConnection(t)
	w.mu.Lock()
	w.refuse = 1
	w.mu.Unlock()
	w.fail(t, 1, mongoerr.CodeIllegalOperation, "saslStart")
	if err := w.find(t); mongoerr.Code(err) != mongoerr.CodeIllegalOperation {
		t.Fatalf("%v", err)
	}
	w.works(t, w.find)
	w.called(t, 1)
}

// Broken by passing error 391 on, by a hello in the middle of a connection, or by logging in again with the same token.
func TestProseOIDC4_1ReauthenticationSucceeds(t *testing.T) {
	w := machine(t, valid)
	w.works(t, w.find)
	w.fail(t, 1, 391, "find")
	w.works(t, w.find)
	w.called(t, 2)
	if len(w.connections) != 1 {
		t.Errorf("connections %v", w.connections)
	}
	if want := []string{"+find", "-find", "+find", "!find", "+find", "-find"}; !slices.Equal(w.commands, want) {
		t.Errorf("events %v", w.commands)
	}
}

// Broken by hiding that a login failed in the middle of a connection: 4.2 for reads, 4.3 for writes.
func TestProseOIDC4_2And4_3OperationsFailIfReauthenticationDoes(t *testing.T) {
	for command, op := range map[string]func(*oidcWorld, *testing.T) error{"find": (*oidcWorld).find, "insert": (*oidcWorld).insert} {
		w := machine(t, func(n int) (*sextant.OIDCCredential, error) {
			return &sextant.OIDCCredential{AccessToken: map[bool]string{true: "test_user1", false: "bad"}[n == 1]}, nil
		})
		run := func(t *testing.T) error { return op(w, t) }
		w.works(t, run)
		w.fail(t, 1, 391, command)
		w.fails(t, run, "the token was refused")
		w.called(t, 2)
	}
}

// Broken by a reauthentication that takes the hello's speculative answer of long ago for its own. The cache is filled by
// a first connection, which costs the one call and the one saslStart before.
func TestProseOIDC4_4ReauthenticationDoesNotSpeculate(t *testing.T) {
	w := machine(t, valid)
	w.works(t, w.find)
	w.breakConnection(t)
	w.works(t, w.insert)
	w.called(t, 1)
	if n := w.starts(); n != 1 {
		t.Fatalf("the second connection was not logged in by its hello: %d saslStart", n)
	}
	w.fail(t, 1, 391, "insert")
	w.works(t, w.insert)
	w.called(t, 2)
	if n := w.starts(); n != 2 {
		t.Errorf("%d saslStart", n)
	}
}

// Broken by a reauthentication inside the session, or by a session that is lost with the login. The session is the one
// that every operation has: there is no other yet.
func TestProseOIDC4_5ReauthenticationKeepsTheSession(t *testing.T) {
	w := machine(t, valid)
	var mu sync.Mutex
	var sessions []string
	w.works(t, w.insert)
	w.fail(t, 1, 391, "insert")
	old := w.set.Member(0).OpCounters("oidc")["saslStart"]
	cl := w.watched(t, func(e *event.CommandStartedEvent) {
		mu.Lock()
		defer mu.Unlock()
		sessions = append(sessions, e.Command.Lookup("lsid").String())
	})
	if _, err := cl.Database("test").Collection("c").InsertOne(t.Context(), bson.D{{Key: "x", Value: 2}}); err != nil {
		t.Fatal(err)
	}
	if len(sessions) != 2 || sessions[0] != sessions[1] || strings.Contains(sessions[0], "null") {
		t.Errorf("sessions %v", sessions)
	}
	if n := w.starts() - old; n != 2 { // of the new client's first login, and of its second
		t.Errorf("%d saslStart", n)
	}
}

// watched is another client of the world, with an observer of its commands.
func (w *oidcWorld) watched(t *testing.T, f func(*event.CommandStartedEvent)) *sextant.Client {
	t.Helper()
	cfg, err := sextant.ParseURI(w.set.URI() + "&authMechanism=MONGODB-OIDC&appName=oidc")
	if err != nil {
		t.Fatal(err)
	}
	cfg.OIDCMachineCallback = w.callback
	cfg.Monitor = &event.Monitor{CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) { f(e) }}
	cl, err := sextant.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close(context.Background()) })
	return cl
}
