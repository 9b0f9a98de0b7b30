package command

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/xdg-go/scram"
)

var authCommands = []Spec{
	{Name: "saslStart", Flags: BeforeAuth, Handler: saslStart},
	{Name: "saslContinue", Flags: BeforeAuth, Handler: saslContinue},
	{Name: "logout", Flags: BeforeAuth, Handler: logout},
	{Name: "authenticate", Flags: BeforeAuth, Handler: authenticate},
	{Name: "getnonce", Aliases: []string{"getNonce"}, Flags: BeforeAuth, Handler: getNonce},
}

// conversation is a connection's authentication while it runs: one at a time, as in the server.
type conversation struct {
	id        int32
	scram     *scram.ServerConversation
	db        string
	mechanism string
	skipEmpty bool // the client wants no empty exchange at the end
	verified  bool // only the empty exchange is missing
}

// authenticated reports whether the connection may run commands.
func (m *Member) authenticated(c *Conn) bool {
	return m.opt.Users == nil || c.internal || len(c.users) > 0
}

// errAuth tells a stranger nothing about what was wrong.
func errAuth() *mongoerr.Error {
	return mongoerr.Server(mongoerr.CodeAuthenticationFailed, "Authentication failed.")
}

func saslStart(_ context.Context, m *Member, r *Request) (bson.D, error) {
	return m.startConversation(r.Conn, r.DB, r.Body)
}

// startConversation begins a SCRAM conversation with a saslStart document.
func (m *Member) startConversation(c *Conn, db string, doc bson.Raw) (bson.D, error) {
	c.auth = conversation{id: c.auth.id}
	mechanism, _ := doc.Lookup("mechanism").StringValueOK()
	_, payload, ok := doc.Lookup("payload").BinaryOK()
	if s, isString := doc.Lookup("payload").StringValueOK(); isString {
		payload, ok = []byte(s), true
	}
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "saslStart needs a payload")
	}
	if mechanism != scram256 && mechanism != scram1 {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "Unsupported mechanism '%s' on authentication database '%s'", mechanism, db)
	}
	if m.opt.Users == nil {
		return nil, errAuth()
	}
	server, err := m.opt.Users.server(mechanism, db)
	if err != nil {
		return nil, mongoerr.Server(mongoerr.CodeInternalError, "%v", err)
	}
	c.auth.id++
	c.auth.scram, c.auth.db, c.auth.mechanism = server.NewConversation(), db, mechanism
	c.auth.skipEmpty, _ = doc.Lookup("options", "skipEmptyExchange").BooleanOK()
	return m.converse(c, payload)
}

func saslContinue(_ context.Context, m *Member, r *Request) (bson.D, error) {
	c := r.Conn
	if c.auth.scram == nil {
		return nil, mongoerr.Server(mongoerr.CodeProtocolError, "No SASL session state found")
	}
	if id, ok := r.Field("conversationId").AsInt64OK(); !ok || id != int64(c.auth.id) {
		return nil, mongoerr.Server(mongoerr.CodeProtocolError, "sasl: Mismatched conversation id")
	}
	_, payload, _ := r.Field("payload").BinaryOK()
	if c.auth.verified {
		return m.finish(c, nil)
	}
	return m.converse(c, payload)
}

// converse takes one step.
func (m *Member) converse(c *Conn, payload []byte) (bson.D, error) {
	answer, err := c.auth.scram.Step(string(payload))
	if err != nil {
		m.log.Info("authentication failed", "member", m.self, "connection", c.ID, "mechanism", c.auth.mechanism)
		c.auth.scram = nil
		return nil, errAuth()
	}
	if c.auth.scram.Done() {
		if !c.auth.scram.Valid() {
			c.auth.scram = nil
			return nil, errAuth()
		}
		if c.auth.skipEmpty {
			return m.finish(c, []byte(answer))
		}
		c.auth.verified = true
	}
	return saslReply(c.auth.id, false, []byte(answer)), nil
}

func (m *Member) finish(c *Conn, payload []byte) (bson.D, error) {
	c.users = append(c.users, User{Name: c.auth.scram.Username(), DB: c.auth.db})
	c.auth.scram = nil
	return saslReply(c.auth.id, true, payload), nil
}

func saslReply(id int32, done bool, payload []byte) bson.D {
	return bson.D{{Key: "conversationId", Value: id}, {Key: "done", Value: done}, {Key: "payload", Value: bson.Binary{Data: payload}}}
}

// authFields are what hello says about authentication, if it was asked: the mechanisms that a user has, and the first
// answer to a speculative saslStart. Whatever is wrong with either is left out, so that the client goes the long way.
func (m *Member) authFields(r *Request) (d bson.D) {
	if name, ok := r.Field("saslSupportedMechs").StringValueOK(); ok && m.opt.Users != nil {
		if mechanisms := m.opt.Users.mechanisms(name); mechanisms != nil {
			d = append(d, bson.E{Key: "saslSupportedMechs", Value: mechanisms})
		}
	}
	spec, ok := r.Field("speculativeAuthenticate").DocumentOK()
	if !ok || m.opt.Users == nil || firstKey(spec) != "saslStart" {
		return d
	}
	db, ok := spec.Lookup("db").StringValueOK()
	if !ok {
		db = r.DB
	}
	if answer, err := m.startConversation(r.Conn, db, spec); err == nil {
		d = append(d, bson.E{Key: "speculativeAuthenticate", Value: answer})
	}
	return d
}

func logout(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	r.Conn.users = nil
	return nil, nil
}

func authenticate(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	mechanism, ok := r.Field("mechanism").StringValueOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "Auth mechanism not specified")
	}
	return nil, mongoerr.Server(mongoerr.CodeBadValue, "Unsupported mechanism '%s' on authentication database '%s'", mechanism, r.DB)
}

func getNonce(context.Context, *Member, *Request) (bson.D, error) {
	id := newUUID()
	return bson.D{{Key: "nonce", Value: hexOf(id[:8])}}, nil
}
