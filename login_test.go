package sextant_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
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

func pinged(t *testing.T, cfg *sextant.Config) error {
	t.Helper()
	cl, err := sextant.ConnectConfig(t.Context(), cfg)
	if err != nil {
		return err
	}
	defer cl.Close(context.Background())
	_, err = cl.Database("shop").Collection("orders").EstimatedDocumentCount(t.Context())
	return err
}

func TestPlainAndX509LogInByAConnectionString(t *testing.T) {
	set := replset.Run(t, replset.Options{TLS: &replset.TLS{}, Users: []replset.User{
		{Name: "joe", Password: "p@ss", DB: "$external"}, {Name: replset.ClientSubject("client"), DB: "$external"}}})
	ca, client := set.TLSFiles()
	host := set.Member(0).Addr()
	for _, uri := range []string{
		"mongodb://joe:p%40ss@" + host + "/?authMechanism=PLAIN&tlsCAFile=" + url.QueryEscape(ca),
		"mongodb://" + host + "/?authMechanism=MONGODB-X509&tlsCAFile=" + url.QueryEscape(ca) + "&tlsCertificateKeyFile=" + url.QueryEscape(client),
	} {
		if err := pinged(t, must[*sextant.Config](t)(sextant.ParseURI(uri))); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestCredentialsAreCheckedBeforeAnythingIsDialled(t *testing.T) {
	keys := func(context.Context) (sextant.AWSCredentials, error) { return sextant.AWSCredentials{}, nil }
	for words, cfg := range map[string]sextant.Config{
		"Kerberos":                     {Username: "joe", AuthMechanism: "GSSAPI"},
		"removed from MongoDB 4.0":     {Username: "joe", Password: "hunter2", AuthMechanism: "MONGODB-CR"},
		"but no password":              {Username: "joe"},
		"but no user name":             {Password: "hunter2"},
		"needs a password":             {Username: "joe", AuthMechanism: "PLAIN"},
		"takes no password":            {Username: "joe", Password: "hunter2", AuthMechanism: "MONGODB-X509"},
		"no authSource but $external":  {AuthMechanism: "MONGODB-X509", AuthSource: "admin"},
		"takes no authMechanismProper": {Username: "joe", Password: "hunter2", AuthMechanism: "SCRAM-SHA-256", AuthMechanismProperties: map[string]string{"X": "hunter2"}},
		"needs TLS (tls=true) for db1": {Hosts: []string{"localhost", "db1"}, Username: "AK", Password: "hunter2", AuthMechanism: "MONGODB-AWS"},
		"or neither":                   {Username: "AK", AuthMechanism: "MONGODB-AWS", AWSCredentialProvider: keys},
		"belongs to MONGODB-AWS":       {AWSCredentialProvider: keys},
		"belong to MONGODB-OIDC":       {Username: "joe", Password: "hunter2", OIDCHumanCallback: func(context.Context, sextant.OIDCArgs) (*sextant.OIDCCredential, error) { return nil, nil }},
	} {
		if cfg.Hosts == nil {
			cfg.Hosts = []string{"localhost"}
		}
		_, err := sextant.ConnectConfig(t.Context(), &cfg)
		if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", words, err)
		}
	}
	for name, cfg := range map[string]sextant.Config{
		"AWS keys over TLS": {Hosts: []string{"db1"}, TLS: true, Username: "AK", Password: "x", AuthMechanism: "MONGODB-AWS"},
		"AWS keys at home":  {Hosts: []string{"[::1]:27017", "/tmp/m.sock", "127.0.0.2"}, Username: "AK", Password: "x", AuthMechanism: "MONGODB-AWS"},
		"AWS of a machine":  {Hosts: []string{"db1"}, AuthMechanism: "MONGODB-AWS"},
	} {
		cl, err := sextant.ConnectConfig(t.Context(), &cfg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cl.Close(t.Context())
	}
}

// everything is all that a client tells, printed with every field.
type everything struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (e *everything) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.Write(b)
}

func (e *everything) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.String()
}

func (e *everything) note(v any) { fmt.Fprintf(e, "%T %+v\n", v, v) }

func (e *everything) monitor() *event.Monitor {
	return &event.Monitor{
		CommandStarted:   func(_ context.Context, v *event.CommandStartedEvent) { e.note(*v) },
		CommandSucceeded: func(_ context.Context, v *event.CommandSucceededEvent) { e.note(*v) },
		CommandFailed:    func(_ context.Context, v *event.CommandFailedEvent) { e.note(*v) },
		Pool:             func(v *event.PoolEvent) { e.note(*v) },
		Heartbeat:        func(v *event.HeartbeatEvent) { e.note(*v) },
		TopologyChanged:  func(v *event.TopologyEvent) { e.note(*v) },
		Selection:        func(v *event.SelectionEvent) { e.note(*v) },
	}
}

