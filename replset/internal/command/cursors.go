package command

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

var cursorCommands = []Spec{
	{Name: "getMore", Flags: Awaits, Handler: runGetMore},
	{Name: "killCursors", Handler: runKillCursors, Fields: "cursors"},
}

const (
	firstBatch     = 101      // documents in a first batch whose size nobody asked for
	maxBatchBytes  = 16 << 20 // bytes of the array of one batch
	cursorLifetime = 10 * time.Minute
	maxCursors     = 10_000 // bounds what clients that forget them can make a member hold; the longest idle goes first
)

// source yields the documents of a cursor, one at a time. ok is false when there are
// none (now, if the cursor is tailable).
type source interface {
	next() (doc bson.Raw, ok bool, err error)
	close()
}

// cursor is the rest of a result that a client fetches batch by batch. It reads one
// snapshot, so that writes after its creation do not show; a tailable one takes a new
// snapshot for each batch.
type cursor struct {
	id        int64
	ns        string
	uuid      [16]byte // of the collection read, zero if none
	index     string   // name of the index read, empty if none
	lsid      bson.Raw
	src       source
	tail      *tailSource // src, if tailable
	await     bool
	noTimeout bool
	lastUse   time.Time
	busy      bool
	killed    bool // while busy: close when the batch is done
	pending   bson.Raw
	meter     *query.Meter // of what src does; nil: nothing is bounded
}

// cursorTable holds the open cursors of a member. Idle ones are closed whenever the
// table is used. It owns the coroutines behind the cursors: closeAll ends them.
type cursorTable struct {
	mu      sync.Mutex // guards looked, cursors and their busy, killed and lastUse
	looked  time.Time  // for those that are idle for too long
	cursors map[int64]*cursor
}

// add gives the cursor an id that cannot be guessed and keeps it.
func (t *cursorTable) add(c *cursor) {
	t.mu.Lock()
	expired := t.expire(time.Now())
	if len(t.cursors) >= maxCursors {
		expired = t.evict(expired)
	}
	if t.cursors == nil {
		t.cursors = map[int64]*cursor{}
	}
	for c.id == 0 || t.cursors[c.id] != nil {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		c.id = int64(binary.LittleEndian.Uint64(b[:]) >> 1)
	}
	c.lastUse = time.Now()
	t.cursors[c.id] = c
	t.mu.Unlock()
	closeSources(expired)
}

// expire takes out what has been idle for too long. The caller holds mu and closes
// the sources after releasing it.
func (t *cursorTable) expire(now time.Time) (expired []*cursor) {
	if now.Sub(t.looked) < time.Second {
		return nil // looking costs as much as there are cursors
	}
	t.looked = now
	for id, c := range t.cursors {
		if !c.busy && !c.noTimeout && now.Sub(c.lastUse) > cursorLifetime {
			delete(t.cursors, id)
			expired = append(expired, c)
		}
	}
	return expired
}

// evict takes out the cursor that has been idle longest. The caller holds mu.
func (t *cursorTable) evict(expired []*cursor) []*cursor {
	var oldest *cursor
	for _, c := range t.cursors {
		if !c.busy && (oldest == nil || c.lastUse.Before(oldest.lastUse)) {
			oldest = c
		}
	}
	if oldest == nil {
		return expired
	}
	delete(t.cursors, oldest.id)
	return append(expired, oldest)
}

func closeSources(cs []*cursor) {
	for _, c := range cs {
		c.src.close()
	}
}

// checkout reserves a cursor for one getMore.
func (t *cursorTable) checkout(id int64) (*cursor, error) {
	t.mu.Lock()
	expired := t.expire(time.Now())
	defer closeSources(expired)
	defer t.mu.Unlock()
	c := t.cursors[id]
	if c == nil {
		return nil, mongoerr.Server(mongoerr.CodeCursorNotFound, "cursor id %d not found", id)
	}
	if c.busy {
		return nil, mongoerr.Server(mongoerr.CodeCursorInUse, "cursor id %d is already in use", id)
	}
	c.busy = true
	return c, nil
}

