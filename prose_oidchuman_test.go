package sextant_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// The prose tests of MONGODB-OIDC for people who log in (mongodb-oidc.md, "Human Authentication Flow Prose Tests").

// human makes a world of a person who logs in. change may be nil.
func human(t *testing.T, answer func(n int) (*sextant.OIDCCredential, error), providers []replset.OIDCProvider, change func(*sextant.Config)) *oidcWorld {
	t.Helper()
	return newOIDC(t, answer, providers, func(cfg *sextant.Config, f sextant.OIDCCallback) {
		cfg.OIDCHumanCallback = f
		if change != nil {
			change(cfg)
		}
	})
}

// refreshing returns a good token and a token to get the next by.
func refreshing(int) (*sextant.OIDCCredential, error) {
	return &sextant.OIDCCredential{AccessToken: "test_user1", RefreshToken: "dummy"}, nil
}

var two = []replset.OIDCProvider{
	{Issuer: "https://one.invalid", ClientID: "1", Users: []string{"test_user1"}},
	{Issuer: "https://two.invalid", ClientID: "2", Users: []string{"test_user2"}, RequestScopes: []string{"a", "b"}},
}

func user(name string) func(*sextant.Config) { return func(c *sextant.Config) { c.Username = name } }

// Broken by needing a user name (1.1), or by not sending the one that is given (1.2 to 1.4: with two providers the server
// cannot tell which).
func TestProseOIDCHuman1_1To1_4PeopleLogInAtTheirProvider(t *testing.T) {
	second := func(int) (*sextant.OIDCCredential, error) {
		return &sextant.OIDCCredential{AccessToken: "test_user2"}, nil
	}
	for name, k := range map[string]struct {
		answer    func(int) (*sextant.OIDCCredential, error)
		providers []replset.OIDCProvider
		user      string
		issuer    string
	}{
		"1.1": {refreshing, nil, "", "https://issuer.invalid"},
		"1.2": {refreshing, nil, "test_user1", "https://issuer.invalid"},
		"1.3": {refreshing, two, "test_user1", "https://one.invalid"},
		"1.4": {second, two, "test_user2", "https://two.invalid"},
	} {
		w := human(t, k.answer, k.providers, user(k.user))
		w.works(t, w.find)
		if w.called(t, 1); w.calls[0].IDPInfo.Issuer != k.issuer || w.calls[0].Username != k.user {
			t.Errorf("%s: the callback was told %+v", name, w.calls[0])
		}
	}
}

// Broken by a driver that sends an empty name in place of none, which a server may take for somebody.
func TestProseOIDCHuman1_5SeveralProvidersNeedAName(t *testing.T) {
	w := human(t, refreshing, two, nil)
	w.fails(t, w.find, "Authentication failed")
	w.called(t, 0)
}

// Broken by calling the callback before looking at the host, and by taking the host from the connection string's options.
func TestProseOIDCHuman1_6OtherHostsAreBlocked(t *testing.T) {
	for _, hosts := range [][]string{{}, {"example.com"}, {"localhost", "*.0.0.1.example.com"}} {
		w := human(t, refreshing, nil, func(c *sextant.Config) { c.OIDCAllowedHosts = hosts })
		w.fails(t, w.find, "is not on it")
		if w.called(t, 0); w.set.Member(0).OpCounters("oidc")["saslStart"] != 0 {
			t.Error("the server was asked")
		}
	}
	if _, err := sextant.ParseURI("mongodb://localhost/?authMechanism=MONGODB-OIDC&ignored=example.com"); err != nil {
		t.Error(err)
	}
}

// Broken by taking the list from the connection string, where a stranger may have put it.
func TestProseOIDCHuman1_7AllowedHostsInAStringAreRefused(t *testing.T) {
	_, err := sextant.ParseURI("mongodb://example.com/?authMechanism=MONGODB-OIDC&authMechanismProperties=ALLOWED_HOSTS:%5B%22example.com%22%5D")
	if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "ALLOWED_HOSTS") {
		t.Errorf("%v", err)
	}
}

// Broken by needing a client id: a provider for programs has none.
func TestProseOIDCHuman1_8ProvidersOfProgramsServePeopleToo(t *testing.T) {
	w := human(t, refreshing, []replset.OIDCProvider{{Issuer: "https://machines.invalid"}}, user("test_machine"))
	w.works(t, w.find)
	if a := w.calls[0]; a.IDPInfo.ClientID != "" || a.IDPInfo.Issuer != "https://machines.invalid" {
		t.Errorf("told %+v", a.IDPInfo)
	}
}

// Broken by the limit of connectTimeoutMS, which a person would not meet, or by leaving out what the provider is.
func TestProseOIDCHuman2_1CallbacksAreToldWhatTheyNeed(t *testing.T) {
	w := human(t, refreshing, two, user("test_user2"))
	w.mu.Lock()
	w.answer = func(int) (*sextant.OIDCCredential, error) {
		return &sextant.OIDCCredential{AccessToken: "test_user2"}, nil
	}
	w.mu.Unlock()
	w.works(t, w.find)
	a := w.calls[0]
	if a.Version != 1 || a.RefreshToken != "" || a.IDPInfo.ClientID != "2" || !slices.Equal(a.IDPInfo.RequestScopes, []string{"a", "b"}) {
		t.Errorf("told %+v, %+v", a, a.IDPInfo)
	}
	if w.limits[0] > 5*time.Minute || w.limits[0] < 290*time.Second {
		t.Errorf("limit %v", w.limits[0])
	}
}

