package store

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// maxHistory bounds the roots kept between the commit point and the newest. Beyond
// it every second one is dropped; a position in a gap is rebuilt from the oplog.
const maxHistory = 1024

// Clock gives the optime and wall time of the next oplog entry. It is called under
// the store's writer lock, once an entry, and must return ever later optimes; it
// must not call the store and must not block.
type Clock func() (OpTime, time.Time)

// Store is one member's data. Create it with New.
type Store struct {
	wmu sync.Mutex // held by the one writer for its transaction, and by whoever copies trees; taken before mu
	mu  sync.Mutex // guards history and committed; held for moments only
	// history has the roots in ascending order: the first is the newest at or before
	// committed, the last is latest (or about to be).
	history   []*Snapshot
	committed OpTime
	latest    atomic.Pointer[Snapshot]
	changed   atomic.Pointer[chan struct{}]
}

// New is an empty store whose oplog holds up to 100,000 entries or 64 MiB.
func New() *Store { return NewSized(defaultOplogMax, defaultOplogSize) }

// NewSized is New with the oplog's bounds: number of entries, and bytes.
func NewSized(entries, size int64) *Store {
	s := &Store{}
	s.install(emptySnapshot(entries, size))
	return s
}

// install makes root the only snapshot. The caller holds wmu or owns s alone.
func (s *Store) install(root *Snapshot) {
	s.mu.Lock()
	s.history, s.committed = []*Snapshot{root}, OpTime{}
	s.mu.Unlock()
	s.announce(root)
}

// announce publishes root and wakes who waits on Changed. The caller holds wmu.
func (s *Store) announce(root *Snapshot) {
	s.latest.Store(root)
	next := make(chan struct{})
	if old := s.changed.Swap(&next); old != nil {
		close(*old)
	}
}

// Latest is the newest snapshot.
func (s *Store) Latest() *Snapshot { return s.latest.Load() }

// Changed returns a channel that is closed by the next publication. Take it before
// looking at Latest, so that nothing is missed in between.
func (s *Store) Changed() <-chan struct{} { return *s.changed.Load() }

// At is the data as of op: the newest state whose last oplog entry is at or before
// op. A position older than everything kept gives the oldest state kept. It waits for
// a running transaction only when op lies inside another one and must be rebuilt.
func (s *Store) At(op OpTime) *Snapshot {
	if sn := s.Latest(); !op.Less(sn.optime) {
		return sn
	}
	base, next := s.around(op)
	if next == nil || !base.optime.Less(op) {
		return base
	}
	s.wmu.Lock()
	defer s.wmu.Unlock()
	return s.rebuilt(op)
}

// around is the newest root at or before op (or the oldest kept) and the one after it.
func (s *Store) around(op OpTime) (base, next *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.history) - 1
	for i > 0 && op.Less(s.history[i].optime) {
		i--
	}
	if i+1 < len(s.history) {
		next = s.history[i+1]
	}
	return s.history[i], next
}

// rebuilt makes the root of op from the one before it and the newer one's oplog, and
// keeps it, so that the second asker finds it. Where the oplog no longer leads there, it
// is the root before. The caller holds wmu.
func (s *Store) rebuilt(op OpTime) *Snapshot {
	base, next := s.around(op)
	if next == nil || !base.optime.Less(op) || !next.tells(base.optime) {
		return base
	}
	tx := s.begin(base, nil)
	for entry := range next.OplogAfter(base.optime) {
		c := readChange(entry)
		if op.Less(c.at) {
			break
		}
		if err := tx.apply(c); err != nil {
			return base // an entry that this store made or applied before cannot fail; the older root is still true
		}
	}
	root := tx.commit()
	if root.optime == base.optime {
		return base
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.history, next); i > 0 {
		s.history = slices.Insert(s.history, i, root)
	}
	return root
}

// SetCommitted tells the majority commit point: older roots than the newest one at or
// before it are dropped. A commit point never goes back; an older one is ignored. It
// does not wait for a running transaction.
func (s *Store) SetCommitted(op OpTime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.committed.Less(op) {
		return
	}
	s.committed = op
	keep := 0
	for keep+1 < len(s.history) && !op.Less(s.history[keep+1].optime) {
		keep++
	}
	// A copy lets the dropped roots go: a reslice would hold them in the backing array.
	if keep > 0 {
		s.history = slices.Clone(s.history[keep:])
	}
}

// Committed is the majority commit point last told by SetCommitted.
func (s *Store) Committed() OpTime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}

// CommittedSnapshot is the data that a majority has: At(Committed()).
func (s *Store) CommittedSnapshot() *Snapshot { return s.At(s.Committed()) }

