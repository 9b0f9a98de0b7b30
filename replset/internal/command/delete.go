package command

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// deleteSpec is one delete statement.
type deleteSpec struct {
	filter    bson.Raw
	limit     bson.RawValue
	hint      bson.RawValue
	collation collation
}

// runDelete removes documents: all that match (limit 0) or one (any other limit).
func runDelete(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	b, docs, err := m.parseBatch(r, "deletes", func(key string, _ bson.RawValue) error { return unknownField(r.Name, key) })
	if err != nil {
		return nil, err
	}
	specs := make([]deleteSpec, len(docs))
	for i, d := range docs {
		if specs[i], err = parseDeleteSpec(d); err != nil {
			return nil, err
		}
	}
	err = b.execute(ctx, len(specs), func(tx *store.Tx, i int) error { return b.delete(tx, &specs[i]) },
		b.retried)
	if err != nil {
		return nil, err
	}
	return b.reply(false), nil
}

func parseDeleteSpec(d bson.Raw) (s deleteSpec, err error) {
	const path = "delete.deletes"
	for key, v := range d.All() {
		switch key {
		case "q":
			s.filter, err = docField(path, key, v)
		case "limit":
			s.limit = v
		case "collation":
			s.collation, err = statementCollation(key, v)
		case "hint":
			s.hint = v
		case "sampleId":
		default:
			err = unknownField(path, key)
		}
		if err != nil {
			return s, err
		}
	}
	if s.filter == nil {
		return s, missingField(path, "q")
	}
	if s.limit.IsZero() {
		return s, missingField(path, "limit")
	}
	return s, nil
}

func (b *batch) delete(tx *store.Tx, s *deleteSpec) error {
	limit, err := s.count()
	if err != nil {
		return err
	}
	if limit == 0 && b.r.TxnNumber >= 0 {
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "Cannot use (or request) retryable writes with limit=0")
	}
	coll := tx.Collection(b.ns)
	if err := removable(coll); err != nil {
		return err
	}
	if s.collation.fault != nil {
		return s.collation.fault
	}
	o := b.options()
	o.Collation = s.collation.on(coll)
	filter, err := query.ParseFilter(s.filter, o)
	if err != nil {
		return err
	}
	records, err := selectRecords(coll, store.Query{Filter: filter, Hint: s.hint, Collation: o.Collation}, nil, limit)
	if err != nil {
		return err
	}
	for _, rec := range records {
		if err := tx.Delete(b.ns, rec.ID); err != nil {
			return err
		}
		b.n++
	}
	return nil
}

// count is the limit: 0 for all, 1 for one. What is no number counts as 0.
func (s *deleteSpec) count() (int, error) {
	if !s.limit.IsNumber() || !value.Truthy(s.limit) {
		return 0, nil
	}
	if n, ok := truncated(s.limit); ok && n == 1 {
		return 1, nil
	}
	return 0, mongoerr.Server(mongoerr.CodeFailedToParse, "The limit field in delete objects must be 0 or 1. Got %s", value.Print(s.limit))
}

// removable refuses deletes from views and capped collections.
func removable(coll *store.Coll) error {
	switch {
	case coll == nil:
	case coll.Options().ViewOn != "":
		return viewError(coll.NS())
	case coll.Options().Capped:
		return mongoerr.Server(mongoerr.CodeIllegalOperation, "cannot remove from a capped collection: %s", coll.NS())
	}
	return nil
}

func viewError(ns string) error {
	return mongoerr.Server(mongoerr.CodeCommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
}
