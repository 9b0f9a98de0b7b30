package topology

import (
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// FuzzParseHello feeds whatever a stranger may send, and lets the result go through every rule.
func FuzzParseHello(f *testing.F) {
	f.Add([]byte(reply('p', "dc", "east")))
	f.Add([]byte(reply('s')))
	f.Add([]byte(reply('a')))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseHello("a:1", bson.Raw(data), time.Millisecond, epoch)
		if err != nil {
			if s != nil || err.Error() == "" {
				t.Fatalf("got %v with %v", s, err)
			}
			return
		}
		for _, set := range []string{"", "rs0"} {
			d := New(Config{Seeds: []string{"a:1"}, SetName: set}, epoch)
			d, _ = d.Apply(HelloReply{Server: s}, epoch)
			d, _ = d.Apply(HelloReply{Server: s}, epoch)
			if v := d.Explain(Want{Write: true}, epoch); v.Sentence == "" || len(v.Eligible()) != len(d.Candidates(Want{Write: true}, epoch)) {
				t.Fatalf("unsound verdict\n%s", v)
			}
		}
	})
}
