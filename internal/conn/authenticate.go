package conn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/mongoerr"
)

// authenticator logs one connection in, and in again when the server wants it. The first step of the login rides in the
// hello where the mechanism has one that needs no fetching (handshake specification, "Speculative authentication").
type authenticator struct {
	credential   *Credential
	limit        *limit
	conversation auth.Conversation // nil: none has begun
	supported    []string          // saslSupportedMechs of the server
	speculative  bson.Raw          // the server's answer to the step in the hello
	token        string            // the access token of this connection (MONGODB-OIDC, "Connection Cache")
}

// newAuthenticator is nil where nobody is to be authenticated.
func newAuthenticator(addr string, o *Options) (*authenticator, error) {
	cr := o.Credential
	if cr == nil || o.Monitor {
		return nil, nil
	}
	a := &authenticator{credential: cr}
	if err := auth.Check(cr.Mechanism); err != nil {
		return nil, err
	}
	if cr.Mechanism == auth.OIDC {
		if cr.OIDC == nil {
			return nil, errors.New("MONGODB-OIDC needs a callback or an environment to get access tokens from")
		}
		if err := cr.OIDC.CheckHost(addr); err != nil {
			return nil, err
		}
	}
	return a, a.speculate()
}

// speculate begins the conversation whose first step goes into the hello, if there is to be one.
func (a *authenticator) speculate() (err error) {
	switch a.credential.Mechanism {
	case "":
		return a.begin(auth.ScramSHA256)
	case auth.ScramSHA1, auth.ScramSHA256:
		return a.begin(a.credential.Mechanism)
	case auth.OIDC:
		if a.token = a.credential.OIDC.Cached(); a.token != "" {
			a.conversation, err = auth.NewOIDC(a.token)
		}
	}
	return err
}

// begin begins the conversation of a mechanism that needs no more than the credential.
func (a *authenticator) begin(mechanism string) (err error) {
	cr := a.credential
	switch mechanism {
	case auth.Plain:
		a.conversation, err = auth.NewPlain(cr.Username, cr.Password)
	case auth.AWS:
		nonce := make([]byte, 32)
		rand.Read(nonce)
		a.conversation, err = auth.NewAWS(nonce, a.awsKeys)
	default:
		a.conversation, err = auth.NewScram(mechanism, cr.Username, cr.Password, rand.Text(), keys.derive)
	}
	return err
}

// awsKeys is called in the middle of a conversation: only then is it known that the server wants them.
func (a *authenticator) awsKeys() (auth.AWSKeys, time.Time, error) {
	k, err := a.credential.aws().Get(a.limit.outer)
	a.limit.renew()
	return k, time.Now(), err
}

// appendToHello asks which mechanisms the user has, if none was configured, and makes the first step ahead of the
// answer.
func (a *authenticator) appendToHello(dst []byte) []byte {
	if a.credential.Mechanism == "" {
		dst = bson.AppendString(dst, "saslSupportedMechs", a.credential.source()+"."+a.credential.Username)
	}
	x509 := a.credential.Mechanism == auth.X509
	if a.conversation == nil && !x509 {
		return dst
	}
	dst, start := bson.BeginDocumentElement(dst, "speculativeAuthenticate")
	if x509 {
		dst = auth.AppendX509(dst, a.credential.Username)
	} else {
		dst = a.appendStart(dst)
	}
	dst = bson.AppendString(dst, "db", a.credential.source())
	return bson.EndDocument(dst, start)
}

// appendStart appends saslStart. skipEmptyExchange spares a round trip at the end of a SCRAM conversation.
func (a *authenticator) appendStart(dst []byte) []byte {
	mechanism, payload := a.conversation.Start()
	dst = bson.AppendInt32(dst, "saslStart", 1)
	dst = bson.AppendString(dst, "mechanism", mechanism)
	dst = bson.AppendBinary(dst, "payload", 0, payload)
	if mechanism != auth.ScramSHA1 && mechanism != auth.ScramSHA256 {
		return dst
	}
	dst, start := bson.BeginDocumentElement(dst, "options")
	dst = bson.AppendBoolean(dst, "skipEmptyExchange", true)
	return bson.EndDocument(dst, start)
}

// heard takes what the server's hello says about authentication.
func (a *authenticator) heard(hello bson.Raw) {
	if mechanisms, ok := hello.Lookup("saslSupportedMechs").ArrayOK(); ok {
		for _, v := range mechanisms.All() {
			if name, ok := v.StringValueOK(); ok {
				a.supported = append(a.supported, name)
			}
		}
	}
	a.speculative, _ = hello.Lookup("speculativeAuthenticate").DocumentOK()
}

