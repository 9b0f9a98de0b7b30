package replset

import (
	"fmt"
	"testing"

	"github.com/sextantdb/sextant"
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

// BenchmarkBulkInsert is one client that inserts 10,000 documents at a time and waits until a majority has them. All members
// share the machine: documents per second of three are to be a third or a quarter of those of one.
func BenchmarkBulkInsert(b *testing.B) {
	const chunk = 10_000
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			coll := clientOf(b, Run(b, Options{Members: members}).URI()).Database("t").Collection("c")
			models, n := make([]sextant.WriteModel, chunk), 0
			for b.Loop() {
				for i := range models {
					models[i] = sextant.InsertOneModel{Document: bson.D{{Key: "_id", Value: fmt.Sprint("m", n)}}}
					n++
				}
				if _, err := coll.BulkWrite(b.Context(), models); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "docs/s")
		})
	}
}
