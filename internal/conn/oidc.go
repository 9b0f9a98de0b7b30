package conn

import (
	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/mongoerr"
)

// loginOIDC logs in by MONGODB-OIDC: with the client's cached token, else with a new one (authentication specification,
// "Credential caching"). A token is given up only where the server says that it is bad.
func (a *authenticator) loginOIDC(c *Conn) error {
	o := a.credential.OIDC
	a.token = ""
	if token := o.Cached(); token != "" {
		err := a.tryToken(c, token)
		if !badToken(err) {
			return err
		}
		o.Invalidate(token)
	}
	if o.Human() {
		return a.loginHuman(c)
	}
	token, err := o.Machine(a.limit.outer)
	if err != nil {
		return a.refuse(c, err)
	}
	a.limit.renew()
	return a.tryToken(c, token)
}

// loginHuman tries the refresh token of an earlier login; without one, or when that fails, the person logs in.
func (a *authenticator) loginHuman(c *Conn) error {
	o := a.credential.OIDC
	if o.CanRefresh() {
		token, err := o.Refresh(a.limit.outer)
		if err != nil {
			return a.refuse(c, err)
		}
		a.limit.renew()
		if err = a.tryToken(c, token); !badToken(err) {
			return err
		}
		o.Invalidate(token)
		o.ForgetRefresh()
	}
	a.conversation = auth.NewOIDCPrincipal(o.Username(), func(idp auth.IDPInfo) (string, error) {
		token, err := o.LogIn(a.limit.outer, idp)
		a.limit.renew()
		a.token = token
		return token, err
	})
	return a.converse(c)
}

// tryToken logs in with an access token.
func (a *authenticator) tryToken(c *Conn, token string) (err error) {
	if a.conversation, err = auth.NewOIDC(token); err != nil {
		return a.refuse(c, err)
	}
	a.token = token
	return a.converse(c)
}

// badToken says whether the server refused a token, rather than the connection or the server failed. A server that wants
// a login repeated in the middle of one means the same.
func badToken(err error) bool {
	e, ok := err.(*mongoerr.Error)
	return ok && (e.Code == mongoerr.CodeAuthenticationFailed || e.Code == mongoerr.CodeReauthenticationRequired)
}