// Broken by sending an empty token.
func TestProseOIDCHuman2_2CallbacksMustReturnAToken(t *testing.T) {
	w := human(t, func(int) (*sextant.OIDCCredential, error) { return &sextant.OIDCCredential{}, nil }, nil, nil)
	w.fails(t, w.find, "no access token")
}

// Broken by forgetting the refresh token, or by not passing it on.
func TestProseOIDCHuman2_3RefreshTokensArePassedOn(t *testing.T) {
	w := human(t, refreshing, nil, nil)
	w.works(t, w.find)
	w.fail(t, 1, 391, "find")
	w.works(t, w.find)
	w.called(t, 2)
	if a, b := w.calls[0], w.calls[1]; a.RefreshToken != "" || b.RefreshToken != "dummy" || b.IDPInfo == nil {
		t.Errorf("told %+v, then %+v", a, b)
	}
}

// Broken by a driver that does not put a cached token into its hello: its saslStart fails.
func TestProseOIDCHuman3_1CachedTokensGoIntoTheHello(t *testing.T) {
	w := human(t, refreshing, nil, nil)
	w.works(t, w.find)
	w.breakConnection(t)
	w.fail(t, 1, mongoerr.CodeAuthenticationFailed, "saslStart")
	w.works(t, w.find)
	w.called(t, 1)
}

// Broken by a driver that speculates with what it does not have.
func TestProseOIDCHuman3_2WithoutATokenThereIsNoSpeculation(t *testing.T) {
	w := human(t, refreshing, nil, nil)
	w.fail(t, 1, mongoerr.CodeAuthenticationFailed, "saslStart")
	w.fails(t, w.find, "")
	w.called(t, 0)
}

// Broken by passing error 391 on, or by telling of the login's own commands.
func TestProseOIDCHuman4_1ReauthenticationSucceeds(t *testing.T) {
	w := human(t, refreshing, nil, nil)
	w.works(t, w.find)
	w.called(t, 1)
	w.commands = nil
	w.fail(t, 1, 391, "find")
	w.works(t, w.find)
	w.called(t, 2)
	if want := []string{"+find", "!find", "+find", "-find"}; !slices.Equal(w.commands, want) {
		t.Errorf("events %v", w.commands)
	}
}

// Broken by needing a refresh token.
func TestProseOIDCHuman4_2ReauthenticationWorksWithoutRefreshing(t *testing.T) {
	w := human(t, valid, nil, nil)
	w.works(t, w.find)
	w.fail(t, 1, 391, "find")
	w.works(t, w.find)
	w.called(t, 2)
	if w.calls[1].RefreshToken != "" {
		t.Errorf("told %+v", w.calls[1])
	}
}

// Broken by giving up when the refresh token brings nothing good, or by passing it to the new login.
func TestProseOIDCHuman4_3ReauthenticationOutlivesAFailedRefresh(t *testing.T) {
	for _, code := range []int32{391, mongoerr.CodeAuthenticationFailed} {
		w := human(t, refreshing, nil, nil)
		w.works(t, w.find)
		w.called(t, 1)
		if code == 391 { // as the test was written at first
			w.fail(t, 2, 391, "find", "saslStart")
		} else { // a refresh token that has ended brings a token which the server refuses
			w.mu.Lock()
			w.answer = func(n int) (*sextant.OIDCCredential, error) {
				return &sextant.OIDCCredential{AccessToken: map[bool]string{true: "bad", false: "test_user1"}[n == 2]}, nil
			}
			w.mu.Unlock()
			w.fail(t, 1, 391, "find")
		}
		w.works(t, w.find)
		w.called(t, 3)
		if w.calls[1].RefreshToken != "dummy" || w.calls[2].RefreshToken != "" {
			t.Errorf("code %d: refresh tokens %q, %q", code, w.calls[1].RefreshToken, w.calls[2].RefreshToken)
		}
	}
}

// Broken by trying for ever.
func TestProseOIDCHuman4_4ReauthenticationFailsInTheEnd(t *testing.T) {
	w := human(t, refreshing, nil, nil)
	w.works(t, w.find)
	w.called(t, 1)
	w.fail(t, 3, 391, "find", "saslStart")
	if err := w.find(t); mongoerr.Code(err) != 391 || !strings.Contains(fmt.Sprint(err), "find") {
		t.Errorf("%v", err)
	}
	w.called(t, 2)
	w.works(t, w.find) // on another connection
	if w.called(t, 3); w.calls[2].RefreshToken != "" {
		t.Error("a refresh token that brought nothing good is kept")
	}
}

// A person takes longer than a connection may, which must not end the login.
func TestPeopleMayTakeLongerThanTheConnection(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Members, o.HeartbeatInterval, o.ElectionTimeout = 1, time.Minute, time.Hour // so that few things happen meanwhile
		o.OIDC = &replset.OIDC{Check: func(token string) (string, error) { return token, nil }}
		c.RetryReads = new(false)
		c.AuthMechanism, c.OIDCAllowedHosts = "MONGODB-OIDC", []string{"127.0.0.1"}
		c.OIDCHumanCallback = func(ctx context.Context, _ sextant.OIDCArgs) (*sextant.OIDCCredential, error) {
			time.Sleep(4 * time.Minute)
			return &sextant.OIDCCredential{AccessToken: "joe"}, nil
		}
	}, func(t *testing.T, b *bubble) {
		if err := b.find(t); err != nil {
			t.Fatal(err)
		}
		if b.at() < 4*time.Minute {
			t.Errorf("logged in after %v", b.at())
		}
	})
}
