// Package auth holds the client's side of MongoDB's authentication mechanisms as pure conversations: a challenge goes
// in, a payload comes out. Who carries the payloads, draws the nonce and remembers derived keys is the caller's affair
// (package conn). A conversation belongs to one goroutine; the functions are safe for concurrent use.
//
// No error of this package holds a password, a payload or anything derived from them.
package auth

import (
	"fmt"
	"slices"
)

// The mechanisms that can be spoken.
const (
	ScramSHA1   = "SCRAM-SHA-1"
	ScramSHA256 = "SCRAM-SHA-256"
)

// Conversation is one authentication in progress.
type Conversation interface {
	// Start returns the mechanism's name and the first payload.
	Start() (mechanism string, payload []byte)
	// Step takes the server's answer and returns the next payload. done means that the server has proved itself and
	// the client has nothing more to say; a server that still asks gets an empty payload.
	Step(challenge []byte) (payload []byte, done bool, err error)
}

// later are the mechanisms that exist and are not spoken here, with what to say about them.
var later = map[string]string{
	"MONGODB-CR":   "MONGODB-CR was removed from MongoDB 4.0; create the user with SCRAM credentials",
	"MONGODB-X509": "MONGODB-X509 is not supported yet",
	"MONGODB-AWS":  "MONGODB-AWS is not supported yet",
	"MONGODB-OIDC": "MONGODB-OIDC is not supported yet",
	"GSSAPI":       "GSSAPI (Kerberos) is not supported yet",
	"PLAIN":        "PLAIN (LDAP) is not supported yet",
}

// New begins a conversation. nonce must be fresh random printable text without a comma (RFC 5802 section 5.1); keys
// may be nil, then every conversation derives its keys anew.
func New(mechanism, username, password, nonce string, keys KeyFunc) (Conversation, error) {
	switch mechanism {
	case ScramSHA1, ScramSHA256:
		return newScram(mechanism, username, password, nonce, keys)
	}
	if text, known := later[mechanism]; known {
		return nil, fmt.Errorf("authentication mechanism %s; supported: %s, %s", text, ScramSHA256, ScramSHA1)
	}
	return nil, fmt.Errorf("unknown authentication mechanism %q; supported: %s, %s", mechanism, ScramSHA256, ScramSHA1)
}

// Negotiate picks the mechanism for a user without one from the server's saslSupportedMechs: SCRAM-SHA-256 if it is
// there, SCRAM-SHA-1 in any other case (auth specification, "Defaults and negotiation").
func Negotiate(supported []string) string {
	if slices.Contains(supported, ScramSHA256) {
		return ScramSHA256
	}
	return ScramSHA1
}
