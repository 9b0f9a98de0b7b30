package topology

import (
	"testing"
	"time"

	"github.com/sextantdb/sextant/readpref"
)

func benchmarkCandidates(b *testing.B, w Want) {
	d := New(Config{Seeds: []string{"a:1"}, SetName: "rs0"}, epoch)
	for addr, role := range map[string]byte{"a:1": 'p', "b:1": 's', "c:1": 's'} {
		s, err := ParseHello(addr, reply(role, "dc", "east"), time.Millisecond, epoch)
		if err != nil {
			b.Fatal(err)
		}
		d, _ = d.Apply(HelloReply{Server: s}, epoch)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(d.Candidates(w, epoch)) == 0 {
			b.Fatal("nobody serves")
		}
	}
}

func BenchmarkCandidatesPlain(b *testing.B) {
	benchmarkCandidates(b, Want{ReadPref: readpref.Nearest()})
}

func BenchmarkCandidatesWithTags(b *testing.B) {
	benchmarkCandidates(b, Want{ReadPref: readpref.Nearest(readpref.Tags("dc", "east"))})
}
