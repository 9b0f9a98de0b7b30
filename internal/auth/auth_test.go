package auth

import (
	"strings"
	"testing"
)

func TestUnspokenMechanismsAreNamed(t *testing.T) {
	for mechanism, want := range map[string]string{
		"GSSAPI": "Kerberos", "MONGODB-CR": "removed from MongoDB 4.0", "scram-sha-1": `unknown authentication mechanism "scram-sha-1"; there are SCRAM-SHA-256`,
	} {
		if err := Check(mechanism); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", mechanism, err)
		}
	}
	for _, mechanism := range append([]string{""}, spoken...) {
		if err := Check(mechanism); err != nil {
			t.Errorf("%q: %v", mechanism, err)
		}
	}
}

// The payload of the authentication specification, "PLAIN".
func TestPlainMatchesTheSpecification(t *testing.T) {
	c, err := NewPlain("user", "pencil")
	if err != nil {
		t.Fatal(err)
	}
	if mechanism, payload := c.Start(); mechanism != "PLAIN" || string(payload) != "\x00user\x00pencil" {
		t.Errorf("%s %q", mechanism, payload)
	}
	if payload, done, err := c.Step(nil); len(payload) != 0 || !done || err != nil {
		t.Errorf("%q, %v, %v", payload, done, err)
	}
}

func TestPlainRefusesWhatItCannotSend(t *testing.T) {
	for _, two := range [][2]string{{"", "pw"}, {"jo\x00e", "pw"}, {"joe", "hun\x00ter2"}} {
		if _, err := NewPlain(two[0], two[1]); err == nil || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%q: %v", two, err)
		}
	}
}
