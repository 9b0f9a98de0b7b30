package command

import (
	"context"
	"log/slog"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/xdg-go/scram"
)

var authCommands = []Spec{
	{Name: "saslStart", Flags: BeforeAuth | OnExternal, Handler: saslStart, Fields: "mechanism:string! autoAuthorize:safeBool options:object payload!"},
	{Name: "saslContinue", Flags: BeforeAuth | OnExternal, Handler: saslContinue, Fields: "conversationId:int! payload!"},
	{Name: "logout", Flags: BeforeAuth | OnExternal, Handler: logout, Fields: "-", Since: wire60},
	{Name: "authenticate", Flags: BeforeAuth | OnExternal, Handler: authenticate, Fields: "mechanism:string! user:string", Since: wire60},
	{Name: "getnonce", Aliases: []string{"getNonce"}, Flags: BeforeAuth | OnExternal, Handler: getNonce},
}

// conversation is a connection's authentication while it runs: one at a time, as in the server.
type conversation struct {
	id        int32
	exchange  exchange // nil: none is running
	db        string
	mechanism string
	skipEmpty bool // the client wants no empty exchange at the end
	verified  bool // only the empty exchange is missing
}

// exchange is the server's half of one mechanism. done means that the user has proved who it is.
type exchange interface {
	step(payload []byte) (answer []byte, done bool, err error)
	user() string
}

type scramExchange struct{ *scram.ServerConversation }

func (s scramExchange) user() string { return s.Username() }

func (s scramExchange) step(payload []byte) ([]byte, bool, error) {
	answer, err := s.Step(string(payload))
	if err == nil && s.Done() && !s.Valid() {
		err = errAuth()
	}
	return []byte(answer), s.Done(), err
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
	if !m.offers(mechanism, db) {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "Unsupported mechanism '%s' on authentication database '%s'", mechanism, db)
	}
	if m.opt.Users == nil {
		return nil, errAuth()
	}
	half, err := m.half(mechanism, db)
	if err != nil {
		return nil, mongoerr.Server(mongoerr.CodeInternalError, "%v", err)
	}
	c.auth.id++
	c.auth.exchange, c.auth.db, c.auth.mechanism = half, db, mechanism
	c.auth.skipEmpty, _ = doc.Lookup("options", "skipEmptyExchange").BooleanOK()
	c.auth.skipEmpty = c.auth.skipEmpty || mechanism == plain || mechanism == oidc // which have no such exchange
	return m.converse(c, payload)
}

func saslContinue(_ context.Context, m *Member, r *Request) (bson.D, error) {
	c := r.Conn
	if c.auth.exchange == nil {
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
	answer, done, err := c.auth.exchange.step(payload)
	if err != nil {
		m.complain(slog.LevelInfo, "authentication failed", c.auth.mechanism, c.nc.RemoteAddr(), "connection", c.ID, "mechanism", c.auth.mechanism)
		c.auth.exchange = nil
		return nil, errAuth()
	}
	if done && c.auth.skipEmpty {
		return m.finish(c, answer)
	}
	c.auth.verified = done
	return saslReply(c.auth.id, false, answer), nil
}

func (m *Member) finish(c *Conn, payload []byte) (bson.D, error) {
	c.welcome(User{Name: c.auth.exchange.user(), DB: c.auth.db})
	c.auth.exchange = nil
	return saslReply(c.auth.id, true, payload), nil
}

// welcome notes that a user has logged in, perhaps once more.
func (c *Conn) welcome(u User) {
	for _, v := range c.users {
		if v.Name == u.Name && v.DB == u.DB {
			return
		}
	}
	c.users = append(c.users, u)
	c.desk.seat(u.DB+"."+u.Name, c.App)
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
	if !ok || m.opt.Users == nil {
		return d
	}
	db, ok := spec.Lookup("db").StringValueOK()
	if !ok {
		db = r.DB
	}
	var answer bson.D
	var err error
	switch firstKey(spec) {
	case "saslStart":
		answer, err = m.startConversation(r.Conn, db, spec)
	case "authenticate":
		answer, err = m.byCertificate(r.Conn, db, spec)
	}
	if answer != nil && err == nil {
		d = append(d, bson.E{Key: "speculativeAuthenticate", Value: answer})
	}
	return d
}

func logout(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	r.Conn.users = nil
	r.Conn.desk.seat("", r.Conn.App)
	return nil, nil
}

func authenticate(_ context.Context, m *Member, r *Request) (bson.D, error) {
	return m.byCertificate(r.Conn, r.DB, r.Body)
}

func getNonce(context.Context, *Member, *Request) (bson.D, error) {
	id := newUUID()
	return bson.D{{Key: "nonce", Value: hexOf(id[:8])}}, nil
}
