package conn

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/mongoerr"
)

// authenticator carries one conversation over a connection. Its first step rides in the hello.
type authenticator struct {
	credential   *Credential
	conversation auth.Conversation
	supported    []string // saslSupportedMechs of the server
	speculative  bson.Raw // the server's answer to the step in the hello
}

// String names the user for an error; the password never.
func (cr *Credential) String() string {
	return fmt.Sprintf("user %q of database %q", cr.Username, cr.source())
}

// newAuthenticator is nil where nobody is to be authenticated.
func newAuthenticator(o *Options) (*authenticator, error) {
	cr := o.Credential
	if cr == nil || o.Monitor {
		return nil, nil
	}
	a := &authenticator{credential: cr}
	mechanism := cr.Mechanism
	if mechanism == "" {
		mechanism = auth.ScramSHA256
	}
	return a, a.begin(mechanism)
}

func (a *authenticator) begin(mechanism string) error {
	var err error
	a.conversation, err = auth.New(mechanism, a.credential.Username, a.credential.Password, rand.Text(), keys.derive)
	return err
}

// appendToHello asks which mechanisms the user has, if none was configured, and makes the first step ahead of the
// answer.
func (a *authenticator) appendToHello(dst []byte) []byte {
	if a.credential.Mechanism == "" {
		dst = bson.AppendString(dst, "saslSupportedMechs", a.credential.source()+"."+a.credential.Username)
	}
	dst, start := bson.BeginDocumentElement(dst, "speculativeAuthenticate")
	dst = a.appendStart(dst)
	dst = bson.AppendString(dst, "db", a.credential.source())
	return bson.EndDocument(dst, start)
}

// appendStart appends saslStart. skipEmptyExchange spares a round trip at the end.
func (a *authenticator) appendStart(dst []byte) []byte {
	mechanism, payload := a.conversation.Start()
	dst = bson.AppendInt32(dst, "saslStart", 1)
	dst = bson.AppendString(dst, "mechanism", mechanism)
	dst = bson.AppendBinary(dst, "payload", 0, payload)
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

// run finishes the conversation: from the speculative answer if there is one, else from the start with the mechanism
// that was configured or negotiated.
func (a *authenticator) run(ctx context.Context, c *Conn) error {
	reply := a.speculative
	if reply == nil {
		mechanism := a.credential.Mechanism
		if mechanism == "" {
			mechanism = auth.Negotiate(a.supported)
		}
		if err := a.begin(mechanism); err != nil {
			return a.refuse(c, err)
		}
		var err error
		if reply, err = a.send(ctx, c, "saslStart", a.appendStart); err != nil {
			return err
		}
	}
	return a.carry(ctx, c, reply)
}

// carry passes payloads to and fro until both sides are done. A SCRAM conversation takes one saslContinue, one more if
// the server does not know skipEmptyExchange.
func (a *authenticator) carry(ctx context.Context, c *Conn, reply bson.Raw) error {
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
		reply, err = a.send(ctx, c, "saslContinue", func(dst []byte) []byte {
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

// send sends one command of the conversation and returns the server's answer, copied.
func (a *authenticator) send(ctx context.Context, c *Conn, name string, elements func([]byte) []byte) (bson.Raw, error) {
	body, err := c.command(ctx, a.credential.source(), elements)
	if err != nil {
		return nil, err
	}
	if err := body.Validate(); err != nil {
		return nil, a.refuse(c, fmt.Errorf("the server's answer to %s is malformed: %w", name, err))
	}
	body = body.Clone()
	if e := mongoerr.FromReply(body); e != nil {
		mechanism, _ := a.conversation.Start()
		e.Stage, e.Server, e.Op = mongoerr.StageAuth, c.addr, name
		e.Message = fmt.Sprintf("%s, by %s: %s", a.credential, mechanism, e.Message)
		c.broken.Store(true)
		return nil, e
	}
	return body, nil
}

func (a *authenticator) refuse(c *Conn, err error) error {
	return c.fail(mongoerr.StageAuth, err, "%s", a.credential)
}
