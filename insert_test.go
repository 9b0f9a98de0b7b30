package sextant

import (
	"bytes"
	"errors"
	"slices"
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
		in := &inserts{docs: blobs(c.sizes...)}
		b, took, err := in.fill(bytes.Repeat([]byte{7}, head), c.first, limits)
		if err != nil || took != c.want {
			t.Errorf("%s: %d, %v", c.name, took, err)
		}
		if want := bytes.Join(toBytes(in.docs[c.first:c.first+took]), nil); !bytes.HasSuffix(b, want) {
			t.Errorf("%s: other bytes", c.name)
		}
	}
	in := &inserts{docs: blobs(50, 1001)}
	if _, _, err := in.fill(nil, 0, limits); err == nil || !bytes.Contains([]byte(err.Error()), []byte("document 1 has 1001 bytes")) {
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
	if !all.add(&mongoerr.Error{WriteErrors: []mongoerr.WriteError{{Index: 1, Code: 11000}}}, 0) {
		t.Error("an answer about a document ended the call")
	}
	if !all.add(&mongoerr.Error{WriteConcernError: &mongoerr.WriteConcernError{Code: 64}}, 10) {
		t.Error("an answer about the write concern ended the call")
	}
	if !all.add(&mongoerr.Error{WriteErrors: []mongoerr.WriteError{{Index: 0, Code: 11000}, {Index: 3, Code: 121}}}, 20) || !slices.Equal(all.last, []int{20, 23}) {
		t.Errorf("last: %v", all.last)
	}
	e, ok := errors.AsType[*mongoerr.Error](all.err())
	if !ok || len(e.WriteErrors) != 3 || e.WriteErrors[2].Index != 23 || e.WriteConcernError == nil {
		t.Errorf("%+v", e)
	}
	broken := &mongoerr.Error{Stage: mongoerr.StageRead, Message: "broken"}
	if all.add(broken, 30) {
		t.Error("a broken connection did not end the call")
	}
	if e, _ := errors.AsType[*mongoerr.Error](all.err()); e.Message != "broken" || len(e.WriteErrors) != 3 {
		t.Errorf("%+v", e)
	}
}

func TestOrderedInsertCountsWhatFollowsAFailureAsNotInserted(t *testing.T) {
	in := &inserts{docs: blobs(50, 50, 50, 50), ordered: true}
	all := &batchError{last: []int{1}}
	if !in.note(all, 0, 3) || !slices.Equal(in.failed, []int{1, 2, 3}) {
		t.Errorf("ordered: %v", in.failed)
	}
	in = &inserts{docs: blobs(50, 50, 50, 50)}
	if in.note(all, 0, 3) || !slices.Equal(in.failed, []int{1}) {
		t.Errorf("unordered: %v", in.failed)
	}
}
