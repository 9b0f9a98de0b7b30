package command

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// write runs a pipeline that ends in $out or $merge, and waits for its write concern.
func (a *aggregate) write(ctx context.Context, docs query.Docs) (bson.D, error) {
	for _, err := range docs {
		if err != nil {
			return nil, err
		}
	}
	d := emptyCursor(a.ns)
	if w := a.m.WaitWriteConcern(ctx, a.r, a.wrote); w != nil {
		e := bson.D{{Key: "code", Value: w.Code}, {Key: "codeName", Value: codeName(w.Code, w.Name)}, {Key: "errmsg", Value: w.Message}}
		if w.Details != nil {
			e = append(e, bson.E{Key: "errInfo", Value: w.Details})
		}
		d = append(d, bson.E{Key: "writeConcernError", Value: e})
	}
	return d, nil
}

// store puts the documents of a pipeline where it says, in one transaction.
func (a *aggregate) store(ctx context.Context, o *query.Output, docs []bson.Raw) error {
	ns := o.DB + "." + o.Coll
	if err := checkWritable(ns); err != nil {
		return err
	}
	op, err := a.m.Write(ctx, a.r, func(tx *store.Tx) error {
		if coll := tx.Collection(ns); coll != nil && coll.Options().ViewOn != "" {
			return viewError(ns)
		}
		if o.Merge {
			return a.merge(tx, ns, o, docs)
		}
		return a.replaceAll(tx, ns, docs)
	})
	a.wrote = op
	return err
}

// replaceAll makes docs the contents of the collection; its indexes stay.
func (a *aggregate) replaceAll(tx *store.Tx, ns string, docs []bson.Raw) error {
	coll := tx.Collection(ns)
	switch {
	case coll == nil:
		if err := tx.Create(ns, store.CollOptions{}); err != nil {
			return err
		}
	case coll.Options().Capped:
		return mongoerr.Server(17152, "namespace '%s' is capped so it can't be used for $out", ns)
	default:
		var ids []store.RecordID
		for id := range coll.Records(0) {
			ids = append(ids, id)
		}
		for _, id := range ids {
			if err := tx.Delete(ns, id); err != nil {
				return err
			}
		}
	}
	for _, doc := range docs {
		if err := a.insert(tx, ns, doc); err != nil {
			return err
		}
	}
	return nil
}

func (a *aggregate) insert(tx *store.Tx, ns string, doc bson.Raw) error {
	doc, err := store.PrepareInsert(doc, bson.NewObjectID, bson.Timestamp{T: uint32(a.now.Unix()), I: 1})
	if err != nil {
		return err
	}
	_, err = tx.Insert(ns, doc)
	return err
}

func (a *aggregate) merge(tx *store.Tx, ns string, o *query.Output, docs []bson.Raw) error {
	if err := uniqueOn(tx.Collection(ns), o.On); err != nil {
		return err
	}
	for _, doc := range docs {
		if err := a.mergeOne(tx, ns, o, doc); err != nil {
			return err
		}
	}
	return nil
}

// uniqueOn: the fields that join must have a unique index.
func uniqueOn(coll *store.Coll, on []string) error {
	if len(on) == 1 && on[0] == "_id" {
		return nil
	}
	if coll != nil {
		for _, ix := range coll.Indexes() {
			if ix.Spec().Unique && ix.Spec().Partial == nil && sameFields(ix.Spec().Fields, on) {
				return nil
			}
		}
	}
	return mongoerr.Server(51183, "Cannot find index to verify that join fields will be unique")
}

func sameFields(fields []query.IndexField, names []string) bool {
	for _, f := range fields {
		if !oneOf(f.Path, names...) {
			return false
		}
	}
	return len(fields) == len(names)
}

func (a *aggregate) mergeOne(tx *store.Tx, ns string, o *query.Output, doc bson.Raw) error {
	rec, err := existing(tx.Collection(ns), o.On, doc)
	switch {
	case err != nil:
		return err
	case rec != nil && o.WhenMatched == "fail":
		return a.insert(tx, ns, doc) // the unique index refuses it
	case rec != nil:
		after, err := o.Combine(rec.Doc, doc)
		if err != nil || after == nil {
			return err
		}
		if err := store.CheckStored(after); err != nil {
			return err
		}
		return tx.Update(ns, rec.ID, append(bson.Raw(nil), after...))
	case o.WhenNotMatched == "fail":
		return mongoerr.Server(13113, "$merge could not find a matching document in the target collection for at least one document in the source collection")
	case o.WhenNotMatched == "discard":
		return nil
	}
	return a.insert(tx, ns, doc)
}

// existing finds the document that agrees in the fields that join.
func existing(coll *store.Coll, on []string, doc bson.Raw) (*store.Record, error) {
	dst, start := bson.BeginDocument(nil)
	for _, path := range on {
		var at int
		dst, at = bson.BeginDocumentElement(dst, path)
		dst = bson.AppendValue(dst, "$eq", valueAt(doc, path))
		dst = bson.EndDocument(dst, at)
	}
	filter, err := query.ParseFilter(bson.EndDocument(dst, start), query.Options{})
	if err != nil {
		return nil, err
	}
	recs, err := selectRecords(coll, store.Query{Filter: filter}, nil, 1)
	if err != nil || len(recs) == 0 {
		return nil, err
	}
	return &recs[0], nil
}

// valueAt is the one value of a path, null if there is none.
func valueAt(doc bson.Raw, path string) bson.RawValue {
	out := bson.NullValue()
	valuesAt(doc, path, func(v bson.RawValue) { out = v })
	return out
}
