package command

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

var helloCommands = []Spec{
	{Name: "hello", Flags: BeforeAuth | Awaits, Handler: hello},
	{Name: "isMaster", Aliases: []string{"ismaster"}, Flags: BeforeAuth | Awaits, Handler: hello},
}

// Old clients refuse a minimum above their own maximum, so it is 0.
const (
	minWireVersion = 0
	maxDocument    = 16777216
	maxBatch       = 100000
	maxMetadata    = 512
	sessionMinutes = 30
)

// hello answers hello and isMaster. With topologyVersion and maxAwaitTimeMS it waits until it has something new to say.
func hello(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	if r.refused != nil {
		return nil, r.refused
	}
	persona := m.opt.Persona
	if err := m.awaitTopology(ctx, r); err != nil {
		return nil, err
	}
	st := m.state.Load()
	r.told = st
	if m.opt.Router != nil {
		return m.helloOfRouter(r)
	}
	legacy := r.Name != "hello"
	d := make(bson.D, 0, 32)
	if ok, _ := r.Field("helloOk").BooleanOK(); ok {
		d = append(d, bson.E{Key: "helloOk", Value: true})
	}
	if persona.streams() {
		d = append(d, bson.E{Key: "topologyVersion", Value: st.topologyVersion()})
	}
	if !st.Role.Member() {
		d = append(d, m.noConfig(st, legacy)...)
	} else {
		d = append(d, m.setFields(st, legacy)...)
		d = append(d, bson.E{Key: "lastWrite", Value: m.lastWrite()})
	}
	d = append(d,
		bson.E{Key: "maxBsonObjectSize", Value: int32(maxDocument)},
		bson.E{Key: "maxMessageSizeBytes", Value: int32(wire.MaxMessage)},
		bson.E{Key: "maxWriteBatchSize", Value: int32(maxBatch)},
		bson.E{Key: "localTime", Value: time.Now()},
		bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(sessionMinutes)},
	)
	if persona.wire >= wire42 {
		d = append(d, bson.E{Key: "connectionId", Value: r.Conn.ID})
	}
	d = append(d,
		bson.E{Key: "minWireVersion", Value: int32(minWireVersion)},
		bson.E{Key: "maxWireVersion", Value: persona.wire},
		bson.E{Key: "readOnly", Value: false},
	)
	d = append(d, m.compressionFields(r)...)
	return append(d, m.authFields(r)...), nil
}

// noConfig is what a member says that waits to be added, or was removed. Since version 4.4 it names neither set nor
// members; before, a removed one did.
func (m *Member) noConfig(st *topology, legacy bool) (d bson.D) {
	if !m.opt.Persona.streams() && st.Role == repl.RoleRemoved {
		d = append(hostLists(st.Config), bson.E{Key: "setName", Value: st.Config.SetName})
	}
	return append(d, bson.D{{Key: writableField(legacy), Value: false}, {Key: "secondary", Value: false},
		{Key: "info", Value: "Does not have a valid replica set config"}, {Key: "isreplicaset", Value: true}}...)
}

func writableField(legacy bool) string {
	if legacy {
		return "ismaster"
	}
	return "isWritablePrimary"
}

func (t *topology) topologyVersion() bson.D {
	return bson.D{{Key: "processId", Value: t.processID}, {Key: "counter", Value: t.counter}}
}

// setFields are those that tell of the set, in the server's order.
func (m *Member) setFields(st *topology, legacy bool) bson.D {
	d := hostLists(st.Config)
	add := func(key string, v any) { d = append(d, bson.E{Key: key, Value: v}) }
	add("setName", st.Config.SetName)
	add("setVersion", st.Config.Version)
	add(writableField(legacy), st.Writable)
	add("secondary", st.Role == repl.RoleSecondary || st.Role == repl.RolePrimary && !st.Writable)
	if p := st.Config.Member(st.Primary); p != nil {
		add("primary", p.Host)
	}
	return append(d, m.ownFields(st)...)
}

