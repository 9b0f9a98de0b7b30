package topology

import (
	"io"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// These are transcripts of what happens to replica sets, in testdata. Each can be read as a story: "=" is the topology
// after an event, "?" what an operation would get, the indented lines are what the cluster must do. Run with -update to
// write them anew, and read the difference.

// word is what a member says of itself. The zero value of a field leaves it out, except where it is said.
type word struct {
	role     byte     // 'p' primary, 's' secondary, 'r' in no state to serve (RECOVERING, ROLLBACK, STARTUP2, REMOVED)
	set      string   // "" means rs0
	hosts    []string // nil means a:1, b:1, c:1
	passives []string
	election byte // the last byte of the electionId
	version  int32
	wire     int32 // 0 means 25
	me       string
	primary  string
	tags     []string
	counter  int64 // of the topologyVersion
}

func (w word) raw() bson.Raw {
	dst, doc := bson.BeginDocument(nil)
	dst = bson.AppendBoolean(dst, "isWritablePrimary", w.role == 'p')
	dst = bson.AppendBoolean(dst, "secondary", w.role == 's')
	dst = bson.AppendString(dst, "setName", either(w.set, "rs0"))
	hosts := w.hosts
	if hosts == nil {
		hosts = []string{"a:1", "b:1", "c:1"}
	}
	dst = appendNames(dst, "hosts", hosts)
	dst = appendNames(dst, "passives", w.passives)
	if w.election != 0 {
		dst = bson.AppendObjectID(dst, "electionId", bson.ObjectID{11: w.election})
	}
	if w.version != 0 {
		dst = bson.AppendInt32(dst, "setVersion", w.version)
	}
	for key, v := range map[string]string{"me": w.me, "primary": w.primary} {
		if v != "" {
			dst = bson.AppendString(dst, key, v)
		}
	}
	dst, tags := bson.BeginDocumentElement(dst, "tags")
	for i := 0; i+1 < len(w.tags); i += 2 {
		dst = bson.AppendString(dst, w.tags[i], w.tags[i+1])
	}
	dst = bson.EndDocument(dst, tags)
	if w.counter != 0 {
		dst, version := bson.BeginDocumentElement(dst, "topologyVersion")
		dst = bson.AppendObjectID(dst, "processId", bson.ObjectID{0: 1})
		dst = bson.AppendInt64(dst, "counter", w.counter)
		return w.end(bson.EndDocument(dst, version), doc)
	}
	return w.end(dst, doc)
}

func (w word) end(dst []byte, doc int) bson.Raw {
	dst = bson.AppendInt32(dst, "minWireVersion", 0)
	if w.wire == 0 {
		w.wire = 25
	}
	dst = bson.AppendInt32(dst, "maxWireVersion", w.wire)
	dst = bson.AppendDouble(dst, "ok", 1)
	return bson.EndDocument(dst, doc)
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func appendNames(dst []byte, key string, names []string) []byte {
	if names == nil {
		return dst
	}
	dst, arr := bson.BeginArrayElement(dst, key)
	for i, n := range names {
		dst = bson.AppendString(dst, string(rune('0'+i)), n)
	}
	return bson.EndDocument(dst, arr)
}

// says lets a member say something, streamed if it took no time.
func (s *story) says(what, addr string, w word, rtt time.Duration) {
	s.t.Helper()
	server, err := ParseHello(addr, w.raw(), rtt, epoch)
	if err != nil {
		s.t.Fatal(err)
	}
	s.apply(addr+" "+what, HelloReply{Server: server})
}

// set begins with a primary a:1 of the first election and two secondaries.
func set(t *testing.T, primary, secondary word) *story {
	s := begin(t, Config{Seeds: []string{"a:1", "b:1", "c:1"}, SetName: "rs0"})
	s.text.Reset() // that beginning is told elsewhere
	s.says("is primary", "a:1", primary, 2*time.Millisecond)
	s.says("is secondary", "b:1", secondary, 2*time.Millisecond)
	s.says("is secondary", "c:1", secondary, 2*time.Millisecond)
	return s
}

const streamed = -1

func lost(addr string) error {
	e := mongoerr.Wrap(mongoerr.StageRead, io.EOF, "the server closed the connection")
	e.Server = addr
	return e
}

func TestTranscriptOfAStepDown(t *testing.T) {
	s := set(t, word{role: 'p', election: 1, version: 1, counter: 5}, word{role: 's', version: 1, counter: 2})
	s.apply("a write meets a:1 while it steps down; its error is as old as what is known", stateError("a:1", mongoerr.CodeNotWritablePrimary, 5))
	s.apply("another write meets it later", stateError("a:1", mongoerr.CodeNotWritablePrimary, 6))
	s.explain(Want{Write: true})
	s.explain(Want{ReadPref: readpref.PrimaryPreferred()})
	s.says("streams that it is secondary", "a:1", word{role: 's', version: 1, counter: 6}, streamed)
	s.says("streams that it is primary", "b:1", word{role: 'p', election: 2, version: 1, counter: 3}, streamed)
	s.explain(Want{Write: true})
	s.check("step-down")
}

// stateError is a refusal that tells the topologyVersion.
func stateError(addr string, code int32, counter int64) AppError {
	e := mongoerr.Server(code, "not primary")
	dst, doc := bson.BeginDocument(nil)
	dst, version := bson.BeginDocumentElement(dst, "topologyVersion")
	dst = bson.AppendObjectID(dst, "processId", bson.ObjectID{0: 1})
	dst = bson.AppendInt64(dst, "counter", counter)
	dst = bson.EndDocument(dst, version)
	e.Response = bson.EndDocument(dst, doc)
	return AppError{Addr: addr, Err: e, MaxWire: 25}
}

func TestTranscriptOfAKillAndAnElection(t *testing.T) {
	s := set(t, word{role: 'p', election: 1, version: 1}, word{role: 's', version: 1})
	s.apply("the connection of a write to a:1 breaks", AppError{Addr: "a:1", Err: lost("a:1"), MaxWire: 25})
	s.apply("so do those of others, of the same generation", AppError{Addr: "a:1", Err: lost("a:1"), CurrentGeneration: 1, MaxWire: 25})
	s.explain(Want{Write: true})
	s.apply("the monitor finds nobody there", CheckFailed{Addr: "a:1", Err: refused("a:1")})
	s.says("streams that it is primary", "c:1", word{role: 'p', election: 2, version: 1}, streamed)
	s.explain(Want{Write: true})
	s.says("is back, as secondary", "a:1", word{role: 's', version: 1}, 2*time.Millisecond)
	s.check("kill")
}

// TestTranscriptOfAStalePrimary has two members that believe they are primary. From MongoDB 6.0 on, which has wire version
// 17, the election tells which is the newer one; before, the version of the configuration did, and then the election.
func TestTranscriptOfAStalePrimary(t *testing.T) {
	for name, version := range map[string]int32{"stale-primary": 17, "stale-primary-before-6.0": 16} {
		s := set(t, word{role: 'p', election: 2, version: 1, wire: version}, word{role: 's', version: 1, wire: version})
		s.says("is primary too, of an older election, but of a newer configuration", "b:1", word{role: 'p', election: 1, version: 2, wire: version}, streamed)
		s.explain(Want{Write: true})
		s.says("says again that it is primary", "a:1", word{role: 'p', election: 2, version: 1, wire: version}, streamed)
		s.explain(Want{Write: true})
		s.says("is primary, of the newest election and configuration", "c:1", word{role: 'p', election: 3, version: 2, wire: version}, streamed)
		s.says("says again that it is primary", "b:1", word{role: 'p', election: 1, version: 2, wire: version}, streamed)
		s.explain(Want{Write: true})
		s.check(name)
	}
}

func TestTranscriptOfAReconfiguration(t *testing.T) {
	s := set(t, word{role: 'p', election: 1, version: 1}, word{role: 's', version: 1})
	more := []string{"a:1", "b:1", "c:1", "d:1"}
	s.says("tells of a fourth member", "a:1", word{role: 'p', election: 1, version: 2, hosts: more}, streamed)
	s.says("does not serve while it copies the data", "d:1", word{role: 'r', version: 2, hosts: more}, 4*time.Millisecond)
	s.says("serves", "d:1", word{role: 's', version: 2, hosts: more, tags: []string{"use", "reports"}}, streamed)
	s.explain(Want{ReadPref: readpref.Secondary(readpref.Tags("use", "reports"))})
	less, passive := []string{"a:1", "b:1"}, []string{"d:1"}
	s.says("tells that c:1 is gone and that d:1 is never to be primary", "a:1", word{role: 'p', election: 1, version: 3, hosts: less, passives: passive}, streamed)
	s.says("still answers, but nobody asks", "c:1", word{role: 'r', version: 3, hosts: less, passives: passive}, streamed)
	s.says("does not know of it yet", "b:1", word{role: 's', version: 2, hosts: more}, streamed)
	s.explain(Want{Address: "c:1"})
	s.check("reconfiguration")
}

func TestTranscriptOfAWrongSetName(t *testing.T) {
	s := begin(t, Config{Seeds: []string{"a:1", "b:1"}, SetName: "rs0"})
	s.says("belongs to another set", "a:1", word{role: 'p', set: "rs1", election: 1, version: 1}, time.Millisecond)
	s.explain(Want{Write: true})
	s.says("belongs to the set, and knows itself by another name", "b:1", word{role: 's', me: "db2:1", hosts: []string{"db1:1", "db2:1"}, primary: "db1:1"}, time.Millisecond)
	s.explain(Want{Write: true})
	s.says("is primary", "db1:1", word{role: 'p', me: "db1:1", election: 1, version: 1, hosts: []string{"db1:1", "db2:1"}}, time.Millisecond)
	s.explain(Want{Write: true})
	s.check("wrong-set-name")
}

func TestTranscriptOfAHang(t *testing.T) {
	s := set(t, word{role: 'p', election: 1, version: 1}, word{role: 's', version: 1})
	slow := mongoerr.New(mongoerr.StageRead, "the server did not answer in time")
	slow.TimedOut = true
	s.apply("an operation on a:1 runs out of time, which may be its own fault", AppError{Addr: "a:1", Err: slow, MaxWire: 25})
	silent := mongoerr.New(mongoerr.StageRead, "no sign of life for 5 s (HeartbeatTimeout)")
	silent.TimedOut = true
	s.apply("a:1 gives no sign of life", CheckFailed{Addr: "a:1", Err: silent, Timeout: true})
	s.apply("the operations on it are cut off: of a generation that is over", AppError{Addr: "a:1", Err: lost("a:1"), CurrentGeneration: 1, MaxWire: 25})
	s.explain(Want{Write: true})
	s.says("streams that it is primary", "b:1", word{role: 'p', election: 2, version: 1}, streamed)
	s.says("wakes and believes in itself", "a:1", word{role: 'p', election: 1, version: 1}, 2*time.Millisecond)
	s.explain(Want{Write: true})
	s.says("has heard of the election", "a:1", word{role: 's', version: 1}, 2*time.Millisecond)
	s.check("hang")
}

func TestTranscriptOfARecovery(t *testing.T) {
	s := set(t, word{role: 'p', election: 1, version: 1, counter: 1}, word{role: 's', version: 1, counter: 1})
	s.apply("a read meets b:1 while it rolls back", stateError("b:1", mongoerr.CodeNotPrimaryOrSecondary, 2))
	s.says("is in ROLLBACK", "b:1", word{role: 'r', version: 1, counter: 2}, streamed)
	s.says("is in RECOVERING", "b:1", word{role: 'r', version: 1, counter: 3}, streamed)
	s.explain(Want{ReadPref: readpref.Secondary()})
	s.says("is too stale to catch up, and stays in RECOVERING", "c:1", word{role: 'r', version: 1, counter: 2}, streamed)
	s.explain(Want{ReadPref: readpref.Secondary()})
	s.explain(Want{ReadPref: readpref.SecondaryPreferred()})
	s.says("serves again", "b:1", word{role: 's', version: 1, counter: 4}, streamed)
	s.explain(Want{ReadPref: readpref.Secondary()})
	s.check("recovery")
}
