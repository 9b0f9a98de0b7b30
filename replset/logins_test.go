package replset

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

func start1(mechanism string, payload []byte) bson.D {
	return bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: mechanism}, {Key: "payload", Value: bson.Binary{Data: payload}}}
}

func TestUsersOfExternalLogInWithPlain(t *testing.T) {
	s := Run(t, Options{Users: []User{{Name: "joe", Password: "pencil", DB: "$external"}, {Name: "joe", Password: "other"}}})
	for payload, good := range map[string]bool{
		"\x00joe\x00pencil": true, "joe\x00joe\x00pencil": true,
		"\x00joe\x00other": false, "\x00joe\x00": false, "\x00ann\x00pencil": false, "ann\x00joe\x00pencil": false, "joe": false, "": false,
	} {
		c := dialRaw(t, s, 0, "app")
		r, err := c.run("$external", start1("PLAIN", []byte(payload)))
		if done, _ := r.Lookup("done").BooleanOK(); (err == nil && done) != good || !good && mongoerr.Code(err) != mongoerr.CodeAuthenticationFailed {
			t.Errorf("%q: %s, %v", payload, r, err)
		}
		if _, err := c.run("t", insert(payload, nil)); (err == nil) != good {
			t.Errorf("%q, then insert: %v", payload, err)
		}
	}
	c := dialRaw(t, s, 0, "app")
	c.fails(t, mongoerr.CodeBadValue, "admin", start1("PLAIN", []byte("\x00joe\x00other")))
	c.fails(t, mongoerr.CodeBadValue, "$external", start1("SCRAM-SHA-256", []byte("n,,n=joe,r=x")))
	c.fails(t, mongoerr.CodeInvalidNamespace, "$external", insert(1, nil))
}

func TestUsersMayHaveOneMechanismAlone(t *testing.T) {
	s := Run(t, Options{Users: []User{{Name: "joe", Password: "secret-one", Mechanisms: []string{"SCRAM-SHA-256"}}}})
	if err := login(dialRaw(t, s, 0, "app"), "SCRAM-SHA-256", "joe", "secret-one"); err != nil {
		t.Error(err)
	}
	if err := login(dialRaw(t, s, 0, "app"), "SCRAM-SHA-1", "joe", "secret-one"); mongoerr.Code(err) != mongoerr.CodeAuthenticationFailed {
		t.Errorf("%v", err)
	}
	r := dialRaw(t, s, 0, "app").must(t, "admin", bson.D{{Key: "hello", Value: 1}, {Key: "saslSupportedMechs", Value: "admin.joe"}})
	if list := r.Lookup("saslSupportedMechs").String(); list != `["SCRAM-SHA-256"]` {
		t.Errorf("saslSupportedMechs %s", list)
	}
}

func TestUsersOfExternalAreMadeByClientsToo(t *testing.T) {
	s := Run(t, Options{Users: []User{{Name: "joe", Password: "secret-one"}}})
	c := dialRaw(t, s, 0, "app")
	if err := login(c, "SCRAM-SHA-256", "joe", "secret-one"); err != nil {
		t.Fatal(err)
	}
	c.must(t, "$external", bson.D{{Key: "createUser", Value: "CN=ann"}, {Key: "roles", Value: bson.A{}}})
	r := c.must(t, "$external", bson.D{{Key: "usersInfo", Value: 1}})
	if name, _ := r.Lookup("users", "0", "user").StringValueOK(); name != "CN=ann" {
		t.Errorf("%s", r)
	}
	c.fails(t, mongoerr.CodeBadValue, "admin", bson.D{{Key: "createUser", Value: "ann"}, {Key: "roles", Value: bson.A{}}})
	c.fails(t, mongoerr.CodeBadValue, "$external", bson.D{{Key: "createUser", Value: "x"}, {Key: "mechanisms", Value: bson.A{"SCRAM-SHA-1"}}, {Key: "roles", Value: bson.A{}}})
}

func TestImpossibleUsersAreRefused(t *testing.T) {
	for words, o := range map[string]Options{
		"needs a password":          {Users: []User{{Name: "joe"}}},
		"cannot have the mechanism": {Users: []User{{Name: "joe", Password: "x", Mechanisms: []string{"PLAIN"}}}},
		"given twice":               {Users: []User{{Name: "joe", Password: "x"}, {Name: "joe", Password: "y", DB: "admin"}}},
		"needs a Check":             {OIDC: &OIDC{}},
	} {
		if s, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
			if s != nil {
				s.Close()
			}
		}
	}
}

func TestOIDCIsOfferedOnlyWhereItIsSetUp(t *testing.T) {
	step := func(key, value string) []byte {
		b, err := bson.Marshal(bson.D{{Key: key, Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	plain := dialRaw(t, Run(t, Options{Users: []User{{Name: "joe", Password: "x"}}}), 0, "app")
	plain.fails(t, mongoerr.CodeBadValue, "$external", start1("MONGODB-OIDC", step("jwt", "joe")))
	s := Run(t, Options{OIDC: &OIDC{Check: func(token string) (string, error) { return token, nil }}})
	c := dialRaw(t, s, 0, "app")
	c.fails(t, mongoerr.CodeUnauthorized, "t", insert(1, nil))
	r := c.must(t, "$external", start1("MONGODB-OIDC", step("n", "joe")))
	_, info, _ := r.Lookup("payload").BinaryOK()
	if issuer, _ := bson.Raw(info).Lookup("issuer").StringValueOK(); issuer != "https://issuer.invalid" {
		t.Errorf("%s", bson.Raw(info))
	}
	r = c.must(t, "$external", bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: r.Lookup("conversationId")},
		{Key: "payload", Value: bson.Binary{Data: step("jwt", "joe")}}})
	if done, _ := r.Lookup("done").BooleanOK(); !done {
		t.Errorf("%s", r)
	}
	c.must(t, "t", insert(1, nil))
	c.fails(t, mongoerr.CodeAuthenticationFailed, "$external", start1("MONGODB-OIDC", []byte("garbage")))
}

// The salts' length follows the digest's, as a server's does; libmongoc and what is built on it take no other.
func TestSaltsAreAsLongAsAServers(t *testing.T) {
	s := Run(t, Options{Users: []User{{Name: "joe", Password: "secret-one"}}})
	for mechanism, size := range map[string]int{"SCRAM-SHA-1": 16, "SCRAM-SHA-256": 28} {
		r := dialRaw(t, s, 0, "app").must(t, "admin", start1(mechanism, []byte("n,,n=joe,r=x")))
		_, first, _ := r.Lookup("payload").BinaryOK()
		_, rest, _ := strings.Cut(string(first), ",s=")
		salt, _, _ := strings.Cut(rest, ",")
		if raw, err := base64.StdEncoding.DecodeString(salt); err != nil || len(raw) != size {
			t.Errorf("%s: %s has a salt of %d bytes: %v", mechanism, first, len(raw), err)
		}
	}
}
