package sextant

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

func parse(t *testing.T, uri string) *Config {
	t.Helper()
	c, err := ParseURI(uri)
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	return c
}

func TestEveryOptionOfAURIReachesItsField(t *testing.T) {
	c := parse(t, "mongodb://joe:p%40ss@DB1,db2:27018/shop?appName=a&authSource=users&authMechanism=SCRAM-SHA-1&connectTimeoutMS=1000"+
		"&heartbeatFrequencyMS=2000&localThresholdMS=0&maxConnecting=3&maxIdleTimeMS=4000&maxPoolSize=0&minPoolSize=5&readConcernLevel=majority"+
		"&readPreference=secondary&readPreferenceTags=dc:east,rack:1&readPreferenceTags=&maxStalenessSeconds=120&replicaSet=rs0&retryReads=false"+
		"&maxAdaptiveRetries=1&enableOverloadRetargeting=true&retryWrites=true&serverMonitoringMode=poll&serverSelectionTimeoutMS=6000&timeoutMS=7000&tls=true&waitQueueTimeoutMS=8000"+
		"&w=majority&journal=true&wTimeoutMS=9000&tlsCAFile=/x")
	if len(c.Warnings) != 0 {
		t.Errorf("warnings: %v", c.Warnings)
	}
	for name, ok := range map[string]bool{
		"hosts":       strings.Join(c.seeds(), " ") == "db1:27017 db2:27018",
		"user":        c.Username == "joe" && c.Password == "p@ss" && c.Database == "shop" && c.AuthSource == "users" && c.AuthMechanism == "SCRAM-SHA-1",
		"names":       c.AppName == "a" && c.ReplicaSet == "rs0" && c.ServerMonitoringMode == "poll",
		"times":       *c.ConnectTimeout == time.Second && c.HeartbeatFrequency == 2*time.Second && c.MaxIdleTime == 4*time.Second,
		"more times":  c.ServerSelectionTimeout == 6*time.Second && c.Timeout == 7*time.Second && c.WaitQueueTimeout == 8*time.Second,
		"threshold 0": c.LocalThreshold != nil && *c.LocalThreshold == 0,
		"pool":        c.MaxConnecting == 3 && *c.MaxPoolSize == 0 && c.MinPoolSize == 5,
		"retries":     !*c.RetryReads && *c.RetryWrites && *c.MaxAdaptiveRetries == 1 && c.EnableOverloadRetargeting,
		"read":        c.ReadConcern.Level == "majority" && c.ReadPreference.Mode() == readpref.SecondaryMode && len(c.ReadPreference.TagSets()) == 2,
		"write":       c.WriteConcern.W == "majority" && *c.WriteConcern.Journal && c.WriteConcern.WTimeout == 9*time.Second,
		"tls":         c.TLS && c.TLSCAFile == "/x",
	} {
		if !ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if d, set := c.ReadPreference.MaxStaleness(); !set || d != 2*time.Minute {
		t.Errorf("max staleness %v, %v", d, set)
	}
}

func TestSlaveOkMeansSecondaryPreferred(t *testing.T) {
	c := parse(t, "mongodb://a/?slaveOk=true")
	if c.ReadPreference.Mode() != readpref.SecondaryPreferredMode || len(c.Warnings) != 1 {
		t.Errorf("%v, %v", c.ReadPreference, c.Warnings)
	}
}

func TestUnusableConfigurationsAreRefusedByName(t *testing.T) {
	base := func() *Config { return &Config{Hosts: []string{"a"}} }
	for words, edit := range map[string]func(*Config){
		"no host":                          func(c *Config) { c.Hosts = nil },
		"host is empty":                    func(c *Config) { c.Hosts = []string{""} },
		"port":                             func(c *Config) { c.Hosts = []string{"a:99999"} },
		"not a host":                       func(c *Config) { c.Hosts = []string{"a:b:c"} },
		"directConnection":                 func(c *Config) { c.Hosts, c.DirectConnection = []string{"a", "b"}, true },
		"user name":                        func(c *Config) { c.Password = "s3cr3t" },
		"needs a user":                     func(c *Config) { c.AuthMechanism = "SCRAM-SHA-256" },
		"MAGIC":                            func(c *Config) { c.AuthMechanism, c.Username = "MAGIC", "joe" },
		"minPoolSize (5)":                  func(c *Config) { c.MinPoolSize, c.MaxPoolSize = 5, new(3) },
		"maxPoolSize":                      func(c *Config) { c.MaxPoolSize = new(-1) },
		"maxAdaptiveRetries":               func(c *Config) { c.MaxAdaptiveRetries = new(-1) },
		"maxConnecting":                    func(c *Config) { c.MaxConnecting = -1 },
		"heartbeatFrequencyMS":             func(c *Config) { c.HeartbeatFrequency = time.Millisecond },
		"HeartbeatTimeout":                 func(c *Config) { c.HeartbeatTimeout = -time.Second },
		"HeartbeatTimeout is 1":            func(c *Config) { c.HeartbeatTimeout = time.Millisecond },
		"localThresholdMS":                 func(c *Config) { c.LocalThreshold = new(-time.Second) },
		"timeoutMS":                        func(c *Config) { c.Timeout = -1 },
		"serverMonitoringMode":             func(c *Config) { c.ServerMonitoringMode = "guess" },
		"appName":                          func(c *Config) { c.AppName = strings.Repeat("x", 129) },
		"write concern":                    func(c *Config) { c.WriteConcern = concern.W(-1) },
		"no compressor":                    func(c *Config) { c.Compressors = []string{"lz4"} },
		"zlibCompressionLevel":             func(c *Config) { c.ZlibCompressionLevel = new(10) },
		"need a proxyHost":                 func(c *Config) { c.ProxyPort = 1080 },
		"need each other":                  func(c *Config) { c.ProxyHost, c.ProxyUsername = "p", "joe" },
		"proxyPort is":                     func(c *Config) { c.ProxyHost, c.ProxyPort = "p", 70000 },
		"takes one host, and there are 2":  func(c *Config) { c.Hosts, c.LoadBalanced = []string{"a", "b"}, new(true) },
		"loadBalanced=true and replicaSet": func(c *Config) { c.ReplicaSet, c.LoadBalanced = "rs0", new(true) },
		"loadBalanced=true and direct":     func(c *Config) { c.DirectConnection, c.LoadBalanced = true, new(true) },
		"tlsCAFile":                        func(c *Config) { c.TLSCAFile = filepath.Join(t.TempDir(), "none") },
		"tlsCertificateKeyFile":            func(c *Config) { c.TLSCertificateKeyFile = filepath.Join(t.TempDir(), "none") },
		"tlsInsecure":                      func(c *Config) { c.TLSInsecure, c.TLSAllowInvalidHostnames = true, true },
	} {
		c := base()
		edit(c)
		cl, err := ConnectConfig(context.Background(), c)
		if !mongoerr.IsConfig(err) || cl != nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
		if err != nil && strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the password is in %v", err)
		}
	}
	if cl, err := ConnectConfig(context.Background(), base()); err != nil || cl.Close(context.Background()) != nil {
		t.Errorf("the base: %v", err)
	}
	//lint:ignore SA1012 a nil context is what this is about
	if _, err := Connect(nil, "mongodb://a"); !mongoerr.IsConfig(err) { //nolint:staticcheck
		t.Errorf("nil context: %v", err)
	}
	if _, err := ConnectConfig(context.Background(), nil); !mongoerr.IsConfig(err) {
		t.Errorf("nil configuration: %v", err)
	}
}

