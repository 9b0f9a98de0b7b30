package sextant

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/internal/credential"
	"github.com/sextantdb/sextant/internal/topology"
)

// AWSCredentials are keys of AWS, for MONGODB-AWS. No verb of fmt shows the secret ones.
type AWSCredentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string    // of temporary keys; empty for a user's own
	Expiration      time.Time // for the provider's own use; zero: never
}

// Format prints no secret.
func (c AWSCredentials) Format(s fmt.State, verb rune) { auth.AWSKeys(c).Format(s, verb) }

// OIDCArgs are what a callback for MONGODB-OIDC is told.
type OIDCArgs struct {
	Version      int      // of this interface: 1. It grows when something changes that does not break a callback.
	Username     string   // of the configuration; may be empty
	IDPInfo      *IDPInfo // where a person logs in; nil for OIDCMachineCallback
	RefreshToken string   // of the person's last login, to be used in place of a new one; may be empty
}

// IDPInfo is what the server says of the identity provider.
type IDPInfo struct {
	Issuer        string   // URL of the authorization server
	ClientID      string   // of this kind of client; may be empty
	RequestScopes []string // further scopes to ask for
}

// OIDCCredential is what a callback for MONGODB-OIDC returns. No verb of fmt shows the tokens.
type OIDCCredential struct {
	AccessToken  string
	ExpiresIn    time.Duration // 0: for ever; less is an error. It is not used yet: a token is kept until a server refuses it.
	RefreshToken string        // for the next call of OIDCHumanCallback; may be empty
}

// Format prints no secret.
func (c OIDCCredential) Format(s fmt.State, verb rune) { credential.OIDCToken(c).Format(s, verb) }

// OIDCCallback gets an access token. The driver calls one at a time and keeps the token; ctx ends after a minute, or
// after five where a person logs in, and when the client is closed, which waits for the callback.
type OIDCCallback func(ctx context.Context, args OIDCArgs) (*OIDCCredential, error)

// internally is the callback as the driver's insides call it.
func (f OIDCCallback) internally() credential.OIDCFunc {
	return func(ctx context.Context, in credential.OIDCArgs) (credential.OIDCToken, error) {
		args := OIDCArgs{Version: in.Version, Username: in.Username, RefreshToken: in.RefreshToken}
		if in.IDPInfo != nil {
			args.IDPInfo = new(IDPInfo(*in.IDPInfo))
		}
		got, err := f(ctx, args)
		if err != nil || got == nil {
			return credential.OIDCToken{}, err // none is refused as an empty token
		}
		return credential.OIDCToken(*got), nil
	}
}

// login is what the configuration says of who logs in, nil if nobody does.
func (c *Config) login() *connstring.Credential {
	if c.Username == "" && c.AuthMechanism == "" {
		return nil
	}
	properties := make(map[string]string, len(c.AuthMechanismProperties))
	for name, value := range c.AuthMechanismProperties {
		properties[strings.ToUpper(name)] = value
	}
	return &connstring.Credential{
		Username: c.Username, Password: c.Password, HasUser: c.Username != "", HasPassword: c.Password != "",
		Mechanism: c.AuthMechanism, Source: c.AuthSource, Database: c.Database, Properties: properties,
	}
}

// inClear warns of a login that works, and that whoever sees the packets can read. Sockets of the file system have none.
func (c *Config) inClear() []Warning {
	what := map[string]string{auth.Plain: "password", auth.OIDC: "token"}[c.AuthMechanism]
	sockets := len(c.Hosts) > 0 && !slices.ContainsFunc(c.Hosts, func(h string) bool { return !topology.IsPath(h) })
	if what == "" || c.TLS || c.TLSConfig != nil || sockets {
		return nil
	}
	return []Warning{{Option: "authMechanism", Value: c.AuthMechanism, Message: "without TLS it sends the " + what + sentInClear}}
}

const sentInClear = " in clear: whoever sees the packets can read it (tls=true)"

func (w Warning) ofSecret() bool { return strings.HasSuffix(w.Message, sentInClear) }

// warned are the warnings of the configuration as it is now: since ParseURI it may have been given TLS, or another login.
func (c *Config) warned() []Warning {
	return append(slices.DeleteFunc(slices.Clone(c.Warnings), Warning.ofSecret), c.inClear()...)
}

