package sextant_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// The prose tests 1 to 14 of the authentication specification, "SCRAM-SHA-256 and mechanism negotiation", against the
// embedded set, whose half of SCRAM is another's code. Tests 15 and 16 stand in internal/auth.

// scramSet has the five users of steps 1 and 4.
func scramSet(t *testing.T) *replset.Set {
	return replset.Run(t, replset.Options{Users: []replset.User{
		{Name: "sha1", Password: "sha1", Mechanisms: []string{"SCRAM-SHA-1"}},
		{Name: "sha256", Password: "sha256", Mechanisms: []string{"SCRAM-SHA-256"}},
		{Name: "both", Password: "both", Mechanisms: []string{"SCRAM-SHA-1", "SCRAM-SHA-256"}},
		{Name: "IX", Password: "IX", Mechanisms: []string{"SCRAM-SHA-256"}},
		{Name: "\u2168", Password: "\u2163", Mechanisms: []string{"SCRAM-SHA-256"}},
	}})
}

// dbstats logs in, by the string and by a configuration, and runs a command that needs it. It returns what the server
// counted of the first login.
func dbstats(t *testing.T, set *replset.Set, app, userinfo, options string) (counts map[string]int64, err error) {
	t.Helper()
	uri := strings.Replace(set.URI(), "://", "://"+userinfo+"@", 1) + "&appName=" + app + options
	cfg, err := sextant.ParseURI(uri)
	if err != nil {
		t.Fatal(err)
	}
	if err = runStats(t, cfg); err != nil {
		return nil, err
	}
	counts = set.Member(0).OpCounters(app)
	byCode := &sextant.Config{Hosts: cfg.Hosts, Username: cfg.Username, Password: cfg.Password, AuthMechanism: cfg.AuthMechanism}
	if err := runStats(t, byCode); err != nil {
		t.Errorf("%s by a configuration: %v", app, err)
	}
	return counts, nil
}

func runStats(t *testing.T, cfg *sextant.Config) error {
	t.Helper()
	cl, err := sextant.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close(context.Background())
	_, err = cl.Database("admin").RunCommand(t.Context(), bson.D{{Key: "dbstats", Value: 1}})
	return err
}

// scramLogin wants a login to succeed, and by SHA-256: then the step in the hello was the first of it, and no saslStart
// follows; for a user with SHA-1 alone one does.
func scramLogin(t *testing.T, set *replset.Set, app, userinfo, mechanism string, starts int64) {
	t.Helper()
	options := ""
	if mechanism != "" {
		options = "&authMechanism=" + mechanism
	}
	counts, err := dbstats(t, set, app, userinfo, options)
	if err != nil {
		t.Errorf("%s: %v", app, err)
		return
	}
	if counts["saslStart"] != starts || counts["saslContinue"] != 1 || counts["dbStats"]+counts["dbstats"] != 1 {
		t.Errorf("%s: the server counted %v, wanted %d saslStart and 1 saslContinue", app, counts, starts)
	}
}

// Broken by a driver that cannot speak SCRAM-SHA-1 (1, 5), or that takes the wrong password digest for it.
// Broken by negotiating SHA-256 whatever the server says (2), or SHA-1 always (4, 7): then saslStart is counted.
// Broken by speculating with another mechanism than the configured one (1, 3, 5, 6): then saslStart is counted.
func TestProseScram1To7EachUserLogsInByItsMechanisms(t *testing.T) {
	set := scramSet(t)
	scramLogin(t, set, "prose1", "sha1:sha1", "SCRAM-SHA-1", 0)
	scramLogin(t, set, "prose2", "sha1:sha1", "", 1)
	scramLogin(t, set, "prose3", "sha256:sha256", "SCRAM-SHA-256", 0)
	scramLogin(t, set, "prose4", "sha256:sha256", "", 0)
	scramLogin(t, set, "prose5", "both:both", "SCRAM-SHA-1", 0)
	scramLogin(t, set, "prose6", "both:both", "SCRAM-SHA-256", 0)
	scramLogin(t, set, "prose7", "both:both", "", 0)
}

// Broken by negotiating although a mechanism is configured: then the logins succeed.
func TestProseScram8And9OtherMechanismsFail(t *testing.T) {
	set := scramSet(t)
	for name, k := range map[string][2]string{"prose8": {"sha1:sha1", "SCRAM-SHA-256"}, "prose9": {"sha256:sha256", "SCRAM-SHA-1"}} {
		_, err := dbstats(t, set, name, k[0], "&authMechanism="+k[1])
		if !mongoerr.IsAuth(err) || !strings.Contains(err.Error(), "leave authMechanism out") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Broken by failing at the hello because it names no mechanisms, or by an error that is not one of authentication.
func TestProseScram10UnknownUsersFailAsWrongPasswordsDo(t *testing.T) {
	set := scramSet(t)
	_, unknown := dbstats(t, set, "prose10", "nobody:pw", "")
	_, wrong := dbstats(t, set, "prose10", "both:pw", "")
	for _, err := range []error{unknown, wrong} {
		if !mongoerr.IsAuth(err) || mongoerr.Code(err) != mongoerr.CodeAuthenticationFailed {
			t.Errorf("%v", err)
		}
	}
	if !strings.Contains(unknown.Error(), `no such user in database "admin"`) || !strings.Contains(wrong.Error(), "password must be wrong") {
		t.Errorf("the two are not told apart:\n%v\n%v", unknown, wrong)
	}
}

// Broken by preparing user names too (13, 14: the user IX has another password), or passwords not at all (12, 13, 14).
func TestProseScram11To14PasswordsArePreparedAndNamesAreNot(t *testing.T) {
	set := scramSet(t)
	scramLogin(t, set, "prose11", "IX:IX", "", 0)
	scramLogin(t, set, "prose12", "IX:I%C2%ADX", "", 0)
	scramLogin(t, set, "prose13", "%E2%85%A8:IV", "", 0)
	scramLogin(t, set, "prose14", "%E2%85%A8:I%C2%ADV", "", 0)
}
