package sextant_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
	"github.com/youmark/pkcs8"
)

// soon lets a selection that cannot succeed fail quickly.
func soon(c *sextant.Config) { c.ServerSelectionTimeout = 3 * time.Second }

// plainURI is the set's URI without its TLS options, to which a test adds its own.
func plainURI(set *replset.Set, options ...string) string {
	uri, _, _ := strings.Cut(set.URI(), "&tls=")
	return strings.Join(append([]string{uri}, options...), "&")
}

// overTLS runs a test over sets on a network in memory and on fake time, where a selection that cannot succeed costs none.
// o nil: the set has no TLS.
func overTLS(t *testing.T, o *replset.TLS, f func(t *testing.T, s *tlsSet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		if o != nil {
			o.Dir = t.TempDir()
		}
		f(t, &tlsSet{replset.Run(t, replset.Options{Network: network, TLS: o}), network})
	})
}

type tlsSet struct {
	*replset.Set
	network *replset.MemoryNetwork // nil: sockets
}

// client is a client with these options in the place of the set's.
func (s *tlsSet) client(t *testing.T, options string, edits ...func(*sextant.Config)) *sextant.Client {
	t.Helper()
	return connect(t, plainURI(s.Set, options), append(edits, func(c *sextant.Config) {
		if s.network != nil {
			c.Dial = s.network.Dial
		}
	})...)
}

// tlsCase is a client's options, and what its first line must say; "" if it must get through.
type tlsCase struct{ options, words string }

func (s *tlsSet) check(t *testing.T, cases ...tlsCase) {
	t.Helper()
	for _, k := range cases {
		edit := soon
		if k.words == "" {
			edit = func(*sextant.Config) {}
		}
		err := ping(s.client(t, k.options, edit))()
		switch {
		case k.words == "" && err != nil:
			t.Errorf("%s: %v", k.options, err)
		case k.words != "" && (err == nil || !strings.Contains(first(err), k.words)):
			t.Errorf("%s: %v; want %q in the first line", k.options, err, k.words)
		}
	}
}

func TestSetAndDriverSpeakTLSThroughAFailover(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3, TLS: &replset.TLS{ClientCertificates: true}})
	cl := connect(t, set.URI())
	kept := cl.Database("shop").Collection("kept", sextant.CollectionOptions{WriteConcern: concern.Majority()})
	ctx := testContext(t)
	insert := func(n int) {
		t.Helper()
		if _, err := kept.InsertOne(ctx, bson.D{{Key: "_id", Value: n}}); err != nil {
			t.Fatal(err)
		}
	}
	insert(1)
	for _, hurt := range []func() error{
		func() error { return set.StepDown(ctx) },
		func() error { return set.Kill(set.Primary().Index()) },
	} {
		if err := hurt(); err != nil {
			t.Fatal(err)
		}
		insert(int(time.Now().UnixNano()))
	}
	if n, err := kept.CountDocuments(ctx, bson.D{}); err != nil || n != 3 {
		t.Errorf("%d documents, %v", n, err)
	}
}

func TestTLSOptionsDecideWhomTheClientTrusts(t *testing.T) {
	overTLS(t, &replset.TLS{}, trustedAsTheOptionsSay)
}

