package store

import (
	"bytes"
	"fmt"
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
	mu      sync.Mutex  // guards history, committed and the right to publish
	history []*Snapshot // ascending optimes; the first is the newest at or before committed, the last is latest
	// Invariant: latest is history's last.
	latest    atomic.Pointer[Snapshot]
	changed   atomic.Pointer[chan struct{}]
	committed OpTime
}

// New is an empty store whose oplog holds up to 100,000 entries or 64 MiB.
func New() *Store { return NewSized(defaultOplogMax, defaultOplogSize) }

// NewSized is New with the oplog's bounds: number of entries, and bytes.
func NewSized(entries, size int64) *Store {
	s := &Store{}
	s.install(emptySnapshot(entries, size))
	return s
}

// install makes root the only snapshot. The caller holds mu or owns s alone.
func (s *Store) install(root *Snapshot) {
	s.history = []*Snapshot{root}
	s.announce(root)
}

// announce publishes root and wakes who waits on Changed.
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
// op. A position older than everything kept gives the oldest state kept.
func (s *Store) At(op OpTime) *Snapshot {
	if sn := s.Latest(); !op.Less(sn.optime) {
		return sn
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sn, _ := s.at(op)
	return sn
}

// at finds or rebuilds the snapshot of op. It reports false when op is before the
// oldest root kept. The caller holds mu.
func (s *Store) at(op OpTime) (*Snapshot, bool) {
	i := len(s.history) - 1
	for i > 0 && op.Less(s.history[i].optime) {
		i--
	}
	base := s.history[i]
	if op.Less(base.optime) {
		return base, false
	}
	if i == len(s.history)-1 || base.optime == op {
		return base, true
	}
	return s.replay(i, op), true
}

// replay rebuilds the root of op from history[i] and the newer root's oplog, and
// keeps it, so that the second asker finds it. The caller holds mu.
func (s *Store) replay(i int, op OpTime) *Snapshot {
	base := s.history[i]
	next := s.history[i+1]
	tx := newTx(base, nil)
	for entry := range next.OplogAfter(base.optime) {
		if op.Less(EntryOpTime(entry)) {
			break
		}
		if err := tx.apply(entry); err != nil {
			return base // an entry that this store applied before cannot fail; the older root is still true
		}
	}
	root := tx.commit()
	if root.optime == base.optime {
		return base
	}
	s.history = append(s.history[:i+1], append([]*Snapshot{root}, s.history[i+1:]...)...)
	return root
}

// SetCommitted tells the majority commit point: older roots than the newest one at
// or before it are dropped. A commit point never goes back; an older one is ignored.
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
		s.history = append([]*Snapshot(nil), s.history[keep:]...)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	root, ok := s.at(op)
	if !ok {
		return fmt.Errorf("cannot roll back to %v: the oldest state kept is %v", op, root.optime)
	}
	for i, sn := range s.history {
		if sn == root {
			s.history = append([]*Snapshot(nil), s.history[:i+1]...)
		}
	}
	s.announce(root)
	return nil
}

// Adopt replaces everything with a copy of another store's newest data: the initial
// sync of a member whose sync source lives in the same process. Sharing is safe:
// trees are copied under the source's lock and only their nodes are shared.
func (s *Store) Adopt(from *Store) {
	from.mu.Lock()
	root := from.Latest().detach()
	from.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed = OpTime{}
	s.install(root)
}

// Write runs one transaction: fn sees and changes a private copy, and either all
// its changes are published or, when it returns an error, none. Entries are logged
// with the clock's optimes; a nil clock writes without an oplog entry (what only
// this member has, such as other collections of "local"). It returns the
// optime of the newest entry after the write, also when fn logged nothing. fn must not
// call the store, wait, or keep tx.
func (s *Store) Write(clock Clock, fn func(tx *Tx) error) (OpTime, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := newTx(s.Latest(), clock)
	if err := fn(tx); err != nil {
		return s.Latest().optime, err
	}
	if tx.changed {
		s.publish(tx.commit())
	}
	return s.Latest().optime, nil
}

// publish appends root to the history and announces it. The caller holds mu.
func (s *Store) publish(root *Snapshot) {
	last := len(s.history) - 1
	if s.history[last].optime == root.optime {
		s.history[last] = root // an unlogged write has no position of its own
	} else {
		s.history = append(s.history, root)
	}
	if len(s.history) > maxHistory {
		s.thin()
	}
	s.announce(root)
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

// ApplyOplog applies entries that another member wrote, in their order, in one
// transaction. Entries at or before this store's newest optime are skipped, so that
// a batch may be applied twice. It returns the newest optime.
func (s *Store) ApplyOplog(entries []bson.Raw) (OpTime, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := newTx(s.Latest(), nil)
	for _, entry := range entries {
		if !tx.root.optime.Less(EntryOpTime(entry)) {
			continue
		}
		if err := tx.apply(bytes.Clone(entry)); err != nil {
			return s.Latest().optime, fmt.Errorf("apply oplog entry %v: %w", EntryOpTime(entry), err)
		}
	}
	if tx.changed {
		s.publish(tx.commit())
	}
	return s.Latest().optime, nil
}
