package conn

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xdg-go/scram"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// saslServer is a server's side of SCRAM-SHA-256 for the user joe with the password pencil.
type saslServer struct {
	mechs       []string
	speculative bool   // answers speculativeAuthenticate
	skipEmpty   bool   // knows skipEmptyExchange
	salt        string // "" is one of its own
	conv        *scram.ServerConversation
	started     string // mechanism of saslStart
	continues   int
}

func (s *saslServer) begin(t *testing.T, mechanism string) {
	t.Helper()
	h, secret := scram.SHA256, "pencil"
	if mechanism == auth.ScramSHA1 {
		digest := md5.Sum([]byte("joe:mongo:pencil"))
		h, secret = scram.SHA1, hex.EncodeToString(digest[:])
	}
	client, err := h.NewClientUnprepped("joe", secret, "")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: cmp.Or(s.salt, "salt of sixteen!"), Iters: auth.MinIterations})
	if err != nil {
		t.Fatal(err)
	}
	server, err := h.NewServer(func(string) (scram.StoredCredentials, error) { return stored, nil })
	if err != nil {
		t.Fatal(err)
	}
	s.conv = server.NewConversation()
}

// step answers one payload; done only when nothing more must come.
func (s *saslServer) step(body bson.Raw) bson.Raw {
	_, payload, _ := body.Lookup("payload").BinaryOK()
	if s.conv.Done() { // the empty exchange
		return doc("conversationId", 1, "done", true, "payload", []byte{}, "ok", 1.0)
	}
	answer, err := s.conv.Step(string(payload))
	if err != nil {
		return doc("ok", 0.0, "errmsg", "Authentication failed.", "code", 18, "codeName", "AuthenticationFailed")
	}
	return doc("conversationId", 1, "done", s.conv.Done() && s.skipEmpty, "payload", []byte(answer), "ok", 1.0)
}

func (s *saslServer) serve(p *peer) {
	for m := p.read(); m != nil; m = p.read() {
		switch {
		case !m.Body.Lookup("isMaster").IsZero():
			s.hello(p, m)
		case !m.Body.Lookup("saslStart").IsZero():
			s.started, _ = m.Body.Lookup("mechanism").StringValueOK()
			s.begin(p.t, s.started)
			p.answer(m, s.step(m.Body))
		case !m.Body.Lookup("saslContinue").IsZero():
			s.continues++
			p.answer(m, s.step(m.Body))
		default:
			p.answer(m, doc("ok", 1.0))
		}
	}
}

func (s *saslServer) hello(p *peer, m *wire.Msg) {
	out := []any{"isWritablePrimary", true, "maxWireVersion", 25, "ok", 1.0}
	if !m.Body.Lookup("saslSupportedMechs").IsZero() {
		out = append(out, "saslSupportedMechs", s.mechs)
	}
	if spec, ok := m.Body.Lookup("speculativeAuthenticate").DocumentOK(); ok && s.speculative {
		s.begin(p.t, auth.ScramSHA256)
		out = append(out, "speculativeAuthenticate", s.step(spec))
	}
	p.answer(m, doc(out...))
}

func joe(mechanism string) *Credential {
	return &Credential{Username: "joe", Password: "pencil", Mechanism: mechanism}
}

func TestSpeculativeScramTakesOneContinue(t *testing.T) {
	s := &saslServer{mechs: []string{"SCRAM-SHA-1", "SCRAM-SHA-256"}, speculative: true, skipEmpty: true}
	o := played(t, s.serve)
	o.Credential = joe("")
	c := open(t, o)
	if s.started != "" || s.continues != 1 {
		t.Errorf("saslStart %q, %d saslContinue", s.started, s.continues)
	}
	if !c.Hello().Lookup("speculativeAuthenticate").IsZero() || c.Hello().Lookup("saslSupportedMechs").IsZero() {
		t.Errorf("kept hello: %s", c.Hello())
	}
	if _, err := c.RoundTrip(t.Context(), ping(c, 0)); err != nil {
		t.Error(err)
	}
}

func TestServerWithoutSpeculationIsAskedFromTheStart(t *testing.T) {
	s := &saslServer{mechs: []string{"SCRAM-SHA-256"}}
	o := played(t, s.serve)
	o.Credential = joe("")
	open(t, o)
	if s.started != auth.ScramSHA256 || s.continues != 2 {
		t.Errorf("saslStart %q, %d saslContinue", s.started, s.continues)
	}
}

