package auth

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/xdg-go/scram"
)

const (
	rfcNonce256  = "rOprNGfwEbeRWgbNEkqO"
	rfcFirst256  = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	rfcFinal256  = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
	rfcProof256  = "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	mongoNonce1  = "fyko+d2lbbFgONRv9qkxdawL"
	mongoFirst1  = "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000"
	mongoProof1  = "p=MC2T8BvbmWRckDw8oWl5IVghwCY="
	mongoServer1 = "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0="
)

func start(t *testing.T, mechanism, user, password, nonce string) Conversation {
	t.Helper()
	c, err := NewScram(mechanism, user, password, nonce, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestScramSHA256MatchesRFC7677(t *testing.T) {
	c := start(t, ScramSHA256, "user", "pencil", rfcNonce256)
	mechanism, first := c.Start()
	if mechanism != ScramSHA256 || string(first) != "n,,n=user,r="+rfcNonce256 {
		t.Errorf("start: %s %q", mechanism, first)
	}
	final, done, err := c.Step([]byte(rfcFirst256))
	if err != nil || done || !strings.HasPrefix(string(final), "c=biws,r=") || !strings.HasSuffix(string(final), ","+rfcProof256) {
		t.Fatalf("final: %q, %v, %v", final, done, err)
	}
	last, done, err := c.Step([]byte(rfcFinal256))
	if err != nil || !done || len(last) != 0 {
		t.Fatalf("last: %q, %v, %v", last, done, err)
	}
	if last, done, err := c.Step(nil); err != nil || !done || len(last) != 0 {
		t.Errorf("one empty exchange more: %q, %v, %v", last, done, err)
	}
}

// The conversation of the auth specification, whose SHA-1 secret is MongoDB's digest and not the password itself.
func TestScramSHA1MatchesTheSpecification(t *testing.T) {
	c := start(t, ScramSHA1, "user", "pencil", mongoNonce1)
	final, _, err := c.Step([]byte(mongoFirst1))
	if err != nil || !strings.HasSuffix(string(final), ","+mongoProof1) {
		t.Fatalf("final: %q, %v", final, err)
	}
	if _, done, err := c.Step([]byte(mongoServer1)); err != nil || !done {
		t.Errorf("%v, %v", done, err)
	}
}

// RFC 5802 section 5, whose password goes in undigested.
func TestDerivedKeysMatchRFC5802(t *testing.T) {
	salt, _ := base64.StdEncoding.DecodeString("QSXCR+Q6sek8bf92")
	keys, err := KeyRequest{Mechanism: ScramSHA1, Secret: "pencil", Salt: salt, Iterations: 4096}.Derive()
	if err != nil {
		t.Fatal(err)
	}
	message := "n=user,r=fyko+d2lbbFgONRv9qkxdawL,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096," +
		"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
	got := base64.StdEncoding.EncodeToString(mac(hashOf(ScramSHA1), keys.Server, message))
	if want := "rmF9pqV8S7suAoZWja4dJRkFsKQ="; got != want {
		t.Errorf("server signature %s, want %s", got, want)
	}
}

// foreignServer is the server's side by another implementation.
func foreignServer(t *testing.T, mechanism, user, secret string) *scram.ServerConversation {
	t.Helper()
	h := scram.SHA256
	if mechanism == ScramSHA1 {
		h = scram.SHA1
	}
	client, err := h.NewClientUnprepped(user, secret, "")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: "sixteen salt byte", Iters: MinIterations})
	if err != nil {
		t.Fatal(err)
	}
	server, err := h.NewServer(func(name string) (scram.StoredCredentials, error) {
		if name != user {
			return scram.StoredCredentials{}, errors.New("no such user")
		}
		return stored, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return server.NewConversation()
}

func converse(c Conversation, server *scram.ServerConversation) error {
	_, payload := c.Start()
	for range 4 {
		challenge, serverErr := server.Step(string(payload))
		var done bool
		var err error
		if payload, done, err = c.Step([]byte(challenge)); err != nil || done {
			return err
		}
		if serverErr != nil {
			return serverErr
		}
	}
	return errors.New("the conversation does not end")
}

func TestForeignServerAcceptsTheClient(t *testing.T) {
	for _, mechanism := range []string{ScramSHA1, ScramSHA256} {
		for _, user := range []string{"joe", "a=b,c", "ü€"} {
			for _, password := range []string{"pencil", "", "p,=ass", "I\u00adX", "\u2168"} {
				secret, err := prepare(mechanism, user, password)
				if err != nil {
					t.Fatal(err)
				}
				c := start(t, mechanism, user, password, "nonce")
				if err := converse(c, foreignServer(t, mechanism, user, secret)); err != nil {
					t.Errorf("%s, user %q, password %q: %v", mechanism, user, password, err)
				}
			}
		}
	}
}

func TestForeignServerRefusesAWrongPassword(t *testing.T) {
	for _, mechanism := range []string{ScramSHA1, ScramSHA256} {
		secret, _ := prepare(mechanism, "joe", "right")
		c := start(t, mechanism, "joe", "wrong", "nonce")
		err := converse(c, foreignServer(t, mechanism, "joe", secret))
		if err == nil || strings.Contains(err.Error(), "wrong,") {
			t.Errorf("%s: %v", mechanism, err)
		}
	}
}

// RFC 4013 section 3.
func TestPasswordsArePreparedByMechanism(t *testing.T) {
	for in, want := range map[string]string{"I\u00adX": "IX", "user": "user", "USER": "USER", "\u00aa": "a", "\u2168": "IX"} {
		if got, err := prepare(ScramSHA256, "u", in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if got, _ := prepare(ScramSHA1, "user", "pencil"); got != "1c33006ec1ffd90f9cadcbcc0e118200" {
		t.Errorf("SHA-1 digest %s", got)
	}
}

func TestProhibitedPasswordIsRefusedWithoutPrintingIt(t *testing.T) {
	_, err := NewScram(ScramSHA256, "joe", "hunter2\u0007", "nonce", nil)
	if err == nil || !strings.Contains(err.Error(), "SASLprep") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	if _, err := NewScram(ScramSHA1, "joe", "hunter2\u0007", "nonce", nil); err != nil {
		t.Errorf("SCRAM-SHA-1 takes any bytes: %v", err)
	}
}

func TestServersFirstMessageIsChecked(t *testing.T) {
	good := "r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	if _, _, err := start(t, ScramSHA256, "joe", "pw", "nonce").Step([]byte(good)); err != nil {
		t.Fatalf("%s: %v", good, err)
	}
	for challenge, want := range map[string]string{
		"":         "not of the form",
		"r=nonceX": "not of the form",
		"s=W22ZaJ0SNY7soEsUEjb6gQ==,r=nonceX,i=4096":       "not of the form",
		"m=ext,r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096": "extension",
		"e=unknown-user": `refused: "unknown-user"`,
		"r=nonce,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096":                 "nonce",
		"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096":                 "nonce",
		"r=nonceX,s=***,i=4096":                                     "salt",
		"r=nonceX,s=,i=4096":                                        "salt",
		"r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=many":                "not a number",
		"r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095":                "4095 is not within",
		"r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-1":                  "-1 is not within",
		"r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2000000000":          "2000000000 is not within",
		"r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=9999999999999999999": "not a number",
	} {
		_, done, err := start(t, ScramSHA256, "joe", "pw", "nonce").Step([]byte(challenge))
		if err == nil || done || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", challenge, err, want)
		}
	}
}

func TestServerMustProveItself(t *testing.T) {
	for final, want := range map[string]string{
		"":                "not of the form v=",
		"v=!":             "not base64",
		"v=":              "signature is wrong",
		"e=invalid-proof": "refused",
		"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=": "signature is wrong",
	} {
		c := start(t, ScramSHA256, "user", "pencil", rfcNonce256)
		if _, _, err := c.Step([]byte(rfcFirst256)); err != nil {
			t.Fatal(err)
		}
		_, done, err := c.Step([]byte(final))
		if err == nil || done || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: done %v, error %v, want one with %q", final, done, err, want)
		}
	}
}

func TestKeysComeFromTheCallersCache(t *testing.T) {
	asked := 0
	c, err := NewScram(ScramSHA256, "user", "pencil", rfcNonce256, func(r KeyRequest) (Keys, error) {
		asked++
		return r.Derive()
	})
	if err != nil {
		t.Fatal(err)
	}
	final, _, err := c.Step([]byte(rfcFirst256))
	if err != nil || asked != 1 || !strings.HasSuffix(string(final), rfcProof256) {
		t.Errorf("asked %d times: %q, %v", asked, final, err)
	}
}

func TestScramNeedsAUserAndItsOwnName(t *testing.T) {
	if _, err := NewScram(ScramSHA256, "", "pw", "nonce", nil); err == nil || !strings.Contains(err.Error(), "username") {
		t.Errorf("without a user: %v", err)
	}
	if _, err := NewScram(Plain, "joe", "pw", "nonce", nil); err == nil || !strings.Contains(err.Error(), "no SCRAM") {
		t.Errorf("PLAIN as SCRAM: %v", err)
	}
}

func TestNegotiationPrefersSHA256(t *testing.T) {
	for want, supported := range map[string][]string{
		ScramSHA256: {"SCRAM-SHA-1", "SCRAM-SHA-256", "OTHER"},
		ScramSHA1:   {"OTHER"},
	} {
		if got := Negotiate(supported); got != want {
			t.Errorf("%v: %s, want %s", supported, got, want)
		}
	}
	if got := Negotiate(nil); got != ScramSHA1 {
		t.Errorf("without an answer: %s", got)
	}
}

// FuzzStep: no challenge panics or is taken for a proof.
func FuzzStep(f *testing.F) {
	f.Add([]byte(rfcFirst256), []byte("v=AAAA"))
	f.Add([]byte("e=x"), []byte(""))
	f.Fuzz(func(t *testing.T, first, final []byte) {
		cheap := func(KeyRequest) (Keys, error) {
			return Keys{Client: make([]byte, 32), Stored: make([]byte, 32), Server: []byte("unknown to the fuzzer")}, nil
		}
		c, _ := NewScram(ScramSHA256, "user", "pencil", rfcNonce256, cheap)
		if _, done, err := c.Step(first); done {
			t.Fatalf("done after one message: %v", err)
		}
		if _, done, err := c.Step(final); done || (err == nil && strings.HasPrefix(string(final), "v=")) {
			t.Fatalf("accepted %q after %q", final, first)
		}
	})
}

// The prose tests 15 (SCRAM-SHA-1) and 16 (SCRAM-SHA-256) of the authentication specification, "Minimum iteration
// count". Broken by a lower MinIterations, or by a check for one of the two mechanisms alone.
func TestProseScram15And16IterationFloors(t *testing.T) {
	for _, mechanism := range []string{ScramSHA1, ScramSHA256} {
		derived := false
		keys := func(r KeyRequest) (Keys, error) { derived = true; return r.Derive() }
		c, err := NewScram(mechanism, "joe", "pw", "nonce", keys)
		if err != nil {
			t.Fatal(err)
		}
		payload, _, err := c.Step([]byte("r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095"))
		if err == nil || payload != nil || derived || !strings.Contains(err.Error(), "4095") {
			t.Errorf("%s: %q, %v, keys derived: %v", mechanism, payload, err, derived)
		}
		if _, _, err := start(t, mechanism, "joe", "pw", "nonce").Step([]byte("r=nonceX,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")); err != nil {
			t.Errorf("%s: 4096 iterations: %v", mechanism, err)
		}
	}
}
