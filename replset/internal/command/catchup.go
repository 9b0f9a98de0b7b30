package command

import (
	"errors"
	"fmt"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// initiating is the text of the first entry of a set's first oplog: from there on the oplog tells everything.
const initiating = "initiating set"

// begin gives a member without data a start: nothing, when the source's oplog tells everything from the beginning, a
// copy of all data otherwise.
func (f *following) begin(lc *linkConn) error {
	entries, err := f.oplog(lc, bson.D{}, 1, 1)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return errors.New("the source has no oplog yet")
	}
	if note, _ := entries[0].Lookup("o", "msg").StringValueOK(); note == initiating {
		return nil
	}
	return f.copyAll()
}

// oplog fetches at most n entries, the oldest first when natural is 1, the newest first when it is -1.
func (f *following) oplog(lc *linkConn, filter bson.D, natural, n int32) ([]bson.Raw, error) {
	reply, err := f.demand(lc, "local", bson.D{
		{Key: "find", Value: "oplog.rs"},
		{Key: "filter", Value: filter},
		{Key: "sort", Value: bson.D{{Key: "$natural", Value: natural}}},
		{Key: "limit", Value: n},
		{Key: "singleBatch", Value: true},
	})
	if err != nil {
		return nil, err
	}
	entries, _, err := f.batch(reply, "firstBatch")
	return entries, err
}

// diverged deals with a source whose oplog does not hold this member's newest entry: this member goes back to the
// newest entry that both have, or, when the source no longer reaches back that far, starts with a copy.
func (f *following) diverged(lc *linkConn, last store.OpTime) error {
	if f.m.state.Load().Role == repl.RolePrimary {
		return errors.New("what the source has beyond this winner's oplog does not continue it")
	}
	newest, err := f.oplog(lc, bson.D{}, -1, 1)
	if err != nil {
		return err
	}
	if len(newest) == 0 {
		return errors.New("the source has no oplog yet")
	}
	if !last.Less(store.EntryOpTime(newest[0])) && last != store.EntryOpTime(newest[0]) {
		return fmt.Errorf("the source is behind this member: it has %v, this member %v", store.EntryOpTime(newest[0]), last)
	}
	common, found, err := f.common(lc)
	if err != nil {
		return err
	}
	if !found {
		return f.copyAll()
	}
	return f.rollBack(common)
}

// common is the newest entry that both oplogs hold.
func (f *following) common(lc *linkConn) (store.OpTime, bool, error) {
	mine := f.m.Store.Latest().Collection(store.OplogNS)
	top := f.m.Store.Latest().OpTime().TS
	for {
		theirs, err := f.oplog(lc, bson.D{{Key: "ts", Value: bson.D{{Key: "$lte", Value: top}}}}, -1, 100)
		if err != nil || len(theirs) == 0 {
			return store.OpTime{}, false, err
		}
		for _, entry := range theirs {
			op := store.EntryOpTime(entry)
			if own, ok := mine.Get(recordOf(op.TS)); ok && store.EntryOpTime(own) == op {
				return op, true, nil
			}
			top = op.TS
		}
		if len(theirs) == 1 { // the oldest one again
			return store.OpTime{}, false, nil
		}
	}
}

// rollBack reverts this member's data to an older entry. What a majority had is never taken back.
func (f *following) rollBack(to store.OpTime) error {
	m := f.m
	if committed := m.Store.Committed(); to.Less(committed) {
		m.log.Error("refusing to roll back what is committed", "member", m.self, "to", to.String(), "committed", committed.String())
		return fmt.Errorf("rolling back to %v would undo the committed %v", to, committed)
	}
	if !m.told(f.ctx, repl.RollingBack{}) || m.state.Load().Role == repl.RolePrimary {
		return errors.New("no time to roll back")
	}
	m.log.Info("rolling back", "member", m.self, "from", m.Store.Latest().OpTime().String(), "to", to.String())
	if err := m.Store.TruncateAfter(to); err != nil {
		m.log.Warn("rollback needs a copy", "member", m.self, "error", err)
		return f.copyAll()
	}
	f.insist(m.rolled())
	return errors.New("rolled back: pulling begins anew")
}

// copyAll replaces this member's data with a copy of the source's. The copy does not travel over the wire: the members
// live in one process and their data is copy on write.
func (f *following) copyAll() error {
	var source *Disk
	if f.m.opt.DiskOf != nil {
		source = f.m.opt.DiskOf(f.link.to)
	}
	if source == nil {
		return errors.New("the source's oplog does not reach back to this member's data, and its data is out of reach")
	}
	f.m.log.Info("copying all data", "member", f.m.self, "from", f.host)
	if !f.m.told(f.ctx, repl.Copying{}) || f.m.state.Load().Role == repl.RolePrimary {
		return errors.New("no time to copy")
	}
	f.m.Store.Adopt(source.store)
	f.m.Store.SetCommitted(store.OpTime(f.m.progress.Load().Commit)) // what was known of the commit point stays true
	op := f.m.Store.Latest().OpTime()
	f.m.clock.advance(op.TS)
	f.insist(f.m.rolled())
	return errors.New("copied all data: pulling begins anew")
}
