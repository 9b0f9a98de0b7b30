package command

import (
	"slices"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// emptySource is a result that notes that it was closed.
type emptySource struct{ closed bool }

func (*emptySource) next() (bson.Raw, bool, error) { return nil, false, nil }
func (s *emptySource) close()                      { s.closed = true }

func TestForgottenCursorsMakeRoomForNewOnes(t *testing.T) {
	var table cursorTable
	var all []*cursor
	for range maxCursors + 5 {
		c := &cursor{src: &emptySource{}}
		if len(all) == 0 {
			c.busy = true // it is never taken away
		}
		table.add(c)
		all = append(all, c)
	}
	if n := table.count(); n != maxCursors {
		t.Errorf("%d cursors are open", n)
	}
	for i, c := range all {
		if gone, want := c.src.(*emptySource).closed, i >= 1 && i <= 5; gone != want {
			t.Errorf("cursor %d was closed: %v", i, gone)
		}
	}
	last := all[len(all)-1]
	reply := reply{doc: cursorReply("firstBatch", nil, last.id, "t.c")}
	table.orphaned(&reply)
	if !last.src.(*emptySource).closed || slices.Contains(table.ids(func(*cursor) bool { return true }), last.id) {
		t.Error("the cursor of an answer that did not arrive is open")
	}
	all[0].busy = false
	table.closeAll()
}