// checkin gives a cursor back, or closes it when it is done.
func (t *cursorTable) checkin(c *cursor, done bool) {
	t.mu.Lock()
	c.busy, c.lastUse = false, time.Now()
	done = done || c.killed
	if done {
		delete(t.cursors, c.id)
	}
	t.mu.Unlock()
	if done {
		c.src.close()
	}
}

// kill closes a cursor; one that is in use is closed when its batch is done.
func (t *cursorTable) kill(id int64, ns string) bool {
	t.mu.Lock()
	c := t.cursors[id]
	if c == nil || ns != "" && c.ns != ns {
		t.mu.Unlock()
		return false
	}
	delete(t.cursors, id)
	busy := c.busy
	c.killed = true
	t.mu.Unlock()
	if !busy {
		c.src.close()
	}
	return true
}

// orphaned closes the cursor that a reply tells of which did not arrive, or not in whole.
func (t *cursorTable) orphaned(rep *reply) {
	v, _ := rep.doc.Get("cursor")
	cursor, _ := v.(bson.D)
	v, _ = cursor.Get("id")
	if id, _ := v.(int64); id != 0 {
		t.kill(id, "")
	}
}

// killSessions closes the cursors of sessions that end; nil means all sessions.
func (t *cursorTable) killSessions(ended []sessionKey) {
	for _, id := range t.ids(func(c *cursor) bool {
		key, err := sessionID(c.lsid, "lsid")
		return err == nil && (ended == nil || slices.Contains(ended, key))
	}) {
		t.kill(id, "")
	}
}

// closeAll closes every cursor: the member ends.
func (t *cursorTable) closeAll() {
	for _, id := range t.ids(func(*cursor) bool { return true }) {
		t.kill(id, "")
	}
}

// count is the number of open cursors.
func (t *cursorTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.cursors)
}

func (t *cursorTable) ids(want func(*cursor) bool) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []int64
	for id, c := range t.cursors {
		if want(c) {
			out = append(out, id)
		}
	}
	return out
}

// pullSource is a source over an iterator, run as a coroutine until closed.
type pullSource struct {
	pull func() (bson.Raw, error, bool)
	stop func()
}

func newPullSource(seq iter.Seq2[bson.Raw, error]) *pullSource {
	pull, stop := iter.Pull2(seq)
	return &pullSource{pull, stop}
}

func (p *pullSource) next() (bson.Raw, bool, error) {
	doc, err, ok := p.pull()
	return doc, ok && err == nil, err
}

func (p *pullSource) close() { p.stop() }

// listSource is a source over documents that are all there.
type listSource struct{ docs []bson.Raw }

func (l *listSource) next() (bson.Raw, bool, error) {
	if len(l.docs) == 0 {
		return nil, false, nil
	}
	doc := l.docs[0]
	l.docs = l.docs[1:]
	return doc, true, nil
}

func (l *listSource) close() {}

// fill takes up to limit documents, and no more than a message holds. done is true
// when the source has no more.
func (c *cursor) fill(ctx context.Context, limit int64) (batch []bson.Raw, done bool, err error) {
	if c.meter != nil {
		c.meter.Serve(alive(ctx))
	}
	size := 0
	for int64(len(batch)) < limit {
		if len(batch)%128 == 0 && ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		doc, ok := c.pending, c.pending != nil
		c.pending = nil
		if !ok {
			if doc, ok, err = c.src.next(); err != nil {
				return nil, false, err
			}
		}
		if !ok {
			return batch, true, nil
		}
		if size += len(doc) + len(indexKey(len(batch))) + 2; size > maxBatchBytes && len(batch) > 0 {
			c.pending = doc
			return batch, false, nil
		}
		batch = append(batch, doc)
	}
	return batch, false, nil
}

// open answers a command with the first batch of a cursor, which is kept if there may
// be more. exhausted, if not nil, tells that the batch has everything although the
// source was not asked again (a limit).
func (m *Member) open(r *Request, c *cursor, batchSize int64, single bool, exhausted func(n int) bool) (bson.D, error) {
	c.lsid = append(bson.Raw(nil), r.LSID...)
	batch, done, err := c.fill(r.Context(), batchSize)
	if err != nil {
		c.src.close()
		return nil, err
	}
	done = done && c.tail == nil || single || exhausted != nil && exhausted(len(batch))
	if done {
		c.src.close()
	} else {
		m.cursors.add(c)
	}
	return cursorReply("firstBatch", batch, c.id, c.ns), nil
}

