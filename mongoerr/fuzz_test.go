package mongoerr

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
)

// FuzzFromReply: any reply gives none or an error that can be shown, in one line whatever the server says, and asked. The fields keep a server's
// own words.
func FuzzFromReply(f *testing.F) {
	for _, text := range []string{
		`{"ok": 0, "errmsg": "no\nway \u0007", "code": 11000, "codeName": "x", "keyPattern": {"a": 1}, "keyValue": {"a": "b"}, "errorLabels": ["a", 1]}`,
		`{"ok": 1, "writeErrors": [{"index": 0, "code": 1, "errmsg": "x", "errInfo": {}}], "writeConcernError": {"code": 64, "errmsg": "late"}}`,
		`{"$err": "old", "ok": true, "errInfo": {"details": []}, "topologyVersion": {"processId": 1}}`,
	} {
		v, err := bson.ParseExtJSON([]byte(text), false)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(v.Value)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e := FromReply(bson.Raw(data))
		if e == nil {
			return
		}
		text := e.Error()
		if text == "" || !utf8.ValidString(text) || OneLine(text) != text {
			t.Fatalf("%q", text)
		}
		for _, is := range []func(error) bool{IsTimeout, IsNetwork, IsDuplicateKey, IsStateChange, IsRetryableRead, IsAuth, IsOverload, IsPoolCleared} {
			_ = is(e)
		}
		_, _ = Code(e), errors.Unwrap(e)
	})
}
