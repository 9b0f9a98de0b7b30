package replset

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// watch hears everything that the client tells and judges it when the story is over.
type watch struct {
	w *world

	mu       sync.Mutex // guards all below
	views    []view
	chosen   map[int64][]choice // by operation
	reads    []sentRead
	stale    []string
	behind   map[string]time.Time // by member: when it was last so far behind that a client may take it for too stale
	sent     map[string]int64     // finds by member
	topTerm  bson.ObjectID        // of all primaries that the client knew
	topSet   int64
	sessions map[string]bool
	lost     int // commands without an answer: each may cost a session
	out, in  int // connections checked out and in
}

// view is what the client knew from a moment on.
type view struct {
	at       time.Time
	topology event.Topology
}

type choice struct {
	at     time.Time
	server string
}

type sentRead struct {
	operation    int64
	name, server string
	want         want
	doubtful     []string // the secondaries that the client may have taken for too stale
}

func newWatch(w *world) *watch {
	return &watch{w: w, chosen: map[int64][]choice{}, behind: map[string]time.Time{}, sent: map[string]int64{}, sessions: map[string]bool{}}
}

func (h *watch) monitor() *event.Monitor {
	return &event.Monitor{CommandStarted: h.started, CommandFailed: h.failed, TopologyChanged: h.changed, Selection: h.selected, Pool: h.pooled}
}

func (h *watch) started(ctx context.Context, e *event.CommandStartedEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if want, ok := ctx.Value(wantKey{}).(want); ok {
		var doubtful []string
		if want.stale > 0 {
			if lag := h.w.lag(e.Server); lag > want.stale+slack && h.w.serves(e.Server) {
				h.stale = append(h.stale, fmt.Sprintf("%s is %v behind, and a read bore %v", e.Server, lag, want.stale))
			}
			doubtful = h.doubt(want.stale)
		}
		h.reads = append(h.reads, sentRead{e.OperationID, e.Name, e.Server, want, doubtful})
	}
	if e.Name == "find" {
		h.sent[e.Server]++
	}
	if _, id, ok := e.Command.Lookup("lsid", "id").BinaryOK(); ok {
		h.sessions[string(id)] = true
	}
}

// doubt names the members that the client may take for staler than the bound: those that are about so far behind, or were
// until just now, since it hears of their progress with the next heartbeat.
func (h *watch) doubt(bound time.Duration) (names []string) {
	for _, m := range h.w.set.Members() {
		if h.w.lag(m.addr) > bound-slack {
			h.behind[m.addr] = time.Now()
		}
	}
	for name, at := range h.behind {
		if time.Since(at) <= slack {
			names = append(names, name)
		}
	}
	return names
}

func (h *watch) failed(_ context.Context, e *event.CommandFailedEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err, ok := e.Err.(*mongoerr.Error); !ok || err.Stage != mongoerr.StageServer {
		h.lost++
	}
}

func (h *watch) pooled(e *event.PoolEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Type {
	case event.ConnectionCheckOut:
		h.out++
	case event.ConnectionCheckIn:
		h.in++
	}
}

func (h *watch) selected(e *event.SelectionEvent) {
	if e.Type != event.SelectionSucceeded {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.chosen[e.OperationID] = append(h.chosen[e.OperationID], choice{time.Now(), e.Server})
}

// changed keeps what the client knows, and holds it to the order of elections: who has known a primary of one election
// never takes one of an earlier election for the primary again, and never two at once.
func (h *watch) changed(e *event.TopologyEvent) {
	if e.Type != event.TopologyUpdated {
		return
	}
	h.mu.Lock()
	h.views = append(h.views, view{time.Now(), e.After})
	var heads []event.Member
	for _, m := range e.After.Members {
		if m.Kind == event.RSPrimary {
			heads = append(heads, m)
		}
	}
	older := ""
	for _, m := range heads {
		order := bytes.Compare(m.ElectionID[:], h.topTerm[:])
		if order < 0 || order == 0 && m.SetVersion < h.topSet {
			older = fmt.Sprintf("%s, of election %s and version %d, after election %s and version %d", m.Address, m.ElectionID.Hex(), m.SetVersion, h.topTerm.Hex(), h.topSet)
		} else {
			h.topTerm, h.topSet = m.ElectionID, m.SetVersion
		}
	}
	h.mu.Unlock()
	h.w.note("    the client sees %v", short{e.After})
	if older != "" {
		h.w.accuse(newest, "it took %s", older)
	}
	if len(heads) > 1 {
		h.w.accuse(newest, "it took %s and %s for primaries at once", heads[0].Address, heads[1].Address)
	}
}

// short prints a topology as "m0 primary, m1 secondary, m2 ?".
type short struct{ event.Topology }

func (s short) String() string {
	var words []string
	for _, m := range s.Members {
		name, _, _ := strings.Cut(m.Address, ":")
		kind := strings.ToLower(strings.TrimPrefix(m.Kind.String(), "RS"))
		if !m.Kind.Known() {
			kind = "?"
		}
		words = append(words, name+" "+kind)
	}
	return strings.Join(words, ", ")
}

// audit judges what the client did, once it is closed.
func (h *watch) audit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.reads {
		if why := h.misled(r); why != "" {
			h.w.accuse(kinds, "%s for %v, answered by %s: %s", r.name, r.want, r.server, why)
		}
	}
	for _, how := range h.stale {
		h.w.accuse(kinds, "%s", how)
	}
	h.counted()
	if h.out != h.in {
		h.w.accuse(clean, "%d connections were checked out and %d came back", h.out, h.in)
	}
	if most := writers + readers + 1 + h.lost; len(h.sessions) > most {
		h.w.accuse(clean, "%d sessions for %d who work at a time, and %d commands without an answer", len(h.sessions), writers+readers+1, h.lost)
	}
}

