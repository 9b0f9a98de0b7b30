package auth

import (
	"fmt"
	"strings"
)

// NewPlain begins a conversation by PLAIN (RFC 4616), by which MongoDB asks an LDAP directory. It sends the password as
// it is: it belongs inside TLS (authentication specification, "PLAIN").
func NewPlain(username, password string) (Conversation, error) {
	if username == "" {
		return nil, fmt.Errorf("%s needs a user name", Plain)
	}
	if strings.ContainsRune(username, 0) || strings.ContainsRune(password, 0) {
		return nil, fmt.Errorf("%s: neither user name nor password may hold a zero byte (RFC 4616)", Plain)
	}
	return oneStep{Plain, []byte("\x00" + username + "\x00" + password)}, nil
}
