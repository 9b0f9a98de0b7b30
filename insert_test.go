package sextant

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/mongoerr"
)

// blobs are documents of the given sizes.
func blobs(sizes ...int) []bson.Raw {
	var out []bson.Raw
	for _, n := range sizes {
		b, start := bson.BeginDocument(nil)
		b = bson.AppendBinary(b, "b", 0, make([]byte, n-5-3-5))
		out = append(out, bson.EndDocument(b, start))
	}
	return out
}

func TestMessageTakesAsManyDocumentsAsTheServersLimitsAllow(t *testing.T) {
	const head = 100 // bytes of the message before the documents
	limits := operation.Target{MaxBSON: 1000, MaxMessage: 2200, MaxBatch: 3}
	for _, c := range []struct {
		name  string
		sizes []int
		first int
		want  int
	}{
		{"all", []int{100, 100}, 0, 2},
		{"three by number", []int{50, 50, 50, 50}, 0, 3},
		{"two by bytes", []int{1000, 1000, 100}, 0, 2},
		{"from the middle", []int{1000, 1000, 100}, 1, 2},
		{"the greatest", []int{1000}, 0, 1},
	} {
		in := &lot{command: "insert", list: blobs(c.sizes...)}
		b, took, err := new(writes).fill(bytes.Repeat([]byte{7}, head), in, c.first, limits, false)
		if err != nil || took != c.want {
			t.Errorf("%s: %d, %v", c.name, took, err)
		}
		if want := bytes.Join(toBytes(in.list[c.first:c.first+took]), nil); !bytes.HasSuffix(b, want) {
			t.Errorf("%s: other bytes", c.name)
		}
	}
	w := &writes{lots: []lot{{command: "insert", list: blobs(50, 1001)}}, noun: "document"}
	if err := w.measure(limits); err == nil || !bytes.Contains([]byte(err.Error()), []byte("document 1 has 1001 bytes")) {
		t.Errorf("too large: %v", err)
	}
}

func toBytes(docs []bson.Raw) (out [][]byte) {
	for _, d := range docs {
		out = append(out, d)
	}
	return out
}

func TestErrorsOfSeveralCommandsBecomeOneWithTheCallersIndexes(t *testing.T) {
	var all batchError
	docs := &lot{list: make([]bson.Raw, 40)}
	unmet := &mongoerr.WriteConcernError{Code: 64}
	if !all.add(&mongoerr.Error{WriteErrors: []mongoerr.WriteError{{Index: 1, Code: 11000}}, Labels: []string{"a"}}, docs, 30, 40) {
		t.Error("an answer about a document ended the call")
	}
	if !all.add(&mongoerr.Error{WriteConcernError: unmet}, docs, 10, 20) {
		t.Error("an answer about the write concern ended the call")
	}
	if !all.add(&mongoerr.Error{WriteErrors: []mongoerr.WriteError{{Index: 0, Code: 11000}, {Index: 3, Code: 121}}}, docs, 20, 30) || !slices.Equal(all.last, []int{20, 23}) {
		t.Errorf("last: %v", all.last)
	}
	e, ok := errors.AsType[*mongoerr.Error](all.err())
	if !ok || len(e.WriteErrors) != 3 || e.WriteErrors[1].Index != 23 || e.WriteErrors[2].Index != 31 || e.WriteConcernError != unmet || e.WriteConcernErrors != nil {
		t.Errorf("%+v", e)
	}
	all.add(&mongoerr.Error{WriteConcernError: &mongoerr.WriteConcernError{Code: 100}}, docs, 0, 10)
	if e, _ := errors.AsType[*mongoerr.Error](all.err()); len(e.WriteConcernErrors) != 2 || e.WriteConcernError.Code != 100 || !e.HasCode(64) {
		t.Errorf("%+v", e)
	}
	broken := &mongoerr.Error{Stage: mongoerr.StageRead, Message: "broken", Labels: []string{"b", mongoerr.LabelNoWritesPerformed}}
	if all.add(broken, docs, 30, 40) {
		t.Error("a broken connection did not end the call")
	}
	e, _ = errors.AsType[*mongoerr.Error](all.err())
	if e.Message != "broken" || len(e.WriteErrors) != 3 || !slices.Equal(e.Labels, []string{"b", "a"}) || len(broken.Labels) != 2 {
		t.Errorf("%+v", e)
	}
}