// TruncateAfter reverts to the state right after op, as if nothing newer had ever
// been written (rollback). It fails, and changes nothing, when op is before the
// oldest root kept: then the member must copy another one's data with Adopt.
func (s *Store) TruncateAfter(op OpTime) error {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	root := s.rebuilt(op)
	if op.Less(root.optime) {
		return fmt.Errorf("cannot roll back to %v: the oldest state kept is %v", op, root.optime)
	}
	if _, known := s.Latest().Collection(OplogNS).Get(op.recordID()); known && root.optime.Less(op) {
		return fmt.Errorf("cannot roll back to %v: the oplog no longer leads there from %v", op, root.optime)
	}
	back := *root
	back.lineage = s.Latest().lineage + 1
	s.mu.Lock()
	if i := slices.Index(s.history, root); i >= 0 {
		s.history = append(slices.Clone(s.history[:i]), &back)
	}
	s.mu.Unlock()
	s.announce(&back)
	return nil
}

// Adopt replaces everything with a copy of another store's newest data, such as a
// Copy's: the end of an initial sync. What this store has in "local", save the oplog,
// stays. Sharing is safe: trees are copied under the source's writer lock and only
// their nodes are shared.
func (s *Store) Adopt(from *Store) {
	from.wmu.Lock()
	root := from.Latest().detach()
	from.wmu.Unlock()
	s.wmu.Lock()
	defer s.wmu.Unlock()
	root.lineage = s.Latest().lineage + 1
	root.keepLocal(s.Latest())
	s.install(root)
}

// begin starts a transaction. What no majority has yet stays in the oplog, however short
// that is to be, and so does the newest entry that one has: else a single transaction of
// more entries than the oplog holds would leave every other member behind for good. So does what leads from the oldest
// root to there: the state at the commit point may have to be rebuilt from it.
func (s *Store) begin(base *Snapshot, clock Clock) *Tx {
	tx := newTx(base, clock)
	s.mu.Lock()
	defer s.mu.Unlock()
	tx.held = base.optime.recordID() + 1 // what it logs itself
	if c, oldest := s.committed, s.history[0].optime; !c.IsZero() {
		tx.held = max(min(c.recordID(), oldest.recordID()), 1)
	}
	return tx
}

// Write runs one transaction: fn sees and changes a private copy, and either all
// its changes are published or, when it returns an error, none. Entries are logged
// with the clock's optimes; a nil clock writes without an oplog entry (what only
// this member has, such as other collections of "local"). It returns the
// optime of the newest entry after the write, also when fn logged nothing. fn must not
// call the store, wait, or keep tx.
func (s *Store) Write(clock Clock, fn func(tx *Tx) error) (OpTime, error) {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	tx := s.begin(s.Latest(), clock)
	if err := fn(tx); err != nil {
		return s.Latest().optime, err
	}
	if tx.changed {
		root := tx.commit()
		s.keep(root)
		s.announce(root)
	}
	return s.Latest().optime, nil
}

// keep appends root to the history. The caller holds wmu.
func (s *Store) keep(root *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.history) - 1
	if s.history[last].optime == root.optime {
		s.history[last] = root // an unlogged write has no position of its own
	} else {
		s.history = append(s.history, root)
	}
	if len(s.history) > maxHistory {
		s.thin()
	}
}

// thin drops every second root between the first and the last. The caller holds mu.
func (s *Store) thin() {
	kept := make([]*Snapshot, 0, maxHistory)
	last := len(s.history) - 1
	for i, sn := range s.history {
		if i%2 == 0 || i == last {
			kept = append(kept, sn)
		}
	}
	s.history = kept
}

// applyRun is how many applied entries make a root. A root for each would have every entry copy a node a level of all its
// trees, which costs ten times the change itself; a position within a run is rebuilt from the oplog.
const applyRun = 128

// ApplyOplog applies entries that another member wrote, in their order. Entries at or
// before this store's newest optime are skipped, so that a batch may be applied twice.
// This member can show or go back to any position among them;
// readers see them when all are applied, or all before the one that failed. It returns
// the newest optime.
func (s *Store) ApplyOplog(entries []bson.Raw) (OpTime, error) {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	root, fault := s.Latest(), error(nil)
	for run := range slices.Chunk(entries, applyRun) {
		var next *Snapshot
		if next, fault = s.applied(root, run); next != root {
			root = next
			s.keep(root)
		}
		if fault != nil {
			break
		}
	}
	if root != s.Latest() {
		s.announce(root)
	}
	return root.optime, fault
}

// applied is root with a run of entries; with those before the one that failed, if one does. The caller holds wmu.
func (s *Store) applied(root *Snapshot, run []bson.Raw) (*Snapshot, error) {
	tx := s.begin(root, nil)
	for i, entry := range run {
		c := readChange(bytes.Clone(entry))
		if !tx.root.optime.Less(c.at) {
			continue
		}
		if err := tx.apply(c); err != nil {
			before, _ := s.applied(root, run[:i]) // anew: what has failed may have done a part
			return before, fmt.Errorf("apply oplog entry %v: %w", c.at, err)
		}
	}
	if !tx.changed {
		return root, nil
	}
	return tx.commit(), nil
}
