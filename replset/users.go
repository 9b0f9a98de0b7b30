package replset

import (
	"slices"

	"github.com/sextantdb/sextant/replset/internal/command"
)

const external = "$external"

// User is who may authenticate. Users of the database "$external" log in with PLAIN, if they have a password, and with
// MONGODB-X509, if their name is the subject of a client's certificate (see ClientSubject); all others with SCRAM-SHA-256
// or SCRAM-SHA-1.
type User struct {
	Name, Password string   // a password is needed save in "$external"
	DB             string   // the authentication database; "admin" if empty
	Mechanisms     []string // that the user may use, of those; nil: all of them
}

// OIDC has the members of a set log users in by MONGODB-OIDC.
type OIDC struct {
	// Check says whose token it is; an error refuses it. It is called by many goroutines. The set knows nothing of
	// signatures: in a test, a token may be any text.
	Check func(token string) (user string, err error)
	// Providers are told to clients whose users log in by themselves. Nil: there is one, of the name
	// "https://issuer.invalid". With more than one a client must name its user.
	Providers []OIDCProvider
}

// OIDCProvider is one identity provider.
type OIDCProvider struct {
	Issuer, ClientID string
	RequestScopes    []string
	Users            []string // who logs in there; with one provider alone: everybody
}

func (o *OIDC) internally() *command.OIDC {
	if o == nil {
		return nil
	}
	out := &command.OIDC{Check: o.Check}
	for _, p := range o.Providers {
		out.Providers = append(out.Providers, command.OIDCProvider{Issuer: p.Issuer, ClientID: p.ClientID,
			RequestScopes: slices.Clone(p.RequestScopes), Users: slices.Clone(p.Users)})
	}
	if out.Providers == nil {
		out.Providers = []command.OIDCProvider{{Issuer: "https://issuer.invalid", ClientID: "sextant"}}
	}
	return out
}
