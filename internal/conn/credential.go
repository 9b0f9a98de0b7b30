package conn

import (
	"fmt"

	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/internal/credential"
)

// Credential is a user and how to prove it.
type Credential struct {
	Username  string
	Password  string
	Source    string           // database that holds the user; "" means admin
	Mechanism string           // "" means negotiate SCRAM-SHA-256 or SCRAM-SHA-1
	AWS       *credential.AWS  // the keys of MONGODB-AWS; nil: what the machine has
	OIDC      *credential.OIDC // the tokens of MONGODB-OIDC, which needs it: the cache of one client
}

func (cr *Credential) source() string {
	if cr.Source == "" {
		return "admin"
	}
	return cr.Source
}

// Format names the user for an error, for every verb; the password never.
func (cr Credential) Format(s fmt.State, _ rune) {
	who := "user " + fmt.Sprintf("%q", cr.Username)
	if cr.Username == "" {
		who = map[string]string{
			auth.X509: "the user of the client's certificate", auth.AWS: "the user of the AWS keys", auth.OIDC: "the user of the OIDC token",
		}[cr.Mechanism]
	}
	fmt.Fprintf(s, "%s of database %q", who, cr.source())
}

func (cr *Credential) aws() *credential.AWS {
	if cr.AWS == nil {
		return &credential.AWS{}
	}
	return cr.AWS
}
