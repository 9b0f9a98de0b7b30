package query

import (
	"github.com/sextantdb/sextant/bson"
)

// Pipeline stands for an aggregation pipeline; they are refused.
type Pipeline struct{}

func (u *Update) parsePipeline(bson.RawArray, []bson.Raw) error {
	return bad("aggregation pipelines as updates are not served yet")
}

func (u *Update) applyPipeline(doc bson.Raw, _ bool) (bson.Raw, bool, error) { return doc, false, nil }

func usesExpr(node) bool { return false }