func TestUserWithoutSHA256IsAuthenticatedBySHA1(t *testing.T) {
	s := &saslServer{mechs: []string{"SCRAM-SHA-1"}, skipEmpty: true}
	o := played(t, s.serve)
	o.Credential = joe("")
	open(t, o)
	if s.started != auth.ScramSHA1 || s.continues != 1 {
		t.Errorf("saslStart %q, %d saslContinue", s.started, s.continues)
	}
}

func TestConfiguredMechanismIsNotNegotiated(t *testing.T) {
	var asked bool
	s := &saslServer{skipEmpty: true}
	o := played(t, func(p *peer) {
		m := p.read()
		asked = !m.Body.Lookup("saslSupportedMechs").IsZero()
		s.hello(p, m)
		s.serve(p)
	})
	o.Credential = joe(auth.ScramSHA256)
	open(t, o)
	if asked || s.started != auth.ScramSHA256 {
		t.Errorf("asked for mechanisms: %v; saslStart %q", asked, s.started)
	}
}

func TestWrongPasswordIsNamedButNotShown(t *testing.T) {
	s := &saslServer{speculative: true, skipEmpty: true}
	o := played(t, s.serve)
	o.Credential = &Credential{Username: "joe", Password: "hunter2", Source: "shop"}
	_, err := Open(t.Context(), "db1:27017", o)
	e, _ := errors.AsType[*mongoerr.Error](err)
	if e == nil || e.Stage != mongoerr.StageAuth || e.Code != 18 || !mongoerr.IsAuth(err) || mongoerr.IsNetwork(err) {
		t.Fatalf("%v", err)
	}
	if text := err.Error(); !strings.Contains(text, `user "joe" of database "shop", by SCRAM-SHA-256: Authentication failed.`) || strings.Contains(text, "hunter2") {
		t.Errorf("%s", text)
	}
}

func TestServerThatCannotProveItselfIsRefused(t *testing.T) {
	lie := func(final bson.Raw) func(p *peer) {
		s := &saslServer{skipEmpty: true}
		return func(p *peer) {
			s.hello(p, p.read())
			m := p.read()
			s.begin(p.t, auth.ScramSHA256)
			p.answer(m, s.step(m.Body))
			p.answer(p.read(), final)
			p.hold()
		}
	}
	for words, final := range map[string]bson.Raw{
		"signature is wrong":                  doc("conversationId", 1, "done", true, "payload", []byte("v=AAAA"), "ok", 1.0),
		"not of the form v=":                  doc("conversationId", 1, "done", true, "payload", []byte{}, "ok", 1.0),
		"has no payload":                      doc("conversationId", 1, "done", true, "ok", 1.0),
		"answer to saslContinue is malformed": {7, 0, 0, 0, 0x10, 'x', 0},
	} {
		o := played(t, lie(final))
		o.Credential = joe("")
		refusal{stage: mongoerr.StageAuth, words: words}.check(t, o)
	}
}

func TestServerMustNotEndTheConversationEarly(t *testing.T) {
	s := &saslServer{}
	o := played(t, func(p *peer) {
		s.hello(p, p.read())
		m := p.read()
		s.begin(p.t, auth.ScramSHA256)
		_, payload, _ := m.Body.Lookup("payload").BinaryOK()
		first, _ := s.conv.Step(string(payload))
		p.answer(m, doc("conversationId", 1, "done", true, "payload", []byte(first), "ok", 1.0))
		p.hold()
	})
	o.Credential = joe("")
	refusal{stage: mongoerr.StageAuth, words: "before it proved itself"}.check(t, o)
}

func TestServerThatHangsUpDuringAuthenticationIsANetworkErrorWithoutLabels(t *testing.T) {
	s := &saslServer{}
	o := played(t, func(p *peer) { s.hello(p, p.read()); p.read() })
	o.Credential = joe("")
	_, err := Open(t.Context(), "db1:27017", o)
	e, _ := err.(*mongoerr.Error)
	if !mongoerr.IsNetwork(err) || mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) || e.Stage != mongoerr.StageAuth || mongoerr.IsAuth(err) {
		t.Errorf("%v", err)
	}
}

