package conn

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/mongoerr"
)

// hint says what the refusal of a login commonly means, and what to do about it. It begins with a semicolon.
func (a *authenticator) hint(c *Conn, e *mongoerr.Error) string {
	unsupported := e.Code == mongoerr.CodeBadValue && strings.Contains(e.Message, "nsupported mechanism")
	switch {
	case e.Code == mongoerr.CodeMechanismUnavailable || unsupported:
		return fmt.Sprintf("; the server does not offer the mechanism %s (its parameter authenticationMechanisms)", a.mechanism())
	case e.Code == mongoerr.CodeCommandNotFound:
		return "; this server knows no logins: leave user and password out"
	case e.Code == mongoerr.CodeAuthenticationFailed:
		return "; " + a.whyRefused(c)
	}
	return ""
}

// whyRefused says what the server does not: it tells a stranger nothing but that the login failed.
func (a *authenticator) whyRefused(c *Conn) string {
	source := a.credential.source()
	switch a.credential.Mechanism {
	case "":
		if len(a.supported) == 0 {
			return fmt.Sprintf("there is no such user in database %q (authSource names another), or this server has no users at all", source)
		}
		return "the user exists there, so the password must be wrong"
	case auth.ScramSHA1, auth.ScramSHA256:
		return fmt.Sprintf("the password is wrong, there is no such user in database %q (authSource names another), or the user has no key for this mechanism (leave authMechanism out to have the server asked)", source)
	case auth.X509:
		if _, secure := c.nc.(*tls.Conn); !secure {
			return "the connection has no TLS, so no certificate was shown (tls=true, tlsCertificateKeyFile)"
		}
		return "no certificate was shown (tlsCertificateKeyFile), or database $external has no user with the name of its subject"
	case auth.Plain:
		return "the directory refused user or password"
	case auth.AWS:
		return "AWS refused the keys, or database $external has no user for their role"
	}
	return "the token was refused: look at its issuer, audience, expiry and user"
}
