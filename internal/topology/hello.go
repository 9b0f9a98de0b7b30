package topology

import (
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// ParseHello reads a reply to hello or legacy hello. A negative rtt means that the reply was not timed: the server held
// it back until something changed. A reply without ok: 1, or with malformed bytes, is an error. The reply is kept, not
// copied.
func ParseHello(addr string, reply bson.Raw, rtt time.Duration, now time.Time) (*Server, error) {
	if err := reply.Validate(); err != nil {
		e := mongoerr.Wrap(mongoerr.StageHandshake, err, "the reply to hello is malformed")
		e.Op, e.Server = "hello", addr
		return nil, e
	}
	if e := mongoerr.FromReply(reply); e != nil {
		e.Op, e.Server = "hello", addr
		return nil, e
	}
	s := unknown(addr, now)
	s.Hello, s.LastUpdate = reply, now
	var h helloFlags
	for key, v := range reply.All() {
		if !s.readName(key, v) && !s.readNumber(key, v) {
			h.read(key, v)
		}
	}
	if n := len(s.Hosts) + len(s.Passives) + len(s.Arbiters); n > mostMembers {
		e := mongoerr.New(mongoerr.StageHandshake, "the reply to hello names %d members, more than the %d that are believed (a set has at most 50)", n, mostMembers)
		e.Op, e.Server = "hello", addr
		return nil, e
	}
	s.HelloOK, s.Hidden = h.helloOK, h.hidden
	s.Kind = h.kind(s.SetName != "")
	if rtt >= 0 {
		s.samples = s.samples.with(rtt)
		s.RTT, s.MinRTT = s.samples.average, s.samples.least()
	}
	return s, nil
}

// mostMembers bounds how many monitors and pools the word of one server can make a client have.
const mostMembers = 500

// readName takes the fields that name things.
func (s *Server) readName(key string, v bson.RawValue) bool {
	switch key {
	case "me":
		s.Me = addressOf(v)
	case "primary":
		s.Primary = addressOf(v)
	case "setName":
		s.SetName, _ = v.StringValueOK()
	case "hosts":
		s.Hosts = addresses(v)
	case "passives":
		s.Passives = addresses(v)
	case "arbiters":
		s.Arbiters = addresses(v)
	case "tags":
		s.Tags = tagsOf(v)
	default:
		return false
	}
	return true
}

// readNumber takes the fields that count, compare or date.
func (s *Server) readNumber(key string, v bson.RawValue) bool {
	switch key {
	case "setVersion":
		s.SetVersion.N, s.SetVersion.Set = v.AsInt64OK()
	case "electionId":
		s.ElectionID, _ = v.ObjectIDOK()
	case "minWireVersion":
		s.MinWire = wireVersion(v)
	case "maxWireVersion":
		s.MaxWire = wireVersion(v)
	case "logicalSessionTimeoutMinutes":
		if n, ok := v.AsInt64OK(); ok && n >= 0 {
			s.SessionTimeoutMinutes = n
		}
	case "lastWrite":
		s.LastWrite = lastWriteOf(v)
	case "topologyVersion":
		s.TopologyVersion = topologyVersionOf(v)
	default:
		return false
	}
	return true
}

// helloFlags are the fields that decide on the kind.
type helloFlags struct {
	writable, ismaster    *bool
	secondary, arbiter    bool
	hidden, ghost, mongos bool
	helloOK               bool
}

func (h *helloFlags) read(key string, v bson.RawValue) {
	b, isBool := v.BooleanOK()
	switch key {
	case "isWritablePrimary":
		h.writable = &b
	case "ismaster":
		h.ismaster = &b
	case "secondary":
		h.secondary = b
	case "arbiterOnly":
		h.arbiter = b
	case "hidden":
		h.hidden = b
	case "isreplicaset":
		h.ghost = b && isBool
	case "helloOk":
		h.helloOK = b
	case "msg":
		s, _ := v.StringValueOK()
		h.mongos = s == "isdbgrid"
	}
}

// kind follows the specification's table of server types. isWritablePrimary comes before ismaster.
func (h *helloFlags) kind(inSet bool) event.Kind {
	primary := h.ismaster != nil && *h.ismaster
	if h.writable != nil {
		primary = *h.writable
	}
	switch {
	case h.ghost:
		return event.RSGhost
	case h.mongos:
		return event.Mongos
	case !inSet:
		return event.Standalone
	case h.hidden:
		return event.RSOther
	case primary:
		return event.RSPrimary
	case h.arbiter:
		return event.RSArbiter
	case h.secondary:
		return event.RSSecondary
	}
	return event.RSOther
}

func addressOf(v bson.RawValue) string {
	s, _ := v.StringValueOK()
	return NormalAddress(s)
}

func addresses(v bson.RawValue) []string {
	arr, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	var out []string
	for _, item := range arr.All() {
		if a := addressOf(item); a != "" && mongoerr.OneLine(a) == a { // nobody can be called so, and it would be printed
			out = append(out, a)
		}
	}
	return out
}

func tagsOf(v bson.RawValue) map[string]string {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil
	}
	tags := make(map[string]string)
	for key, item := range doc.All() {
		if s, ok := item.StringValueOK(); ok {
			tags[key] = s
		}
	}
	return tags
}

func wireVersion(v bson.RawValue) int32 {
	n, ok := v.AsInt64OK()
	if !ok || n < 0 {
		return 0
	}
	return int32(min(n, 1<<30))
}

func lastWriteOf(v bson.RawValue) time.Time {
	doc, ok := v.DocumentOK()
	if !ok {
		return time.Time{}
	}
	date := doc.Lookup("lastWriteDate")
	ms, ok := date.DateTimeOK()
	if !ok {
		if ms, ok = date.AsInt64OK(); !ok {
			return time.Time{}
		}
	}
	return time.UnixMilli(ms)
}

func topologyVersionOf(v bson.RawValue) TopologyVersion {
	doc, ok := v.DocumentOK()
	if !ok {
		return TopologyVersion{}
	}
	id, okID := doc.Lookup("processId").ObjectIDOK()
	n, okN := doc.Lookup("counter").AsInt64OK()
	return TopologyVersion{ProcessID: id, Counter: n, Set: okID && okN}
}
