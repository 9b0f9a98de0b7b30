package command

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// envelope is what a reply must know of the message that it answers.
type envelope struct {
	responseTo int32
	query      bool        // OP_QUERY: answer with OP_REPLY
	silent     bool        // the client wants no reply
	exhaust    bool        // the client takes a stream of replies
	find       bool        // an OP_QUERY on a collection: answered, but only with an error
	packed     compress.ID // the compressor of the message, Noop if it was not compressed
}

// parse takes a message apart. An error means that the connection is to be dropped.
func (c *Conn) parse(msg []byte) (*Request, envelope, error) {
	h, err := wire.CheckHeader(msg, wire.MaxMessage)
	if err != nil {
		return nil, envelope{}, err
	}
	switch h.OpCode {
	case wire.OpMsg:
		return c.parseMsg(msg)
	case wire.OpQuery:
		return c.parseQuery(msg)
	}
	return nil, envelope{}, fmt.Errorf("%w: %s is not spoken here", wire.ErrMalformed, wire.OpName(h.OpCode))
}

func (c *Conn) parseMsg(msg []byte) (*Request, envelope, error) {
	p, err := wire.ParseMsg(msg)
	if err != nil {
		return nil, envelope{}, err
	}
	env := envelope{responseTo: p.RequestID, silent: p.Flags&wire.MoreToCome != 0, exhaust: p.Flags&wire.ExhaustAllowed != 0}
	if err := p.Body.Validate(); err != nil {
		return c.unreadable("the command", err), env, nil
	}
	r := &Request{Body: p.Body, Conn: c, Name: firstKey(p.Body)}
	r.DB, _ = p.Body.Lookup("$db").StringValueOK()
	for _, s := range p.Sequences {
		for i, d := range s.Docs {
			if err := d.Validate(); err != nil {
				return c.unreadable(fmt.Sprintf("document %d of %s", i, s.ID), err), env, nil
			}
		}
		if r.Docs == nil {
			r.Docs = map[string][]bson.Raw{}
		}
		r.Docs[s.ID] = s.Docs
	}
	return r, env, nil
}

// parseQuery makes a command of an OP_QUERY, as old clients send it: {$query: {...}, $readPreference: ...} or plain.
func (c *Conn) parseQuery(msg []byte) (*Request, envelope, error) {
	q, err := wire.ParseQuery(msg)
	if err != nil {
		return nil, envelope{}, err
	}
	env := envelope{responseTo: q.RequestID, query: true}
	if err := q.Query.Validate(); err != nil {
		return c.unreadable("the query", err), env, nil
	}
	db, coll, _ := strings.Cut(q.Collection, ".")
	body := q.Query
	for _, wrapper := range []string{"$query", "query"} {
		if inner, ok := body.Lookup(wrapper).DocumentOK(); ok && firstKey(body) == wrapper {
			body = withReadPreference(inner, q.Query.Lookup("$readPreference"))
			break
		}
	}
	if q.Flags&wire.QuerySecondaryOK != 0 && body.Lookup("$readPreference").IsZero() {
		body = withReadPreference(body, bson.DocumentValue(document(bson.D{{Key: "mode", Value: "secondaryPreferred"}})))
	}
	r := &Request{Body: body, Conn: c, Name: firstKey(body), DB: db}
	env.find = coll != "$cmd"
	return r, env, nil
}

// unreadable is a message whose frame is sound, with BSON in it that is not, or strings that are not UTF-8: it is refused,
// and the connection goes on. A server takes such strings as they are.
func (c *Conn) unreadable(what string, err error) *Request {
	c.m.complain(slog.LevelWarn, "a message was refused", err.Error(), c.nc.RemoteAddr(), "connection", c.ID, "error", err)
	return &Request{Body: bson.Raw{5, 0, 0, 0, 0}, Conn: c, invalid: mongoerr.Server(mongoerr.CodeInvalidBSON, "%s is no valid BSON: %v", what, err)}
}