// hostLists are the lists of the members that clients may know.
func hostLists(cfg *Config) bson.D {
	var hosts, passives, arbiters []string
	for _, mc := range cfg.Members {
		switch {
		case mc.Hidden:
		case mc.Arbiter:
			arbiters = append(arbiters, mc.Host)
		case mc.Priority == 0:
			passives = append(passives, mc.Host)
		default:
			hosts = append(hosts, mc.Host)
		}
	}
	d := bson.D{{Key: "hosts", Value: hosts}}
	add := func(key string, v any) { d = append(d, bson.E{Key: key, Value: v}) }
	if passives != nil {
		add("passives", passives)
	}
	if arbiters != nil {
		add("arbiters", arbiters)
	}
	return d
}

// ownFields are those that tell of this member's place in the configuration.
func (m *Member) ownFields(st *topology) (d bson.D) {
	me := st.self()
	add := func(key string, v any) { d = append(d, bson.E{Key: key, Value: v}) }
	if me.Arbiter {
		add("arbiterOnly", true)
	} else if me.Priority == 0 {
		add("passive", true)
	}
	if me.Hidden {
		add("hidden", true)
	}
	if me.Delay > 0 {
		name := "secondaryDelaySecs"
		if m.opt.Persona.wire < wire50 {
			name = "slaveDelay"
		}
		add(name, int64(me.Delay/time.Second))
	}
	tags := me.Tags
	if m.opt.Misbehave == StaleTag {
		tags = m.opt.StaleTags
	}
	if len(tags) > 0 {
		add("tags", tagsDocument(tags))
	}
	add("me", me.Host)
	if st.Role == repl.RolePrimary {
		add("electionId", electionID(st.Term))
	}
	return d
}

func tagsDocument(tags []Tag) bson.D {
	var d bson.D
	for _, t := range tags {
		d = append(d, bson.E{Key: t.Name, Value: t.Value})
	}
	return d
}

// electionID is 7fffffff and the term.
func electionID(term int64) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], 0x7fffffff)
	binary.BigEndian.PutUint64(id[4:], uint64(term))
	return id
}

// lastWrite tells how far this member is; an arbiter tells what it has heard of.
func (m *Member) lastWrite() bson.D {
	p := m.progress.Load()
	latest := m.Store.Latest()
	op := latest.OpTime()
	if m.state.Load().arbiter() {
		op = store.OpTime(p.Commit)
	}
	if op.IsZero() {
		return bson.D{{Key: "opTime", Value: opTimeDocument(store.OpTime{Term: -1})}, {Key: "lastWriteDate", Value: bson.DateTime(0)}}
	}
	d := bson.D{{Key: "opTime", Value: opTimeDocument(op)}, {Key: "lastWriteDate", Value: wallTime(latest, op)}}
	if commit := store.OpTime(p.Commit); !commit.IsZero() {
		d = append(d, bson.E{Key: "majorityOpTime", Value: opTimeDocument(commit)},
			bson.E{Key: "majorityWriteDate", Value: wallTime(latest, commit)})
	}
	return d
}

func opTimeDocument(op store.OpTime) bson.D {
	return bson.D{{Key: "ts", Value: op.TS}, {Key: "t", Value: op.Term}}
}

// wallTime is when the entry at op was written, by its primary's clock; without the entry, the second of its timestamp.
func wallTime(sn *store.Snapshot, op store.OpTime) bson.DateTime {
	if entry, ok := sn.Collection(store.OplogNS).Get(recordOf(op.TS)); ok {
		if ms, ok := entry.Lookup("wall").DateTimeOK(); ok {
			return bson.DateTime(ms)
		}
	}
	return bson.DateTime(int64(op.TS.T) * 1000)
}

func recordOf(ts bson.Timestamp) store.RecordID {
	return store.RecordID(ts.T)<<32 | store.RecordID(ts.I)
}