func TestWarningsAreLoggedAndStrictMakesThemErrors(t *testing.T) {
	c := parse(t, "mongodb://joe:s3cr3t@a/?readPreferance=nearest")
	var log bytes.Buffer
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	cl, err := ConnectConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close(context.Background())
	if !strings.Contains(log.String(), "readPreferance") || strings.Contains(log.String(), "s3cr3t") || len(cl.Warnings()) != 1 {
		t.Errorf("log: %s", log.String())
	}
	c.Strict = true
	if _, err := ConnectConfig(context.Background(), c); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "readPreferance") {
		t.Errorf("strict: %v", err)
	}
}

func TestSecretsSentInClearAreWarnedOf(t *testing.T) {
	const oidc = "mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s"
	for uri, what := range map[string]string{
		"mongodb://joe:s3cret@h/?authMechanism=PLAIN":                 "the password in clear",
		"mongodb://joe:s3cret@h/?authMechanism=PLAIN&tls=false":       "the password in clear",
		"mongodb://joe:s3cret@%2Ftmp%2Fm.sock,h/?authMechanism=PLAIN": "the password in clear",
		oidc: "the token in clear",
		"mongodb://joe:s3cret@h/?authMechanism=PLAIN&tls=true":      "",
		"mongodb://joe:s3cret@%2Ftmp%2Fm.sock/?authMechanism=PLAIN": "",
		oidc + "&tls=true":        "",
		"mongodb://joe:s3cret@h/": "",
		"mongodb://joe:s3cret@h/?authMechanism=SCRAM-SHA-1&authSource=other":     "",
		"mongodb+srv://joe:s3cret@db.example.org/?authMechanism=PLAIN":           "",
		"mongodb+srv://joe:s3cret@db.example.org/?authMechanism=PLAIN&tls=false": "the password in clear",
	} {
		cfg, err := ParseURI(uri)
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(cfg.Warnings); !strings.Contains(text, what) || (what == "") != (len(cfg.Warnings) == 0) || strings.Contains(text, "s3cret") {
			t.Errorf("%s: %v, want %q", uri, cfg.Warnings, what)
		}
		if cfg.SRVHost != "" {
			continue
		}
		cfg.Strict = true // it concerns what is left out
		for _, secure := range []bool{false, true} {
			asFields := &Config{Hosts: cfg.Hosts, Username: cfg.Username, Password: cfg.Password, AuthMechanism: cfg.AuthMechanism, AuthSource: cfg.AuthSource,
				AuthMechanismProperties: cfg.AuthMechanismProperties, TLS: cfg.TLS}
			for _, c := range []*Config{cfg, asFields} {
				if secure {
					c.TLSConfig = &tls.Config{}
				}
				cl, err := ConnectConfig(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if got := len(cl.Warnings()) > 0; got != (what != "" && !secure) {
					t.Errorf("%s, TLS later %v: the client warns of %v", uri, secure, cl.Warnings())
				}
				_ = cl.Close(t.Context())
			}
		}
	}
}

func TestClientKeepsItsOwnCopyOfTheConfiguration(t *testing.T) {
	c := parse(t, "mongodb://a/?readPreference=nearest")
	cl, err := ConnectConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close(context.Background())
	c.Hosts[0], c.ReadPreference = "changed", nil
	if cl.cfg.Hosts[0] != "a:27017" || cl.ReadPreference().Mode() != readpref.NearestMode {
		t.Errorf("%v, %v", cl.cfg.Hosts, cl.ReadPreference())
	}
}

func TestTLSOptionsMakeOneConfiguration(t *testing.T) {
	for name, k := range map[string]struct {
		c               Config
		none, skip, own bool
	}{
		"none":      {Config{}, true, false, false},
		"tls":       {Config{TLS: true}, false, false, false},
		"insecure":  {Config{TLSInsecure: true}, false, true, false},
		"hostnames": {Config{TLSAllowInvalidHostnames: true}, false, true, true},
	} {
		tc, err := k.c.tls()
		if err != nil || (tc == nil) != k.none {
			t.Errorf("%s: %v, %v", name, tc, err)
			continue
		}
		if tc != nil && (tc.InsecureSkipVerify != k.skip || (tc.VerifyConnection != nil) != k.own) {
			t.Errorf("%s: %+v", name, tc)
		}
	}
	file := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Config{TLSCAFile: file}).tls(); !mongoerr.IsConfig(err) {
		t.Errorf("a file without a certificate: %v", err)
	}
}

func TestHostsGetTheDefaultPort(t *testing.T) {
	for in, want := range map[string]string{
		"DB1": "db1:27017", "a:1": "a:1", "[::1]": "[::1]:27017", "[::1]:5": "[::1]:5", "/tmp/Mongo.sock": "/tmp/Mongo.sock",
	} {
		if got := withPort(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