// run logs in after the hello: from the speculative answer if there is one, else from the start.
func (a *authenticator) run(c *Conn) error {
	reply := a.speculative
	a.speculative = nil // it is of no use to a later login
	switch {
	case reply == nil:
		return a.login(c)
	case a.credential.Mechanism == auth.X509:
		return nil
	case a.credential.Mechanism == auth.OIDC:
		if done, _ := reply.Lookup("done").BooleanOK(); done {
			return nil
		}
		return a.login(c)
	}
	return a.done(a.carry(c, reply))
}

// login logs in from the start, with the mechanism that was configured or negotiated.
func (a *authenticator) login(c *Conn) error {
	mechanism := a.credential.Mechanism
	switch mechanism {
	case auth.X509:
		_, err := a.send(c, "authenticate", func(dst []byte) []byte { return auth.AppendX509(dst, a.credential.Username) })
		return err
	case auth.OIDC:
		return a.loginOIDC(c)
	case "":
		mechanism = auth.Negotiate(a.supported)
	}
	if err := a.begin(mechanism); err != nil {
		return a.refuse(c, err)
	}
	return a.done(a.converse(c))
}

// done looks at the end of a login. After a failure fetched keys are not trusted any more (MONGODB-AWS, "Caching
// credentials").
func (a *authenticator) done(err error) error {
	if err != nil && a.credential.Mechanism == auth.AWS {
		a.credential.aws().Forget()
	}
	return err
}

// converse carries the conversation from its start to its end.
func (a *authenticator) converse(c *Conn) error {
	reply, err := a.send(c, "saslStart", a.appendStart)
	if err != nil {
		return err
	}
	return a.carry(c, reply)
}

// carry passes payloads to and fro until both sides are done. A SCRAM conversation takes one saslContinue, one more if
// the server does not know skipEmptyExchange.
func (a *authenticator) carry(c *Conn, reply bson.Raw) error {
	const rounds = 8
	for range rounds {
		_, challenge, ok := reply.Lookup("payload").BinaryOK()
		if !ok {
			return a.refuse(c, fmt.Errorf("the server's answer has no payload"))
		}
		payload, done, err := a.conversation.Step(challenge)
		if err != nil {
			return a.refuse(c, err)
		}
		if theirs, _ := reply.Lookup("done").BooleanOK(); theirs {
			if !done {
				return a.refuse(c, fmt.Errorf("the server ended the conversation before it proved itself"))
			}
			return nil
		}
		id := reply.Lookup("conversationId").Clone()
		reply, err = a.send(c, "saslContinue", func(dst []byte) []byte {
			dst = bson.AppendInt32(dst, "saslContinue", 1)
			if !id.IsZero() {
				dst = bson.AppendValue(dst, "conversationId", id)
			}
			return bson.AppendBinary(dst, "payload", 0, payload)
		})
		if err != nil {
			return err
		}
	}
	return a.refuse(c, fmt.Errorf("the conversation did not end after %d rounds", rounds))
}

// send sends one command of the login and returns the server's answer, copied.
func (a *authenticator) send(c *Conn, name string, elements func([]byte) []byte) (bson.Raw, error) {
	body, err := c.command(a.limit.ctx, a.credential.source(), elements)
	if err != nil {
		return nil, err
	}
	if err := body.Validate(); err != nil {
		return nil, a.refuse(c, fmt.Errorf("the server's answer to %s is malformed: %w", name, err))
	}
	body = body.Clone()
	if e := mongoerr.FromReply(body); e != nil {
		e.Stage, e.Server, e.Op = mongoerr.StageAuth, c.addr, name
		e.Message = fmt.Sprintf("%s, by %s: %s", a.credential, a.mechanism(), e.Message) + a.hint(c, e)
		return nil, e
	}
	return body, nil
}

// mechanism is the one that is being spoken.
func (a *authenticator) mechanism() string {
	if a.conversation == nil {
		return a.credential.Mechanism
	}
	mechanism, _ := a.conversation.Start()
	return mechanism
}

func (a *authenticator) refuse(c *Conn, err error) error {
	return c.fail(mongoerr.StageAuth, err, "%s", a.credential)
}

// Reauthenticate logs in once more, with fresh credentials, because the server has answered a command with
// ReauthenticationRequired (authentication specification, "Reauthentication"). No hello is sent. After an error the
// connection is broken.
func (c *Conn) Reauthenticate(ctx context.Context) error {
	a := c.login
	if a == nil {
		return c.fail(mongoerr.StageAuth, nil, "the server wants to have a login repeated, and nobody is logged in")
	}
	a.limit.restart(ctx)
	defer a.limit.end()
	c.phase = mongoerr.StageAuth
	defer func() { c.phase = "" }()
	if a.credential.Mechanism == auth.OIDC {
		a.credential.OIDC.Invalidate(a.token)
	}
	err := a.login(c)
	if err != nil {
		c.Break(err)
	}
	return err
}
