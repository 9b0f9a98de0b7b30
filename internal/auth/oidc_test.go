package auth

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

func base64Of(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The payload of the authentication specification, "One-Step".
func TestOIDCOneStepMatchesTheSpecification(t *testing.T) {
	c, err := NewOIDC("abcd1234")
	if err != nil {
		t.Fatal(err)
	}
	if mechanism, payload := c.Start(); mechanism != OIDC || string(payload) != string(base64Of(t, "FwAAAAJqd3QACQAAAGFiY2QxMjM0AAA=")) {
		t.Errorf("%s %s", mechanism, bson.Raw(payload))
	}
	if _, done, err := c.Step(nil); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	if _, err := NewOIDC(""); err == nil {
		t.Error("an empty token was taken")
	}
}

// The payloads of the authentication specification, "Two-Step".
func TestOIDCTwoStepMatchesTheSpecification(t *testing.T) {
	var info IDPInfo
	c := NewOIDCPrincipal("myidp", func(i IDPInfo) (string, error) { info = i; return "abcd1234", nil })
	if mechanism, payload := c.Start(); mechanism != OIDC || string(payload) != string(base64Of(t, "EgAAAAJuAAYAAABteWlkcAAA")) {
		t.Errorf("%s %s", mechanism, bson.Raw(payload))
	}
	payload, done, err := c.Step(base64Of(t, "WQAAAAJpc3N1ZXIADwAAAGh0dHBzOi8vaXNzdWVyAAJjbGllbnRJZAAFAAAAYWJjZAAEcmVxdWVzdFNjb3BlcwAXAAAAAjAAAgAAAGEAAjEAAgAAAGIAAAA="))
	if err != nil || done || string(payload) != string(base64Of(t, "FwAAAAJqd3QACQAAAGFiY2QxMjM0AAA=")) {
		t.Errorf("%s, %v, %v", bson.Raw(payload), done, err)
	}
	if info.Issuer != "https://issuer" || info.ClientID != "abcd" || !slices.Equal(info.RequestScopes, []string{"a", "b"}) {
		t.Errorf("identity provider %+v", info)
	}
	if _, done, err := c.Step(nil); !done || err != nil {
		t.Errorf("last: %v, %v", done, err)
	}
}

func TestOIDCPrincipalWithoutANameSendsNone(t *testing.T) {
	_, payload := NewOIDCPrincipal("", nil).Start()
	if n := bson.Raw(payload).Len(); n != 0 {
		t.Errorf("%s", bson.Raw(payload))
	}
}

func TestOIDCChecksTheServersAnswer(t *testing.T) {
	good := func(IDPInfo) (string, error) { return "token", nil }
	issuer := bson.Raw(bson.EndDocument(bson.AppendString(func() []byte { b, _ := bson.BeginDocument(nil); return b }(), "issuer", "i"), 0))
	failed := errors.New("the browser was closed")
	for _, c := range []struct {
		challenge []byte
		token     func(IDPInfo) (string, error)
		want      string
	}{
		{[]byte("x"), good, "no document"},
		{[]byte{5, 0, 0, 0, 0}, good, "no issuer"},
		{issuer, func(IDPInfo) (string, error) { return "", nil }, "empty one"},
		{issuer, func(IDPInfo) (string, error) { return "", failed }, failed.Error()},
	} {
		if _, done, err := NewOIDCPrincipal("", c.token).Step(c.challenge); err == nil || done || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, %v", c.want, done, err)
		}
	}
	if _, _, err := NewOIDCPrincipal("", good).Step(issuer); err != nil {
		t.Errorf("an issuer alone: %v", err)
	}
}