// awaitTopology waits, when the client says which topologyVersion it knows, until there is another one.
func (m *Member) awaitTopology(ctx context.Context, r *Request) error {
	if !m.opt.Persona.streams() {
		return nil // the fields mean nothing to it
	}
	known, wait := r.Field("topologyVersion"), r.Field("maxAwaitTimeMS")
	if known.IsZero() && wait.IsZero() {
		return nil
	}
	if known.IsZero() || wait.IsZero() {
		return mongoerr.Server(31368, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS', and the reverse")
	}
	doc, _ := known.DocumentOK()
	process, ok := doc.Lookup("processId").ObjectIDOK()
	counter, ok2 := doc.Lookup("counter").AsInt64OK()
	ms, ok3 := wait.AsInt64OK()
	switch {
	case !ok || !ok2 || counter < 0:
		return mongoerr.Server(31372, "topologyVersion must be {processId: ObjectId, counter: non-negative long}")
	case !ok3 || ms < 0:
		return mongoerr.Server(31373, "maxAwaitTimeMS must be a non-negative integer")
	}
	if st := m.state.Load(); st.processID == process && counter > st.counter {
		return mongoerr.Server(31382, "Received a topology version with counter %d which is greater than the server topology version counter %d", counter, st.counter)
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	for {
		st := m.state.Load()
		if st.processID != process || st.counter != counter {
			return nil
		}
		select {
		case <-st.changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// streams reports whether the request is a hello that may be answered again and again.
func (r *Request) streams() bool {
	return r.Conn.m.opt.Persona.streams() && r.Spec != nil && (r.Spec.Name == "hello" || r.Spec.Name == "isMaster") && !r.Field("topologyVersion").IsZero()
}

// nextHello turns a streamed hello into the one that follows the reply just sent.
func (r *Request) nextHello() {
	dst, start := bson.BeginDocument(nil)
	for key, v := range r.Body.All() {
		if key != "topologyVersion" {
			dst = bson.AppendValue(dst, key, v)
			continue
		}
		dst = r.told.appendTopologyVersion(dst)
	}
	r.Body = bson.EndDocument(dst, start)
}

// noteMetadata takes the client's description of itself from a connection's first hello. What is wrong with it is kept
// in the request, for hello to say.
func (c *Conn) noteMetadata(r *Request) {
	if r.Name != "hello" && r.Name != "isMaster" && r.Name != "ismaster" {
		return
	}
	if token, ok := r.Field("sextantMember").DocumentOK(); ok {
		c.recognise(token)
	}
	c.hailed.Store(!c.internal)
	v := r.Field("client")
	if v.IsZero() {
		return
	}
	if c.greeted {
		r.refused = mongoerr.Server(186, "The client metadata document may only be sent in the first hello")
		return
	}
	c.greeted = true
	doc, ok := v.DocumentOK()
	switch {
	case !ok:
		r.refused = mongoerr.Server(mongoerr.CodeTypeMismatch, "The client metadata document must be a document")
	case len(doc) > maxMetadata:
		r.refused = mongoerr.Server(184, "The client metadata document must be less then or equal to %d bytes", maxMetadata)
	case !c.internal:
		r.refused = checkMetadata(doc)
	}
	if r.refused != nil {
		return
	}
	c.App, _ = doc.Lookup("application", "name").StringValueOK()
	c.desk.seat("", c.App) // nobody has logged in before the metadata came
}

// checkMetadata wants what every driver must say of itself.
func checkMetadata(doc bson.Raw) *mongoerr.Error {
	for _, path := range [][]string{{"driver", "name"}, {"driver", "version"}, {"os", "type"}} {
		if v := doc.Lookup(path...); v.IsZero() {
			return mongoerr.Server(mongoerr.CodeClientMetadataMissingField,
				"Missing required field '%s' in the client metadata document", strings.Join(path, "."))
		}
	}
	if name := doc.Lookup("application", "name"); !name.IsZero() {
		if s, ok := name.StringValueOK(); !ok || len(s) > 128 {
			return mongoerr.Server(mongoerr.CodeTypeMismatch, "The 'application.name' field must be a string of at most 128 bytes in the client metadata document")
		}
	}
	return nil
}

// recognise makes the connection another member's if it knows the set's secret.
func (c *Conn) recognise(token bson.Raw) {
	secret, _ := token.Lookup("secret").StringValueOK()
	from, ok := token.Lookup("from").AsInt64OK()
	if secret == c.m.opt.Secret && secret != "" && ok {
		c.internal, c.peer = true, int(from)
		if copies, _ := token.Lookup("copies").BooleanOK(); copies {
			c.pin = c.m.Store.Latest()
		}
	}
}