func cursorReply(batchName string, batch []bson.Raw, id int64, ns string) bson.D {
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: batchName, Value: batch}, {Key: "id", Value: id}, {Key: "ns", Value: ns}}}}
}

// getMore is one such command.
type getMore struct {
	id        int64
	coll      string
	batchSize int64
}

// runGetMore answers with the next batch of a cursor.
func runGetMore(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	g, err := parseGetMore(r)
	if err != nil {
		return nil, err
	}
	c, err := m.cursors.checkout(g.id)
	if err != nil {
		return nil, err
	}
	done := true // also when the source panics
	defer func() { m.cursors.checkin(c, done) }()
	if f := m.failPoints.hit(getMorePoint); f.fail(getMorePoint) != nil {
		return nil, f.fail(getMorePoint)
	}
	var batch []bson.Raw
	if batch, done, err = m.nextBatch(ctx, r, c, g); err != nil {
		return nil, err
	}
	id := c.id
	if done {
		id = 0
	}
	return cursorReply("nextBatch", batch, id, c.ns), nil
}

func parseGetMore(r *Request) (*getMore, error) {
	g := &getMore{batchSize: -1}
	var ok bool
	if g.id, ok = r.Field(r.Name).Int64OK(); !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "Field 'getMore' must be of type long in: %s", value.PrintDoc(r.Body))
	}
	err := r.eachField(func(key string, v bson.RawValue) error {
		switch key {
		case "collection":
			if g.coll, ok = v.StringValueOK(); !ok {
				return mongoerr.Server(mongoerr.CodeTypeMismatch, "Field 'collection' must be of type string in: %s", value.PrintDoc(r.Body))
			}
		case "batchSize":
			if g.batchSize, ok = truncated(v); !ok {
				return mongoerr.Server(mongoerr.CodeTypeMismatch, "Field 'batchSize' must be a number in: %s", value.PrintDoc(r.Body))
			}
			if g.batchSize <= 0 {
				return mongoerr.Server(mongoerr.CodeBadValue, "Batch size for getMore must be positive, but received: %d", g.batchSize)
			}
		case "term", "lastKnownCommittedOpTime":
		default:
			return r.parseFailure("Unrecognized field '%s'.", key)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case r.Field("collection").IsZero():
		return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "Field 'collection' missing in: %s", value.PrintDoc(r.Body))
	case g.coll == "":
		return nil, mongoerr.Server(mongoerr.CodeInvalidNamespace, "Invalid namespace for getMore: %s.%s", r.DB, g.coll)
	}
	return g, nil
}

// nextBatch fills a batch from a cursor that is checked out. done: the cursor is over.
func (m *Member) nextBatch(ctx context.Context, r *Request, c *cursor, g *getMore) (batch []bson.Raw, done bool, err error) {
	if err := m.admits(c, r, g); err != nil {
		return nil, false, err
	}
	if r.Conn.pin == nil {
		if err := m.checkSource(c); err != nil {
			return nil, true, err
		}
	}
	limit := g.batchSize
	if limit < 0 {
		limit = 1 << 62
	}
	if c.tail != nil {
		return m.nextTail(ctx, r, c, limit)
	}
	batch, done, err = c.fill(ctx, limit)
	return batch, done || err != nil, err // a stream that an error has ended does not go on
}