func trustedAsTheOptionsSay(t *testing.T, set *tlsSet) {
	ca, _ := set.TLSFiles()
	trust := "tlsCAFile=" + ca
	const (
		unknown = "an authority that this client does not trust"
		wrong   = "certificate is for db.example, not for 127.0.0.1"
	)
	now := time.Now()
	for _, k := range []struct {
		name  string
		cert  replset.Certificate
		cases []tlsCase
	}{
		{"good", replset.Certificate{}, []tlsCase{
			{trust, ""}, {"tls=true&" + trust, ""}, {"ssl=true", unknown}, {"tls=true", unknown}, {"tlsInsecure=true", ""},
			{"tlsAllowInvalidCertificates=true", ""}, {"tlsAllowInvalidHostnames=true", unknown}, {"tlsAllowInvalidHostnames=true&" + trust, ""},
			{trust + "&tlsDisableOCSPEndpointCheck=true", ""}, {trust + "&tlsDisableCertificateRevocationCheck=true", ""},
			{"tlsInsecure=false&" + trust, ""}, {"tls=false&" + trust, "it may want TLS (tls=true)"}, {"retryReads=true", "it may want TLS (tls=true)"},
		}},
		{"another host", replset.Certificate{Names: []string{"db.example"}}, []tlsCase{
			{trust, wrong}, {"tlsAllowInvalidHostnames=true&" + trust, ""}, {"tlsAllowInvalidHostnames=true", unknown},
			{"tlsAllowInvalidCertificates=true", ""}, {"tlsInsecure=true", ""},
		}},
		{"no host", replset.Certificate{Names: []string{}}, []tlsCase{{trust, "certificate is for no host"}}},
		{"expired", replset.Certificate{NotAfter: now.Add(-time.Minute)}, []tlsCase{
			{trust, "certificate has expired on " + now.Add(-time.Minute).UTC().Format("2006-01-02 15:04")},
			{"tlsAllowInvalidHostnames=true&" + trust, "has expired on"}, {"tlsAllowInvalidCertificates=true", ""}, {"tlsInsecure=true", ""},
		}},
		{"not yet valid", replset.Certificate{NotBefore: now.Add(time.Hour)}, []tlsCase{{trust, "certificate is not valid before"}}},
		{"stranger", replset.Certificate{Stranger: true}, []tlsCase{{trust, unknown}, {"tlsInsecure=true", ""}}},
		{"good again", replset.Certificate{}, []tlsCase{{trust, ""}}},
	} {
		t.Logf("certificate: %s", k.name)
		if err := set.Certify(0, k.cert); err != nil {
			t.Fatal(err)
		}
		set.check(t, k.cases...)
	}
}

// pemOf writes a certificate and its key, encrypted if there is a password, into one file.
func pemOf(t *testing.T, c tls.Certificate, password string) string {
	t.Helper()
	key := &pem.Block{Type: "PRIVATE KEY"}
	if password != "" {
		key.Type = "ENCRYPTED PRIVATE KEY"
	}
	key.Bytes = must[[]byte](t)(pkcs8.MarshalPrivateKey(c.PrivateKey, []byte(password), nil))
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), pem.EncodeToMemory(key)...)
	file := filepath.Join(t.TempDir(), "client.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestServerThatDemandsClientCertificatesSaysWhatIsWrongWithThem(t *testing.T) {
	// Over sockets: they take a client's hello after the server has closed, so that what it said before is read.
	set := &tlsSet{replset.Run(t, replset.Options{TLS: &replset.TLS{ClientCertificates: true}}), nil}
	ca, client := set.TLSFiles()
	issued := func(c replset.Certificate, password string) string {
		cert := must[tls.Certificate](t)(set.ClientCertificate("joe", c))
		return pemOf(t, cert, password)
	}
	key := "tlsCAFile=" + ca + "&tlsCertificateKeyFile="
	var wg sync.WaitGroup // side by side: those that fail take their whole selection timeout
	for _, k := range []tlsCase{
		{"tlsCAFile=" + ca, "the server wants a client certificate: give one with tlsCertificateKeyFile"},
		{"tlsInsecure=true", "the server wants a client certificate"},
		{key + client, ""},
		{"tlsInsecure=true&tlsCertificateKeyFile=" + client, ""},
		{key + issued(replset.Certificate{}, "s3cr3t") + "&tlsCertificateKeyFilePassword=s3cr3t", ""},
		{key + issued(replset.Certificate{NotAfter: time.Now().Add(-time.Minute)}, ""), "the server refused this client's certificate: it has expired"},
		{key + issued(replset.Certificate{Stranger: true}, ""), "it does not trust the authority that signed it"},
	} {
		wg.Go(func() { set.check(t, k) })
	}
	wg.Wait()
}

