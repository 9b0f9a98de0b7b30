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

// short is how many entries a young set's oplog has at most: reading it is quicker than a copy.
const short = 100

// begin gives a member without data a start: nothing, when the source's oplog is short and tells everything from the
// beginning, a copy of all data otherwise.
func (f *following) begin(lc *linkConn) error {
	entries, err := f.oplog(lc, bson.D{}, 1, short+1)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return errors.New("the source has no oplog yet")
	}
	if note, _ := entries[0].Lookup("o", "msg").StringValueOK(); note == initiating && len(entries) <= short {
		f.born = store.EntryOpTime(entries[len(entries)-1])
		return nil
	}
	return f.initialSync()
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

// errStale ends an attempt to pull from a source whose oplog begins after this member's newest entry.
var errStale = errors.New("too stale: the source's oplog begins after this member's newest entry")

// diverged deals with a source whose oplog does not hold this member's newest entry: this member goes back to the
// newest entry that both have. When the source no longer reaches back that far, it is too stale and stays out of service
// until its data is wiped, or another source reaches further back.
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
	oldest, err := f.oplog(lc, bson.D{}, 1, 1)
	if err != nil {
		return err
	}
	if len(oldest) > 0 && last.TS.Before(store.EntryOpTime(oldest[0]).TS) {
		f.insist(repl.Stale{On: true})
		return errStale
	}
	return f.rollBack(lc)
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