// admits holds a getMore to the namespace and session of the cursor.
func (m *Member) admits(c *cursor, r *Request, g *getMore) error {
	ns := r.DB + "." + g.coll
	switch {
	case c.ns != ns && m.opt.Persona.wire < wire44 && m.Store.Latest().Collection(ns) == nil:
		return dropped() // these looked for the collection before the cursor
	case c.ns != ns:
		return mongoerr.Server(mongoerr.CodeUnauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	case r.MaxTimeMS > 0 && !c.await:
		return mongoerr.Server(mongoerr.CodeBadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	case len(c.lsid) == 0 && r.LSID != nil:
		return mongoerr.Server(50736, "Cannot run getMore on cursor %d, which was not created in a session, in session %s", c.id, value.PrintDoc(r.LSID))
	case len(c.lsid) > 0 && r.LSID == nil:
		return mongoerr.Server(50737, "Cannot run getMore on cursor %d, which was created in session %s, without an lsid", c.id, value.PrintDoc(c.lsid))
	case string(c.lsid) != string(r.LSID):
		return mongoerr.Server(50738, "Cannot run getMore on cursor %d, which was created in session %s, in session %s", c.id, value.PrintDoc(c.lsid), value.PrintDoc(r.LSID))
	}
	return nil
}

// checkSource ends a cursor whose collection or index has been dropped.
func (m *Member) checkSource(c *cursor) error {
	if c.uuid == [16]byte{} {
		return nil
	}
	coll := m.Store.Latest().Collection(c.ns)
	if coll == nil || coll.UUID() != c.uuid {
		return dropped()
	}
	if c.index != "" && coll.Index(c.index) == nil {
		return mongoerr.Server(mongoerr.CodeQueryPlanKilled, "index '%s' dropped", c.index)
	}
	return nil
}

func dropped() error {
	return mongoerr.Server(mongoerr.CodeOperationFailed, "collection dropped between getMore calls")
}

// runKillCursors closes cursors.
func runKillCursors(_ context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	arr, ok := r.Field("cursors").ArrayOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "Field 'cursors' must be of type array in: %s", value.PrintDoc(r.Body))
	}
	killed, missing := bson.A{}, bson.A{}
	for i, v := range arr.All() {
		id, ok := v.Int64OK()
		if !ok {
			return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "Field 'cursors' contains an element that is not of type long: %d: %s", i, value.Print(v))
		}
		if m.cursors.kill(id, ns) {
			killed = append(killed, id)
		} else {
			missing = append(missing, id)
		}
	}
	if len(killed)+len(missing) == 0 {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "Must specify at least one cursor id in: %s", value.PrintDoc(r.Body))
	}
	return bson.D{{Key: "cursorsKilled", Value: killed}, {Key: "cursorsNotFound", Value: missing},
		{Key: "cursorsAlive", Value: bson.A{}}, {Key: "cursorsUnknown", Value: bson.A{}}}, nil
}

// recordSource turns records into documents, through a projection.
func recordSource(seq iter.Seq2[store.Record, error], project func(bson.Raw) (bson.Raw, error), showID bool) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		for rec, err := range seq {
			doc := rec.Doc
			if err == nil && project != nil {
				doc, err = project(doc)
			}
			if err == nil && project != nil {
				err = checkFits(doc)
			}
			if err == nil && showID {
				doc = withRecordID(doc, rec.ID)
			}
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

// maxReplied is the largest document that leaves a server: 16 kB more than one that is stored.
const maxReplied = store.MaxDocumentSize + 16<<10

// checkFits refuses a computed document that is too large to be sent.
func checkFits(doc bson.Raw) error {
	if len(doc) <= maxReplied {
		return nil
	}
	first := "EOO"
	for key, v := range doc.All() {
		if first = key + ": " + value.Print(v); len(first) > 100 {
			first = first[:100] + "..."
		}
		break
	}
	return mongoerr.Server(mongoerr.CodeBSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB) First element: %s",
		len(doc), len(doc), maxReplied, first)
}

// fitting ends a stream at a document that is too large to be sent.
func fitting(docs iter.Seq2[bson.Raw, error]) iter.Seq2[bson.Raw, error] {
	return func(yield func(bson.Raw, error) bool) {
		for d, err := range docs {
			if err == nil {
				err = checkFits(d)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// withRecordID is what showRecordId makes of a document.
func withRecordID(doc bson.Raw, id store.RecordID) bson.Raw {
	dst, start := bson.BeginDocument(make([]byte, 0, len(doc)+19))
	dst = append(dst, doc[4:len(doc)-1]...)
	dst = bson.AppendInt64(dst, "$recordId", int64(id))
	return bson.EndDocument(dst, start)
}