func TestClientCertificateIsLookedAtEvenWhereNoneIsDemanded(t *testing.T) {
	set := &tlsSet{replset.Run(t, replset.Options{TLS: &replset.TLS{}}), nil}
	ca, _ := set.TLSFiles()
	odd := pemOf(t, must[tls.Certificate](t)(set.ClientCertificate("joe", replset.Certificate{Stranger: true})), "")
	set.check(t, tlsCase{"tlsCAFile=" + ca + "&tlsCertificateKeyFile=" + odd, "the server refused this client's certificate"})
}

func TestTLSConfigOfTheProgramIsUsedAsItIs(t *testing.T) {
	overTLS(t, &replset.TLS{ClientCertificates: true}, configIsUsedAsItIs)
}

func configIsUsedAsItIs(t *testing.T, set *tlsSet) {
	var seen atomic.Value // by several connections at a time
	cfg := set.TLSConfig()
	cfg.VerifyConnection = func(s tls.ConnectionState) error { seen.Store(s.PeerCertificates[0].Subject.CommonName); return nil }
	if err := ping(set.client(t, "", func(c *sextant.Config) { c.TLSConfig, c.ServerMonitoringMode, c.MaxConnecting = cfg, "poll", 1 }))(); err != nil {
		t.Error(err)
	}
	if seen.Load() != "127.0.0.1" {
		t.Errorf("the certificate was of %q", seen.Load())
	}
	named := set.TLSConfig()
	named.ServerName = "db.example"
	err := ping(set.client(t, "", soon, func(c *sextant.Config) { c.TLSConfig = named }))()
	if err == nil || !strings.Contains(first(err), "not for db.example") {
		t.Errorf("%v", err)
	}
}

func TestEachMemberIsVerifiedByTheNameThatItAdvertises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		set := must[*replset.Set](t)(replset.Start(t.Context(), replset.Options{Network: network, TLS: &replset.TLS{}, ElectionTimeout: 10 * time.Second,
			Config: []replset.MemberOptions{{Name: "east", Port: 27017}, {Name: "west", Port: 27017}, {Name: "north", Port: 27017}}}))
		defer set.Close()
		client := func() *sextant.Client {
			c := must[*sextant.Config](t)(sextant.ParseURI("mongodb://east/?replicaSet=rs0&w=majority"))
			c.Dial, c.TLSConfig = network.Dial, set.TLSConfig()
			return must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), c))
		}
		cl := client()
		if err := cl.WaitReady(t.Context(), sextant.Want{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, m := range cl.Hosts().Members {
			if m.LastError != nil {
				t.Errorf("%s: %v", m.Address, m.LastError)
			}
		}
		cl.Close(t.Context())
		if err := set.Certify(1, replset.Certificate{Names: []string{"east"}}); err != nil {
			t.Fatal(err)
		}
		cl = client()
		defer cl.Close(context.Background())
		_ = cl.WaitReady(t.Context(), sextant.Want{})
		time.Sleep(time.Second)
		for _, m := range cl.Hosts().Members {
			bad := m.Address == "west:27017"
			if bad != (m.LastError != nil) || bad && !strings.Contains(m.LastError.Error(), "certificate is for east, not for west") {
				t.Errorf("%s: %v", m.Address, m.LastError)
			}
		}
	})
}

func TestPortsOfTheOtherKindAreSuspected(t *testing.T) {
	overTLS(t, nil, func(t *testing.T, plain *tlsSet) {
		plain.check(t, tlsCase{"tls=true", "closed the connection during the TLS handshake: it may be a port without TLS"})
		if err := plain.Certify(0, replset.Certificate{}); err == nil || plain.TLSConfig() != nil {
			t.Error("a set without TLS has certificates")
		}
	})
	overTLS(t, &replset.TLS{}, func(t *testing.T, secure *tlsSet) {
		secure.check(t, tlsCase{"retryReads=true", "it may want TLS (tls=true)"})
	})
}

