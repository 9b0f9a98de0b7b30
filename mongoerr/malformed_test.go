package mongoerr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

func TestMalformedReplySaysWhatBelongsThereAndWhatCame(t *testing.T) {
	long, secret := strings.Repeat("x", 1000), bson.D{{Key: "password", Value: "hunter2"}}
	doc, err := bson.Marshal(bson.D{{Key: "a", Value: 5}, {Key: "b", Value: "t\n"}, {Key: "c", Value: long}, {Key: "d", Value: secret}, {Key: "e", Value: nil},
		{Key: "f", Value: 0.5}, {Key: "g", Value: true}, {Key: "h", Value: bson.A{secret}}})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"a": "a is the 32-bit integer 5 where a document belongs", "b": `b is the string "t\n" where a document belongs`,
		"c": `c is the string "` + long[:60] + `..." where a document belongs`, "d": "d is of type embedded document where a document belongs",
		"e": "e is null where a document belongs", "f": "f is the double 0.5 where a document belongs", "g": "g is the boolean true where a document belongs",
		"h": "h is of type array where a document belongs", "i": "i is missing, where a document belongs",
	} {
		f := Malformed(key, bson.Raw(doc).Lookup(key), "a document")
		e := f.Failure("the write was done")
		if f.Error() != want || !strings.Contains(e.Error(), "whether the write was done is unknown: "+f.Error()) {
			t.Errorf("%v; want %q", e, want)
		}
		if strings.ContainsAny(e.Error(), "\n") || strings.Contains(e.Error(), "hunter2") {
			t.Errorf("the error shows too much: %v", e)
		}
		if wrapped := fmt.Errorf("wrapped: %w", e); !IsMalformedReply(wrapped) || IsNetwork(wrapped) || IsRetryableRead(wrapped) || IsTimeout(wrapped) || IsStateChange(wrapped) {
			t.Errorf("%v is taken for another kind", e)
		}
	}
	if IsMalformedReply(nil) || IsMalformedReply(New(StageDecode, "x")) {
		t.Error("other errors are taken for malformed replies")
	}
}