func TestMonitorsAndArbitersAreNotAuthenticated(t *testing.T) {
	var hello bson.Raw
	arbiter := func(p *peer) {
		m := p.read()
		hello = m.Body.Clone()
		p.answer(m, doc("arbiterOnly", true, "ok", 1.0))
		if p.read() != nil {
			p.t.Error("an arbiter was asked for more than hello")
		}
	}
	o := played(t, arbiter)
	o.Credential = joe("")
	open(t, o).Close()
	if hello.Lookup("speculativeAuthenticate").IsZero() {
		t.Errorf("no speculation: %s", hello)
	}
	o = played(t, arbiter)
	o.Credential, o.Monitor = joe(""), true
	open(t, o).Close()
	if !hello.Lookup("speculativeAuthenticate").IsZero() || !hello.Lookup("saslSupportedMechs").IsZero() {
		t.Errorf("a monitor speaks of authentication: %s", hello)
	}
}

func TestUnspokenMechanismIsRefusedBeforeItDials(t *testing.T) {
	o := &Options{Credential: joe("GSSAPI"), Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("it dialled")
		return nil, context.Canceled
	}}
	refusal{stage: mongoerr.StageAuth, words: "GSSAPI (Kerberos) is not spoken"}.check(t, o)
}

func TestKeysAreDerivedOnceForAllConnections(t *testing.T) {
	kc := &keyCache{}
	r := auth.KeyRequest{Mechanism: auth.ScramSHA256, Secret: "pencil", Salt: []byte("salt"), Iterations: 4096}
	var wg sync.WaitGroup
	var entries [8]*keyEntry
	var failed atomic.Bool
	for i := range entries {
		wg.Go(func() {
			entries[i] = kc.entry(r)
			if _, err := kc.derive(r); err != nil {
				failed.Store(true)
			}
		})
	}
	wg.Wait()
	for _, e := range entries {
		if e != entries[0] {
			t.Fatal("two entries for one request")
		}
	}
	if len(kc.entries) != 1 || failed.Load() {
		t.Errorf("%d entries, failed %v", len(kc.entries), failed.Load())
	}
	want, _ := r.Derive()
	if got, _ := kc.derive(r); string(got.Stored) != string(want.Stored) {
		t.Error("the cache gives other keys than the derivation")
	}
}

// Broken by deriving at each login. An entry of the cache is derived once, so that the number of PBKDF2 runs is that of
// the entries which are new or were replaced.
func TestFurtherConnectionsAndClientsRunNoPBKDF2(t *testing.T) {
	snapshot := func() map[[32]byte]*keyEntry {
		keys.mu.Lock()
		defer keys.mu.Unlock()
		return maps.Clone(keys.entries)
	}
	login := func(salt string) (derived int) {
		before := snapshot()
		s := &saslServer{speculative: true, skipEmpty: true, salt: salt}
		o := played(t, s.serve) // options of its own: another client
		o.Credential = joe(auth.ScramSHA256)
		open(t, o)
		for id, e := range snapshot() {
			if before[id] != e {
				derived++
			}
		}
		return derived
	}
	salt := rand.Text()[:16]
	for i, want := range []int{1, 0, 0} {
		if n := login(salt); n != want {
			t.Errorf("client %d: %d runs of PBKDF2, wanted %d", i+1, n, want)
		}
	}
}

func TestDifferentRequestsNeverShareKeys(t *testing.T) {
	kc := &keyCache{}
	base := auth.KeyRequest{Mechanism: auth.ScramSHA256, Secret: "ab", Salt: []byte("c"), Iterations: 4096}
	others := []auth.KeyRequest{base, base, base, base}
	others[0].Secret, others[0].Salt = "a", []byte("bc")
	others[1].Mechanism = auth.ScramSHA1
	others[2].Iterations = 4097
	others[3].Salt = []byte("d")
	for i, r := range others {
		if kc.entry(r) == kc.entry(base) {
			t.Errorf("request %d shares the entry of another", i)
		}
	}
}

func TestKeyCacheIsBounded(t *testing.T) {
	kc := &keyCache{}
	for i := range 3 * maxKeys {
		kc.entry(auth.KeyRequest{Iterations: i})
	}
	if len(kc.entries) > maxKeys {
		t.Errorf("%d entries", len(kc.entries))
	}
}
