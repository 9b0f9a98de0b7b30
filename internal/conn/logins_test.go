package conn_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// loginAs logs in on one connection and runs a command that needs it.
func loginAs(t *testing.T, set *replset.Set, app string, cr *conn.Credential, cfg *tls.Config) error {
	t.Helper()
	c, err := conn.Open(t.Context(), set.Member(0).Addr(), &conn.Options{ConnectTimeout: 10 * time.Second, Credential: cr, TLS: cfg, AppName: app})
	if err != nil {
		return err
	}
	defer c.Close()
	if e := mongoerr.FromReply(command(t, c, "listDatabases")); e != nil {
		return e
	}
	return nil
}

// Seeds row 94: six trips of old are two. The server counts what one connection costs: exactly hello and saslContinue.
// Broken by a driver that does not speculate, or does not ask to skip the empty exchange, or asks for mechanisms apart.
func TestAnApplicationConnectionTakesHelloAndOneSaslContinue(t *testing.T) {
	set := replset.Run(t, replset.Options{Users: []replset.User{{Name: "joe", Password: "pencil"}}})
	for _, mechanism := range []string{"", auth.ScramSHA256, auth.ScramSHA1} {
		app := "counted " + mechanism
		if err := loginAs(t, set, app, &conn.Credential{Username: "joe", Password: "pencil", Mechanism: mechanism}, nil); err != nil {
			t.Fatal(err)
		}
		counts := set.Member(0).OpCounters(app)
		if len(counts) != 3 || counts["isMaster"] != 1 || counts["saslContinue"] != 1 || counts["listDatabases"] != 1 {
			t.Errorf("mechanism %q: %v", mechanism, counts)
		}
	}
}

func TestPlainLogsInAUserOfExternal(t *testing.T) {
	set := replset.Run(t, replset.Options{Users: []replset.User{{Name: "joe", Password: "pencil", DB: auth.External}}})
	cr := &conn.Credential{Username: "joe", Password: "pencil", Source: auth.External, Mechanism: auth.Plain}
	if err := loginAs(t, set, "plain", cr, nil); err != nil {
		t.Error(err)
	}
	if counts := set.Member(0).OpCounters("plain"); counts["saslStart"] != 1 || counts["saslContinue"] != 0 {
		t.Errorf("%v", counts)
	}
	cr.Password = "hunter2"
	if err := loginAs(t, set, "", cr, nil); !mongoerr.IsAuth(err) || !strings.Contains(err.Error(), "directory refused") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// The login rides in the hello: nothing follows it. Broken by a driver that does not speculate, or that takes the answer
// for a conversation of SASL.
func TestX509LogsInByTheHelloAlone(t *testing.T) {
	subject := replset.ClientSubject("ann")
	set := replset.Run(t, replset.Options{TLS: &replset.TLS{}, Users: []replset.User{{Name: subject, DB: auth.External}}})
	ann, err := set.ClientCertificate("ann", replset.Certificate{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := set.TLSConfig()
	cfg.Certificates = []tls.Certificate{ann}
	for _, name := range []string{"", subject} {
		app := "x509 " + name
		if err := loginAs(t, set, app, &conn.Credential{Username: name, Source: auth.External, Mechanism: auth.X509}, cfg); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if counts := set.Member(0).OpCounters(app); len(counts) != 2 || counts["isMaster"] != 1 {
			t.Errorf("%q: %v", name, counts)
		}
	}
	x509 := &conn.Credential{Source: auth.External, Mechanism: auth.X509}
	cfg.Certificates = nil
	if err := loginAs(t, set, "", x509, cfg); !mongoerr.IsAuth(err) || !strings.Contains(err.Error(), "no certificate was shown") {
		t.Errorf("without a certificate: %v", err)
	}
	if err := loginAs(t, set, "", &conn.Credential{Username: "CN=other", Source: auth.External, Mechanism: auth.X509}, set.TLSConfig()); !mongoerr.IsAuth(err) {
		t.Errorf("another name than the certificate's: %v", err)
	}
}

func TestRefusedLoginsSayWhatIsTheMatter(t *testing.T) {
	set := replset.Run(t, replset.Options{Users: []replset.User{
		{Name: "joe", Password: "pencil", Mechanisms: []string{auth.ScramSHA256}}, {Name: "ldap", Password: "pencil", DB: auth.External}}})
	for words, cr := range map[string]conn.Credential{
		"the user exists there, so the password must be wrong": {Username: "joe", Password: "hunter2"},
		`no such user in database "admin"`:                     {Username: "ann", Password: "hunter2"},
		`no such user in database "shop"`:                      {Username: "joe", Password: "hunter2", Source: "shop"},
		"the user has no key for this mechanism":               {Username: "joe", Password: "hunter2", Mechanism: auth.ScramSHA1},
		"does not offer the mechanism PLAIN":                   {Username: "joe", Password: "hunter2", Mechanism: auth.Plain},
		"does not offer the mechanism MONGODB-AWS":             {Username: "AK", Source: auth.External, Mechanism: auth.AWS},
		"the connection has no TLS":                            {Source: auth.External, Mechanism: auth.X509},
	} {
		err := loginAs(t, set, "", &cr, nil)
		e, _ := err.(*mongoerr.Error)
		if e == nil || e.Stage != mongoerr.StageAuth || !mongoerr.IsLoginRefused(err) || !strings.Contains(e.Error(), words) || strings.Contains(e.Error(), "hunter2") {
			t.Errorf("%q: %v", words, err)
		}
	}
	open := replset.Run(t)
	if err := loginAs(t, open, "", &conn.Credential{Username: "joe", Password: "hunter2"}, nil); !mongoerr.IsAuth(err) || !strings.Contains(err.Error(), "this server has no users at all") {
		t.Errorf("a server without users: %v", err)
	}
}

func TestReauthenticationSendsNoHello(t *testing.T) {
	set := replset.Run(t, replset.Options{Users: []replset.User{{Name: "joe", Password: "pencil"}}})
	o := &conn.Options{ConnectTimeout: 10 * time.Second, AppName: "again", Credential: &conn.Credential{Username: "joe", Password: "pencil"}}
	c, err := conn.Open(t.Context(), set.Member(0).Addr(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if err := c.Reauthenticate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if counts := set.Member(0).OpCounters("again"); counts["isMaster"] != 1 || counts["saslStart"] != 2 || counts["saslContinue"] != 3 {
		t.Errorf("%v", counts)
	}
	if e := mongoerr.FromReply(command(t, c, "listDatabases")); e != nil || c.Broken() {
		t.Errorf("%v", e)
	}
	if err := set.FailCommand(0, &replset.FailCommand{Commands: []string{"saslStart"}, ErrorCode: 18}); err != nil {
		t.Fatal(err)
	}
	if err := c.Reauthenticate(t.Context()); !mongoerr.IsAuth(err) || !c.Broken() {
		t.Errorf("%v, broken: %v", err, c.Broken())
	}
}

func TestNobodyIsLoggedInAgainWhoWasNot(t *testing.T) {
	c, err := conn.Open(t.Context(), replset.Run(t).Member(0).Addr(), &conn.Options{ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Reauthenticate(t.Context()); !mongoerr.IsAuth(err) || !strings.Contains(err.Error(), "nobody is logged in") {
		t.Errorf("%v", err)
	}
}
