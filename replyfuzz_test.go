package sextant_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// replyWords are the fields that replies have, and values that decide something. Codes of a member's state are not among
// them: after one the client waits, as it should, for the member to be looked at.
var (
	replyWords = []string{"ok", "n", "nModified", "upserted", "index", "_id", "writeErrors", "writeConcernError", "code", "errmsg", "codeName", "errInfo",
		"errorLabels", "cursor", "id", "ns", "firstBatch", "nextBatch", "value", "lastErrorObject", "values", "databases", "name", "key", "sizeOnDisk", "totalSize",
		"options", "info", "type", "$clusterTime", "clusterTime", "signature", "operationTime", "x"}
	replyValues = []any{nil, true, false, 0, 1, -1, 3, 99, 11000, 64, 1.0, 0.0, -0.5, math.NaN(), math.Inf(1), 1e300, int64(0), int64(1), int64(5), int64(math.MaxInt64),
		int64(math.MinInt64), "", "x", "d.c", "d", "admin.c", ".", bson.Timestamp{T: 1, I: 1}, bson.Timestamp{T: math.MaxUint32, I: math.MaxUint32},
		bson.NewObjectIDFromTimestamp(time.Unix(0, 0)), bson.MaxKey{}, bson.Decimal128{}}
)

// sentence makes a document of bytes: each field takes a byte for its name, one for what it is, and what that takes.
func sentence(b *[]byte, depth int) bson.D {
	d := bson.D{}
	for len(d) < 8 && len(*b) >= 2 {
		word := (*b)[0]
		*b = (*b)[1:]
		if word == 0xff { // the end of this document
			break
		}
		d = append(d, bson.E{Key: replyWords[int(word)%len(replyWords)], Value: phrase(b, depth)})
	}
	return d
}

func phrase(b *[]byte, depth int) any {
	if len(*b) == 0 {
		return nil
	}
	kind := int((*b)[0])
	*b = (*b)[1:]
	switch {
	case kind >= 0xf0 && depth < 5:
		list := bson.A{}
		for len(list) < kind-0xf0 && len(*b) > 0 {
			list = append(list, phrase(b, depth+1))
		}
		return list
	case kind >= 0xc0 && depth < 5:
		return sentence(b, depth+1)
	}
	return replyValues[kind%len(replyValues)]
}

// answerOfBytes is a document that is made of bytes: as BSON if they are that, else as a sentence, behind the good reply's fields
// or without them.
func answerOfBytes(data []byte, good string) bson.Raw {
	if doc := bson.Raw(data); doc.Validate() == nil {
		return doc
	}
	if len(data) == 0 {
		return raw(bson.D{})
	}
	how, rest := data[0], data[1:]
	d, said := bson.D{}, sentence(&rest, 0)
	if how&1 == 0 {
		d = wellSaid(good)
	}
	for _, e := range said {
		d = with(d, e.Key, e.Value)
	}
	if how&2 == 0 {
		d = with(d, "ok", 1)
	}
	return raw(d)
}

// Whatever documents come as replies, no call panics, hangs or returns a count below zero, and the client goes on.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{"", "\x00", "\x01\x00\x03", "\x01\x06\xf1\xc0\x04\x07\xff", "\x01\x0d\xc0\x0e\x12\x0f\x17\x10\xf1\xc0\xff\xff", "\x00\x0d\xc0\x0e\x12\x0f\x17\x11\xf2\xc0\xff\xc0\xff",
		"\x00\x01\x05", "\x00\x03\xf1\xc0\x04\x03\x05\x03\xff", "\x00\x07\xc0\x08\x09\xff", "\x00\x12\x03", "\x02\x00\x03\x08\x08\x09\x16\x0c\xf1\x03", "\x00\x1d\xc0\x1e\x1b\x1f\x03\xff",
		"\x00\x15\xf1\xc0\x16\x16\x18\x05\xff", "\x00\x14\x03"} {
		f.Add([]byte(seed))
	}
	for _, o := range operations() {
		f.Add([]byte(raw(wellSaid(o.good))))
	}
	liar, db := lieTo(f)
	calls := operations()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, o := range calls {
			reply := answerOfBytes(data, o.good)
			if e := mongoerr.FromReply(reply); e != nil && mongoerr.IsStateChange(e) { // found in bytes that happen to be BSON
				continue
			}
			calm, left := raw(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 43}}), 6
			liar.say(func(string) bson.Raw { // a cursor that never ends is not what is looked for
				if left--; left < 0 {
					return calm
				}
				return reply
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			counts, err := o.run(ctx, db)
			late := ctx.Err()
			cancel()
			if late != nil || mongoerr.IsTimeout(err) && mongoerr.Code(err) == 0 {
				t.Fatalf("%s with %v took too long: %v", o.name, reply, err)
			}
			for _, n := range counts {
				if n < 0 {
					t.Errorf("%s with %v counts %v", o.name, reply, counts)
				}
			}
			if err != nil && err.Error() == "" {
				t.Errorf("%s with %v says nothing", o.name, reply)
			}
		}
		liar.say(func(string) bson.Raw { return raw(bson.D{{Key: "ok", Value: 1}}) })
		if _, err := db.RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err != nil {
			t.Errorf("the next command: %v", err)
		}
	})
}