func withReadPreference(body bson.Raw, pref bson.RawValue) bson.Raw {
	if pref.IsZero() {
		return body
	}
	dst, start := bson.BeginDocument(nil)
	dst = append(dst, body[4:len(body)-1]...)
	dst = bson.AppendValue(dst, "$readPreference", pref)
	return bson.EndDocument(dst, start)
}

func firstKey(doc bson.Raw) string {
	for key := range doc.All() {
		return key
	}
	return ""
}

// write sends the reply. It reports false when the connection is to end.
func (c *Conn) write(r *Request, env envelope, rep *reply, more bool) bool {
	c.lastID++
	var dst []byte
	var err error
	if env.query {
		dst, err = c.appendOpReply(r, env, rep)
	} else {
		dst, err = c.appendOpMsg(r, env, rep, more)
	}
	if err != nil {
		c.m.log.Error("a reply could not be encoded", "command", r.Name, "error", err)
		*rep = refuse(mongoerr.Server(mongoerr.CodeInternalError, "the reply of %s could not be encoded: %v", r.Name, err))
		if env.query {
			dst, err = c.appendOpReply(r, env, rep)
		} else {
			dst, err = c.appendOpMsg(r, env, rep, false)
		}
		if err != nil {
			return false
		}
	}
	if dst, err = c.pack(dst, env.packed); err != nil {
		c.m.log.Error("a reply could not be compressed", "command", r.Name, "error", err)
		return false
	}
	if c.m.crashed.Load() {
		return false // the sockets of a crashed process all fall silent at once, those not cut yet too
	}
	return c.send(dst, greetings[strings.ToLower(r.Name)])
}

// greetings are the commands of a connection's beginning, and of monitors.
var greetings = map[string]bool{"hello": true, "ismaster": true, "saslstart": true, "saslcontinue": true}

// send writes a message, through the faults that a link can have.
func (c *Conn) send(msg []byte, greeting bool) bool {
	if !c.m.opt.Faults.onTheWay(c.ctx, c, time.Now(), len(msg), false) {
		return false
	}
	if !greeting {
		if through, end := c.m.opt.Faults.cutAt(c, len(msg)); end {
			_, _ = c.nc.Write(msg[:through])
			shut(raw(c.nc))
			return false
		}
	}
	if len(msg) > smallMessage {
		err := c.sendLarge(msg)
		if err != nil {
			c.logEnd(err)
		}
		return err == nil
	}
	_, err := c.nc.Write(msg)
	return err == nil
}

func (c *Conn) appendOpMsg(r *Request, env envelope, rep *reply, more bool) ([]byte, error) {
	var flags uint32
	if more {
		flags = wire.MoreToCome
	}
	dst, start := wire.AppendMsgStart(make([]byte, 0, 1024), c.lastID, env.responseTo, flags)
	dst, err := c.replier(r).appendReplyDocument(dst, r, rep)
	if err != nil {
		return nil, err
	}
	return wire.EndMsg(dst, start), nil
}

// replier is the member whose times a reply tells.
func (c *Conn) replier(r *Request) *Member {
	if r.served != nil {
		return r.served
	}
	return c.m
}

func (c *Conn) appendOpReply(r *Request, env envelope, rep *reply) ([]byte, error) {
	doc, err := c.replier(r).appendReplyDocument(nil, r, rep)
	if err != nil {
		return nil, err
	}
	flags := wire.ReplyAwaitCapable
	if env.find {
		flags |= wire.ReplyQueryFailure
		doc = document(bson.D{{Key: "$err", Value: "OP_QUERY on a collection is not supported: use the find command"},
			{Key: "code", Value: int32(mongoerr.CodeUnsupportedOpQueryCommand)}, {Key: "ok", Value: 0.0}})
	}
	return wire.AppendReply(nil, c.lastID, env.responseTo, flags, 0, 0, doc), nil
}