// misled says what is wrong with who answered a read, or "". The member must have been chosen for this operation, at a
// moment when the client took it for one that fits; and the tags that the set's configuration gives it, which no story
// changes, must fit as well.
func (h *watch) misled(r sentRead) string {
	made := h.chosen[r.operation]
	why := "nobody chose it"
	for _, c := range made {
		if c.server != r.server {
			continue
		}
		why = ""
		if !h.fitted(c, r) {
			why = "when it was chosen it was of another kind"
			break
		}
	}
	if why == "" && r.want.mode != readpref.PrimaryMode && !h.w.tagged(r.server, r.want) {
		why = "the configuration gives it other tags"
	}
	return why
}

// fitted says whether the member fitted in a view that the client had at the moment of the choice.
func (h *watch) fitted(c choice, r sentRead) bool {
	for i, v := range h.views {
		gone := i+1 < len(h.views) && h.views[i+1].at.Before(c.at)
		if !v.at.After(c.at) && !gone && r.want.suits(v.topology, c.server, r.doubtful) {
			return true
		}
	}
	return false
}

// suits says whether a member may serve, by the rules of the specification "server selection", written a second time.
// Whether a doubtful member was too stale, and so gave way to another, only the client knew; that no stale one serves is
// judged apart.
func (q want) suits(t event.Topology, server string, doubtful []string) bool {
	primaries, secondaries := 0, []event.Member(nil)
	var it event.Member
	var both []event.Member
	for _, m := range t.Members {
		if m.Address == server {
			it = m
		} else if m.Kind == event.RSSecondary && slices.Contains(doubtful, m.Address) {
			continue
		}
		switch m.Kind {
		case event.RSPrimary:
			primaries++
			both = append(both, m)
		case event.RSSecondary:
			secondaries = append(secondaries, m)
			both = append(both, m)
		}
	}
	first, second := it.Kind == event.RSPrimary, it.Kind == event.RSSecondary
	switch q.mode {
	case readpref.PrimaryMode:
		return first
	case readpref.PrimaryPreferredMode:
		return first || second && primaries == 0 && q.best(it, secondaries)
	case readpref.SecondaryMode:
		return second && q.best(it, secondaries)
	case readpref.SecondaryPreferredMode:
		return second && q.best(it, secondaries) || first && !q.any(secondaries)
	}
	return (first || second) && q.best(it, both)
}

func (q want) any(among []event.Member) bool {
	for _, m := range among {
		if q.best(m, among) {
			return true
		}
	}
	return false
}

// best says whether a member has the first of the tag sets that any has.
func (q want) best(m event.Member, among []event.Member) bool {
	if len(q.tags) == 0 {
		return true
	}
	for _, set := range q.tags {
		some := false
		for _, other := range among {
			some = some || has(other.Tags, set)
		}
		if some {
			return has(m.Tags, set)
		}
	}
	return false
}

func has(tags map[string]string, set readpref.TagSet) bool {
	for _, t := range set {
		if v, ok := tags[t.Key]; !ok || v != t.Value {
			return false
		}
	}
	return true
}

// tagged says whether the member really has the tags that some set of the want asks for, or is the primary, of which
// the preferring modes ask for none.
func (w *world) tagged(server string, q want) bool {
	if len(q.tags) == 0 || q.mode == readpref.PrimaryPreferredMode || q.mode == readpref.SecondaryPreferredMode {
		return true
	}
	for _, set := range q.tags {
		if has(w.tags[server], set) {
			return true
		}
	}
	return false
}

// serves says whether the member is a secondary, by its own account: one that must copy all data has none, is behind by
// ages, and refuses the read of a client that has not heard of it yet.
func (w *world) serves(server string) bool {
	for _, m := range w.set.Members() {
		if m.addr == server {
			return m.State() == "SECONDARY"
		}
	}
	return false
}

// slack is for what the client cannot know yet, and for writes that are seconds apart.
const slack = 15 * time.Second

// lag is how far a member is behind the primary, by their oplogs.
func (w *world) lag(server string) time.Duration {
	p := w.set.Primary()
	if p == nil {
		return 0
	}
	lead := p.current()
	for _, m := range w.set.Members() {
		if r := m.current(); m.addr == server && r != nil && lead != nil {
			return time.Duration(int64(lead.Store.Latest().OpTime().TS.T)-int64(r.Store.Latest().OpTime().TS.T)) * time.Second
		}
	}
	return 0
}

// counted compares the finds that were sent to a member with those that it ran itself: no member works in another's name.
func (h *watch) counted() {
	for _, m := range h.w.set.Members() {
		if ran, sent := m.OpCounters(app)["find"], h.sent[m.addr]; ran > sent {
			h.w.accuse(kinds, "member %d ran %d finds, and was sent %d", m.index, ran, sent)
		}
	}
}
