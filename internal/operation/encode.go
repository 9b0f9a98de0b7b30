package operation

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/pool"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// encode builds the whole message in the connection's buffer.
func (c *call) encode(pc *pool.Conn, t Target) ([]byte, error) {
	flags := uint32(0)
	if !c.op.acknowledged() {
		flags = wire.MoreToCome
	}
	msg, start := wire.AppendMsgStart(pc.Buffer(), pc.NextRequestID(), 0, flags)
	msg, body := bson.BeginDocument(msg)
	msg, err := c.op.Append(msg, t)
	if err != nil {
		return nil, err
	}
	msg = bson.EndDocument(c.appendEnvelope(msg, t), body)
	// A server closes the connection on bytes that it cannot read, which costs everybody the pool.
	if err := bson.Raw(msg[body:]).Validate(); err != nil {
		return nil, mongoerr.Wrap(mongoerr.StageEncode, err, "the command would be malformed")
	}
	if limit := int(t.MaxBSON); limit > 0 && len(msg)-body > limit+Envelope {
		return nil, tooLarge("the command has %d bytes; %s takes documents of at most %d, and commands %d longer",
			len(msg)-body, t.Addr, limit, Envelope)
	}
	if c.op.Sequence != nil {
		if msg, err = c.op.Sequence(msg, t); err != nil {
			return nil, err
		}
	}
	if limit := int(t.MaxMessage); limit > 0 && len(msg)-start > limit {
		return nil, tooLarge("the message has %d bytes; %s takes at most %d", len(msg)-start, t.Addr, limit)
	}
	return wire.EndMsg(msg, start), nil
}

// appendEnvelope appends what every command carries beside its own elements.
func (c *call) appendEnvelope(dst []byte, t Target) []byte {
	dst = bson.AppendString(dst, "$db", c.op.DB)
	if id := c.session.ID(); id != nil {
		dst = bson.AppendDocument(dst, "lsid", id)
		if c.txn != 0 {
			dst = bson.AppendInt64(dst, "txnNumber", c.txn)
		}
		dst = c.x.sessions.appendClusterTime(dst)
	}
	dst = c.op.ReadConcern.AppendElement(dst)
	dst = c.op.WriteConcern.AppendElement(dst)
	if doc := c.readPreference(t); doc != nil {
		dst = bson.AppendDocument(dst, "$readPreference", doc)
	}
	return dst
}

var primaryPreferred = readpref.PrimaryPreferred().Document()

// readPreference is the $readPreference document that the member must see, nil for none (specification "server
// selection", "passing read preference to mongos and load balancers" and "topology type single").
func (c *call) readPreference(t Target) bson.Raw {
	if c.op.Kind == Write || t.Kind == event.Standalone {
		return nil
	}
	primary := c.op.ReadPref.Mode() == readpref.PrimaryMode
	switch {
	case !primary:
		return c.op.ReadPref.Document()
	case t.TopologyKind == event.Single && t.Kind != event.Mongos && t.Kind != event.LoadBalancer:
		return primaryPreferred // so that a secondary answers whoever asked for this very member
	}
	return nil
}
