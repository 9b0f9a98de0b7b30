// Package auth holds the client's side of MongoDB's authentication mechanisms as pure conversations: a challenge goes
// in, a payload comes out. Who carries the payloads, draws the nonce and remembers derived keys is the caller's affair
// (packages conn and credential). A conversation belongs to one goroutine; the functions are safe for concurrent use.
//
// No error of this package holds a password, a payload or anything derived from them.
package auth

import (
	"fmt"
	"slices"
	"strings"
)

// The mechanisms, by the names that connection strings and servers give them.
const (
	ScramSHA1   = "SCRAM-SHA-1"
	ScramSHA256 = "SCRAM-SHA-256"
	Plain       = "PLAIN"
	X509        = "MONGODB-X509"
	AWS         = "MONGODB-AWS"
	OIDC        = "MONGODB-OIDC"
	GSSAPI      = "GSSAPI"
	CR          = "MONGODB-CR"
)

// External is the database of users whom the server does not keep itself.
const External = "$external"

// Conversation is one authentication by SASL in progress (authentication specification, "SASL mechanisms").
type Conversation interface {
	// Start returns the mechanism's name and the first payload.
	Start() (mechanism string, payload []byte)
	// Step takes the server's answer and returns the next payload. done means that the server has proved itself, where
	// the mechanism wants that, and the client has nothing more to say; a server that still asks gets an empty payload.
	Step(challenge []byte) (payload []byte, done bool, err error)
}

// spoken are the mechanisms that can be spoken.
var spoken = []string{ScramSHA256, ScramSHA1, X509, AWS, OIDC, Plain}

// refused are the mechanisms that exist and are not spoken, with the reason and what to do instead.
var refused = map[string]string{
	CR: "MONGODB-CR was removed from MongoDB 4.0: leave authMechanism out, and the user's SCRAM credentials are used",
	GSSAPI: "GSSAPI (Kerberos) is not spoken by this driver, since it would need the Kerberos libraries of the system; " +
		"use a mechanism such as SCRAM-SHA-256, MONGODB-X509, MONGODB-OIDC, or PLAIN over TLS for an LDAP directory",
}

// Check says why a mechanism cannot be spoken, nil if it can. An empty name is one: the server is asked.
func Check(mechanism string) error {
	if mechanism == "" || slices.Contains(spoken, mechanism) {
		return nil
	}
	if text, known := refused[mechanism]; known {
		return fmt.Errorf("%s", text)
	}
	return fmt.Errorf("unknown authentication mechanism %q; there are %s", mechanism, strings.Join(spoken, ", "))
}

// Negotiate picks the mechanism for a user without one from the server's saslSupportedMechs: SCRAM-SHA-256 if it is
// there, SCRAM-SHA-1 in any other case (auth specification, "Default authentication methods").
func Negotiate(supported []string) string {
	if slices.Contains(supported, ScramSHA256) {
		return ScramSHA256
	}
	return ScramSHA1
}

// oneStep is a conversation in which the client says all in its first payload.
type oneStep struct {
	mechanism string
	payload   []byte
}

func (o oneStep) Start() (string, []byte) { return o.mechanism, o.payload }

func (o oneStep) Step([]byte) ([]byte, bool, error) { return nil, true, nil }