// Experiment O of the collection: tls=true to a plain server that says nothing must not end in "no member known".
func TestTLSHandshakeThatHangsIsToldWithItsStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		set := must[*replset.Set](t)(replset.Start(t.Context(), replset.Options{Network: network, TLS: &replset.TLS{}, Config: []replset.MemberOptions{{Name: "east", Port: 27017}}}))
		defer set.Close()
		if err := set.Hang(0, true); err != nil {
			t.Fatal(err)
		}
		c := must[*sextant.Config](t)(sextant.ParseURI("mongodb://east/?replicaSet=rs0&serverSelectionTimeoutMS=5000&connectTimeoutMS=2000"))
		c.Dial, c.TLSConfig = network.Dial, set.TLSConfig()
		cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), c))
		defer cl.Close(context.Background())
		start := time.Now()
		err := ping(cl)()
		if took := time.Since(start); took != 5*time.Second || !mongoerr.IsSelection(err) {
			t.Errorf("after %v: %v", took, err)
		}
		for _, words := range []string{"TLS handshake, which the server did not finish", "connectTimeoutMS of 2s ran out"} {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%q is not in %v", words, err)
			}
		}
		for _, m := range cl.Hosts().Members {
			if e, ok := m.LastError.(*mongoerr.Error); !ok || e.Stage != mongoerr.StageTLS {
				t.Errorf("%s: %v", m.Address, m.LastError)
			}
		}
		if err := set.Hang(0, false); err != nil {
			t.Fatal(err)
		}
		if err := ping(cl)(); err != nil {
			t.Errorf("after the hang: %v", err)
		}
	})
}

func TestFurtherConnectionsResumeTheSessionOfTheirServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		set := must[*replset.Set](t)(replset.Start(t.Context(), replset.Options{Network: network, TLS: &replset.TLS{Names: []string{"db.example"}}, ElectionTimeout: 10 * time.Second,
			Config: []replset.MemberOptions{{Name: "east", Port: 27017}, {Name: "west", Port: 27017}}}))
		defer set.Close()
		var mu sync.Mutex
		var resumed []bool
		c := must[*sextant.Config](t)(sextant.ParseURI("mongodb://east/?replicaSet=rs0&serverMonitoringMode=poll&maxIdleTimeMS=1"))
		c.Dial, c.TLSConfig = network.Dial, set.TLSConfig()
		c.TLSConfig.ServerName = "db.example" // both members bear the name, and neither knows the other's sessions
		c.TLSConfig.VerifyConnection = func(s tls.ConnectionState) error {
			mu.Lock()
			defer mu.Unlock()
			resumed = append(resumed, s.DidResume)
			return nil
		}
		cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), c))
		defer cl.Close(context.Background())
		for range 3 {
			if err := ping(cl)(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		mu.Lock()
		defer mu.Unlock()
		full := 0
		for _, r := range resumed {
			if !r {
				full++
			}
		}
		// The first of the pool may be made before the ticket for the monitor's connection has come.
		if len(resumed) < 5 || full > 3 || !resumed[len(resumed)-1] {
			t.Errorf("resumed: %v", resumed)
		}
	})
}

func TestAuthorityOfAFolderStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for it")
	var cas [2][]byte
	for i := range cas {
		set := must[*replset.Set](t)(replset.Start(t.Context(), replset.Options{TLS: &replset.TLS{Dir: dir}}))
		ca, client := set.TLSFiles()
		cas[i] = must[[]byte](t)(os.ReadFile(ca))
		if info := must[os.FileInfo](t)(os.Stat(client)); info.Mode().Perm() != 0o600 {
			t.Errorf("others may read the client's key: %v", info.Mode())
		}
		if err := ping(connect(t, set.URI()))(); err != nil {
			t.Error(err)
		}
		set.Close()
	}
	if string(cas[0]) != string(cas[1]) || !x509.NewCertPool().AppendCertsFromPEM(cas[0]) {
		t.Error("the second set has another authority")
	}
	if err := os.Remove(filepath.Join(dir, "ca-key.pem")); err != nil {
		t.Fatal(err)
	}
	if set, err := replset.Start(t.Context(), replset.Options{TLS: &replset.TLS{Dir: dir}}); err == nil || !strings.Contains(err.Error(), "remove ca.pem and ca-key.pem") {
		if set != nil {
			set.Close()
		}
		t.Errorf("without the authority's key: %v", err)
	}
}
