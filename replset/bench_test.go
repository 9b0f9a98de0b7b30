package replset

import (
	"testing"

	"github.com/sextantdb/sextant/bson"
)

func BenchmarkRoundTrips(b *testing.B) {
	s := Run(b, Options{Members: 3})
	p, err := s.WaitPrimary(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	c := dialRaw(b, s, p.Index(), "bench")
	n := 0
	for name, cmd := range map[string]func() bson.D{
		"ping":            func() bson.D { return bson.D{{Key: "ping", Value: 1}} },
		"insert w1":       func() bson.D { n++; return insert(n, w(1)) },
		"insert majority": func() bson.D { n++; return insert(n, majority()) },
		"find by _id": func() bson.D {
			return bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 1}}}}
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.run("t", cmd()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