// Logins that fail and logins that succeed, with every kind of secret: none of them is in an error, an event, a log
// record, or anything that a client prints.
func TestSecretsOfLoginsAppearNowhere(t *testing.T) {
	const secret = "hunter2"
	set := replset.Run(t, replset.Options{
		Users: []replset.User{{Name: "joe", Password: secret}, {Name: "joe", Password: secret, DB: "$external"}},
		OIDC:  &replset.OIDC{Check: func(token string) (string, error) { return "joe", nil }},
	})
	var all everything
	token := func(context.Context, sextant.OIDCArgs) (*sextant.OIDCCredential, error) {
		return &sextant.OIDCCredential{AccessToken: secret, RefreshToken: secret}, nil
	}
	failing := func(context.Context, sextant.OIDCArgs) (*sextant.OIDCCredential, error) {
		return &sextant.OIDCCredential{AccessToken: secret, ExpiresIn: -1}, nil
	}
	for name, cfg := range map[string]sextant.Config{
		"right":    {Username: "joe", Password: secret},
		"wrong":    {Username: "joe", Password: secret + "x"},
		"unknown":  {Username: "ann", Password: secret},
		"prepared": {Username: "joe", Password: secret + "\u0007"},
		"plain":    {Username: "joe", Password: secret, AuthMechanism: "PLAIN"},
		"no plain": {Username: "ann", Password: secret, AuthMechanism: "PLAIN"},
		"aws":      {Username: "AK", Password: secret, AuthMechanism: "MONGODB-AWS", AuthMechanismProperties: map[string]string{"AWS_SESSION_TOKEN": secret}},
		"oidc":     {AuthMechanism: "MONGODB-OIDC", OIDCMachineCallback: token},
		"person":   {AuthMechanism: "MONGODB-OIDC", OIDCHumanCallback: token},
		"no oidc":  {AuthMechanism: "MONGODB-OIDC", OIDCMachineCallback: failing},
	} {
		cfg.Hosts, cfg.ServerSelectionTimeout, cfg.Monitor = []string{set.Member(0).Addr()}, time.Second, all.monitor()
		cfg.Logger = slog.New(slog.NewTextHandler(&all, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cl, err := sextant.ConnectConfig(t.Context(), &cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = cl.Database("shop").Collection("orders").EstimatedDocumentCount(t.Context())
		if good := name == "right" || name == "plain" || name == "oidc" || name == "person"; (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
		for ; err != nil; err = errors.Unwrap(err) {
			fmt.Fprintf(&all, "%s: %v %+v %#v\n", name, err, err, err)
		}
		fmt.Fprintf(&all, "%v %+v %#v %+v\n", cl, cl, cfg, cl.Hosts())
		cl.Close(context.Background())
	}
	text := all.String()
	if at := strings.Index(text, secret); at >= 0 {
		t.Errorf("a secret is told: %.300s", text[max(at-200, 0):])
	}
	if !strings.Contains(text, "Authentication failed") || strings.Count(text, "\n") < 50 {
		t.Errorf("too little was told to prove anything: %d lines", strings.Count(text, "\n"))
	}
}

// The commands that "command logging and monitoring" calls sensitive, sent by the program itself.
func TestCommandsOfLoginsAreVeiledInEvents(t *testing.T) {
	set := replset.Run(t, replset.Options{Users: []replset.User{{Name: "joe", Password: "pencil"}}})
	var all everything
	cfg := must[*sextant.Config](t)(sextant.ParseURI(strings.Replace(set.URI(), "://", "://joe:pencil@", 1)))
	cfg.Monitor = all.monitor()
	cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), cfg))
	defer cl.Close(context.Background())
	secret := bson.Binary{Data: []byte("hunter2")}
	for _, cmd := range []bson.D{
		{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "PLAIN"}, {Key: "payload", Value: secret}},
		{{Key: "saslContinue", Value: 1}, {Key: "payload", Value: secret}},
		{{Key: "authenticate", Value: 1}, {Key: "mechanism", Value: "MONGODB-X509"}, {Key: "key", Value: "hunter2"}},
		{{Key: "createUser", Value: "ann"}, {Key: "pwd", Value: "hunter2"}, {Key: "roles", Value: bson.A{}}},
		{{Key: "updateUser", Value: "ann"}, {Key: "pwd", Value: "hunter2"}},
		{{Key: "hello", Value: 1}, {Key: "speculativeAuthenticate", Value: bson.D{{Key: "saslStart", Value: 1}, {Key: "payload", Value: "hunter2"}}}},
		{{Key: "isMaster", Value: 1}, {Key: "speculativeAuthenticate", Value: bson.D{{Key: "saslStart", Value: 1}, {Key: "payload", Value: "hunter2"}}}},
	} {
		_, _ = cl.Database("admin").RunCommand(t.Context(), cmd) // what comes of it does not matter
	}
	if text := all.String(); strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyM") || strings.Count(text, "CommandStartedEvent") != 7 {
		t.Errorf("%s", text)
	}
}

func TestWhoLogsNobodyInIsToldSo(t *testing.T) {
	set := replset.Run(t, replset.Options{Users: []replset.User{{Name: "joe", Password: "pencil"}}})
	err := pinged(t, must[*sextant.Config](t)(sextant.ParseURI(set.URI())))
	if mongoerr.Code(err) != mongoerr.CodeUnauthorized || !strings.Contains(err.Error(), "this client logs nobody in: put user:password@ before the host") {
		t.Errorf("%v", err)
	}
}