func TestFailureOfAWriteThatWasNotSentEndsTheCall(t *testing.T) {
	for _, index := range []int{-1, 5, math.MaxInt32} {
		var all batchError
		err := &mongoerr.Error{WriteErrors: []mongoerr.WriteError{{Index: 0, Code: 1}, {Index: index, Code: 1}}}
		if all.add(err, &lot{list: make([]bson.Raw, 10)}, 2, 7) {
			t.Errorf("index %d was believed", index)
		}
		if e, _ := errors.AsType[*mongoerr.Error](all.err()); len(e.WriteErrors) != 1 || e.WriteErrors[0].Index != 2 {
			t.Errorf("index %d: %+v", index, e.WriteErrors)
		}
	}
}

func TestOrderedInsertCountsWhatFollowsAFailureAsNotInserted(t *testing.T) {
	docs := &lot{command: "insert", list: blobs(50, 50, 50, 50)}
	w := &writes{ordered: true}
	if !w.note(docs, []int{1}, 3) || !slices.Equal(w.failed, []int{1, 2, 3}) {
		t.Errorf("ordered: %v", w.failed)
	}
	w = &writes{}
	if w.note(docs, []int{1}, 3) || !slices.Equal(w.failed, []int{1}) {
		t.Errorf("unordered: %v", w.failed)
	}
	docs.at = []int{2, 4, 6, 8}
	w = &writes{ordered: true}
	if !w.note(docs, []int{1}, 3) || !slices.Equal(w.failed, []int{4, 6, 8}) {
		t.Errorf("among others: %v", w.failed)
	}
}

func TestCommandWithAnUpdateOfManyIsNotRepeatable(t *testing.T) {
	limits := operation.Target{MaxBSON: 1000, MaxMessage: 2200, MaxBatch: 3}
	l := &lot{command: "update", list: blobs(50, 50, 50, 50, 50), many: []bool{false, false, false, true, false}}
	for first, want := range []bool{true, false, false, false, true} {
		if got := l.repeatable(first, limits); got != want {
			t.Errorf("from %d: %v", first, got)
		}
	}
	for single, want := range map[bool]int{true: 1, false: 3} {
		_, took, err := new(writes).fill(nil, l, 2, operation.Target{MaxBSON: 1000, MaxMessage: 2200, MaxBatch: 100}, single)
		if err != nil || took != want {
			t.Errorf("to a server with other limits, single %v: %d, %v", single, took, err)
		}
	}
}

func TestStatementsMayBeLargerThanDocumentsButNotWhatIsInThem(t *testing.T) {
	limits := operation.Target{Addr: "a:1", MaxBSON: 100, MaxMessage: 1 << 20, MaxBatch: 10}
	statement := func(filter, update int) bson.Raw {
		b, start := bson.BeginDocument(nil)
		b = bson.AppendDocument(b, "q", blobs(filter)[0])
		return bson.EndDocument(bson.AppendDocument(b, "u", blobs(update)[0]), start)
	}
	for _, c := range []struct {
		l    lot
		says string
	}{
		{lot{command: "update", list: []bson.Raw{statement(90, 100)}}, ""},
		{lot{command: "update", list: []bson.Raw{statement(20, 101)}, at: []int{7}}, "model 7 has 101 bytes; a:1 takes at most 100"},
		{lot{command: "delete", list: blobs(50, 100+operation.Envelope)}, ""},
		{lot{command: "delete", list: blobs(50, 101+operation.Envelope), at: []int{1, 4}}, "model 4 has 16485 bytes"},
		{lot{command: "insert", list: blobs(50, 101), at: []int{1, 5}}, "model 5 has 101 bytes"},
	} {
		w := &writes{noun: "model", lots: []lot{{command: "insert", list: blobs(20), at: []int{0}}, c.l}}
		err := w.measure(limits)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of %v: %v, want %q", c.l.command, c.l.at, err, c.says)
		}
	}
}
