package auth

import (
	"fmt"

	"github.com/sextantdb/sextant/bson"
)

// IDPInfo is what a server tells of the identity provider of its users.
type IDPInfo struct {
	Issuer        string   // URL of the authorization server
	ClientID      string   // of this kind of client; may be empty
	RequestScopes []string // further scopes to ask for
}

// NewOIDC begins the one-step conversation of MONGODB-OIDC with an access token that the client has
// (authentication specification, "One-Step").
func NewOIDC(token string) (Conversation, error) {
	if token == "" {
		return nil, fmt.Errorf("%s needs an access token, and got an empty one", OIDC)
	}
	return oneStep{OIDC, jwtStep(token)}, nil
}

func jwtStep(token string) []byte {
	doc, start := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendString(doc, "jwt", token), start)
}

// NewOIDCPrincipal begins the two-step conversation of MONGODB-OIDC (authentication specification, "Two-Step"): the
// server names the identity provider of the user, who may be empty, and token gets an access token from there.
func NewOIDCPrincipal(username string, token func(IDPInfo) (string, error)) Conversation {
	return &oidcPrincipal{username: username, token: token}
}

type oidcPrincipal struct {
	username string
	token    func(IDPInfo) (string, error)
	asked    bool
}

func (o *oidcPrincipal) Start() (string, []byte) {
	doc, start := bson.BeginDocument(nil)
	if o.username != "" {
		doc = bson.AppendString(doc, "n", o.username)
	}
	return OIDC, bson.EndDocument(doc, start)
}

func (o *oidcPrincipal) Step(challenge []byte) ([]byte, bool, error) {
	if o.asked {
		return nil, true, nil
	}
	info, err := parseIDPInfo(challenge)
	if err != nil {
		return nil, false, err
	}
	token, err := o.token(info)
	if err != nil {
		return nil, false, err
	}
	if token == "" {
		return nil, false, fmt.Errorf("%s needs an access token, and got an empty one", OIDC)
	}
	o.asked = true
	return jwtStep(token), false, nil
}

func parseIDPInfo(challenge []byte) (info IDPInfo, err error) {
	doc := bson.Raw(challenge)
	if doc.Validate() != nil {
		return info, fmt.Errorf("%s: what the server says of the identity provider is no document", OIDC)
	}
	var ok bool
	if info.Issuer, ok = doc.Lookup("issuer").StringValueOK(); !ok {
		return info, fmt.Errorf("%s: the server names no issuer of tokens", OIDC)
	}
	info.ClientID, _ = doc.Lookup("clientId").StringValueOK()
	scopes, _ := doc.Lookup("requestScopes").ArrayOK()
	for _, v := range scopes.All() {
		if s, ok := v.StringValueOK(); ok {
			info.RequestScopes = append(info.RequestScopes, s)
		}
	}
	return info, nil
}