func (c *Config) checkAuth() error {
	said := c.login()
	switch {
	case c.AuthMechanism != auth.AWS && c.AWSCredentialProvider != nil:
		return configError("AWSCredentialProvider belongs to MONGODB-AWS: set AuthMechanism")
	case c.AuthMechanism != auth.OIDC && (c.OIDCMachineCallback != nil || c.OIDCHumanCallback != nil):
		return configError("OIDCMachineCallback and OIDCHumanCallback belong to MONGODB-OIDC: set AuthMechanism")
	case said == nil && c.Password != "":
		return configError("a password is given, but no user name")
	case said == nil:
		return nil
	case said.Mechanism == "" && !said.HasPassword:
		return configError("a user name is given, but no password")
	}
	if err := said.Check(); err != nil {
		return configError("%s", err.Error())
	}
	if err := auth.Check(said.Mechanism); err != nil {
		return configError("%s", err.Error())
	}
	switch said.Mechanism {
	case auth.OIDC:
		return c.checkOIDC(said)
	case auth.AWS:
		return c.checkAWS(said)
	}
	return nil
}

func (c *Config) checkOIDC(said *connstring.Credential) error {
	ways := 0
	for _, there := range []bool{said.Properties["ENVIRONMENT"] != "", c.OIDCMachineCallback != nil, c.OIDCHumanCallback != nil} {
		if there {
			ways++
		}
	}
	if c.OIDCAllowedHosts != nil && c.OIDCHumanCallback == nil {
		return configError("OIDCAllowedHosts is given, but no OIDCHumanCallback, for which alone it counts")
	}
	if ways != 1 {
		return configError("authMechanism=MONGODB-OIDC takes one of authMechanismProperties=ENVIRONMENT:..., OIDCMachineCallback and OIDCHumanCallback, and %d are given", ways)
	}
	return nil
}

// checkAWS refuses keys beside connections in the clear. A signature is good for whoever passes on the nonce of the real
// server: only TLS tells the client whom it signs for. (Of two official cases with keys in the string one must be
// accepted, on localhost, and one refused, elsewhere; no other rule tells them apart.)
func (c *Config) checkAWS(said *connstring.Credential) error {
	if !said.HasUser || c.TLS || c.TLSConfig != nil {
		return nil
	}
	for _, h := range c.Hosts {
		if !onThisMachine(h) {
			return configError("authMechanism=MONGODB-AWS with an access key needs TLS (tls=true) for %s: without it a stranger could log in with what was signed for the server", h)
		}
	}
	return nil
}

func onThisMachine(seed string) bool {
	if topology.IsPath(seed) {
		return true
	}
	host, _, err := net.SplitHostPort(withPort(seed))
	ip, notIP := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || notIP == nil && ip.IsLoopback())
}

// credential is who logs in, with the client's own store of tokens; nil if nobody does.
func (c *Config) credential() (*conn.Credential, error) {
	said := c.login()
	if said == nil {
		return nil, nil
	}
	cr := &conn.Credential{Username: c.Username, Password: c.Password, Source: said.AuthSource(), Mechanism: c.AuthMechanism}
	switch c.AuthMechanism {
	case auth.AWS:
		cr.AWS = c.awsKeys(said.Properties["AWS_SESSION_TOKEN"])
	case auth.OIDC:
		return cr, c.oidc(cr, said)
	}
	return cr, nil
}

func (c *Config) awsKeys(session string) *credential.AWS {
	out := &credential.AWS{Keys: auth.AWSKeys{AccessKeyID: c.Username, SecretAccessKey: c.Password, SessionToken: session}}
	if f := c.AWSCredentialProvider; f != nil {
		out.Provider = func(ctx context.Context) (auth.AWSKeys, error) {
			k, err := f(ctx)
			return auth.AWSKeys(k), err
		}
	}
	return out
}

func (c *Config) oidc(cr *conn.Credential, said *connstring.Credential) error {
	switch {
	case c.OIDCHumanCallback != nil:
		cr.OIDC = credential.NewHuman(c.Username, c.OIDCHumanCallback.internally(), c.OIDCAllowedHosts)
	case c.OIDCMachineCallback != nil:
		cr.OIDC = credential.NewMachine(c.Username, c.OIDCMachineCallback.internally())
	default:
		f, err := credential.System{}.Environment(said.Properties["ENVIRONMENT"], said.Properties["TOKEN_RESOURCE"])
		if err != nil {
			return configError("authMechanism=MONGODB-OIDC: %s", err.Error())
		}
		cr.OIDC = credential.NewMachine(c.Username, f)
	}
	return nil
}
