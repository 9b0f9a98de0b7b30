package command

import (
	"bytes"
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// runCreateIndexes builds indexes, all or none. Kinds that are not there (hashed,
// text, geo, wildcard) are refused; TTL is kept and shown, but documents
// do not expire.
func runCreateIndexes(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	specs, err := parseIndexes(r)
	if err != nil {
		return nil, err
	}
	if err := checkWritable(ns); err != nil {
		return nil, err
	}
	created, err := m.ensureCollection(ctx, r, ns)
	if err != nil {
		return nil, err
	}
	var before, after int
	_, err = m.Write(ctx, r, func(tx *store.Tx) error {
		if coll := tx.Collection(ns); coll != nil {
			before = len(coll.Indexes())
		}
		if err := createIndexes(tx, ns, specs); err != nil {
			return err
		}
		after = len(tx.Collection(ns).Indexes())
		return nil
	})
	if err != nil {
		return nil, err
	}
	var d bson.D
	if created || after != before {
		d = append(d, bson.E{Key: "createdCollectionAutomatically", Value: created})
	}
	d = append(d, bson.E{Key: "numIndexesBefore", Value: int32(before)}, bson.E{Key: "numIndexesAfter", Value: int32(after)})
	if before == after {
		d = append(d, bson.E{Key: "note", Value: "all indexes already exist"})
	}
	return d, nil
}

func parseIndexes(r *Request) ([]store.IndexSpec, error) {
	err := r.eachField(func(key string, _ bson.RawValue) error {
		switch key {
		case "indexes", "commitQuorum", "ignoreUnknownIndexOptions", "returnOnStart":
			return nil
		}
		return badOption("Invalid field specified for createIndexes command: %s", key)
	})
	if err != nil {
		return nil, err
	}
	v := r.Field("indexes")
	if docs, ok := r.Docs["indexes"]; ok {
		v = bson.ArrayValue(arrayOf(docs))
	}
	arr, ok := v.ArrayOK()
	switch {
	case v.IsZero():
		return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "The 'indexes' field is a required argument of the createIndexes command")
	case !ok:
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "The field 'indexes' must be an array, but got %s", value.TypeName(v.Type))
	}
	var specs []store.IndexSpec
	for _, e := range arr.All() {
		d, ok := e.DocumentOK()
		if !ok {
			return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "The elements of the 'indexes' array must be objects, but got %s", value.TypeName(e.Type))
		}
		spec, err := store.ParseIndexSpec(d)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	if len(specs) == 0 {
		return nil, badOption("Must specify at least one index to create")
	}
	return specs, nil
}

// ensureCollection creates the collection in a write of its own: it stays although
// building an index fails, as on a real server.
func (m *Member) ensureCollection(ctx context.Context, r *Request, ns string) (created bool, err error) {
	if m.Store.Latest().Collection(ns) != nil {
		return false, nil
	}
	_, err = m.Write(ctx, r, func(tx *store.Tx) error {
		if tx.Collection(ns) != nil {
			return nil
		}
		created = true
		return tx.Create(ns, store.CollOptions{})
	})
	return created, err
}

func createIndexes(tx *store.Tx, ns string, specs []store.IndexSpec) error {
	if tx.Collection(ns).Options().ViewOn != "" {
		return viewError(ns)
	}
	for i, spec := range specs {
		spec.Inherit(tx.Collection(ns).Options().Collation)
		if err := spec.Check(); err != nil {
			return err
		}
		if err := duplicateIn(specs[:i], spec); err != nil {
			return err
		}
		if _, err := tx.CreateIndex(ns, spec); err != nil {
			return err
		}
	}
	return nil
}

// duplicateIn refuses the same index twice in one command.
func duplicateIn(earlier []store.IndexSpec, spec store.IndexSpec) error {
	for _, e := range earlier {
		if query.Compare(bson.DocumentValue(e.Key), bson.DocumentValue(spec.Key)) != 0 || !bytes.Equal(e.Partial, spec.Partial) || !bytes.Equal(e.Collation, spec.Collation) {
			continue
		}
		if e.Name == spec.Name {
			return mongoerr.Server(mongoerr.CodeIndexAlreadyExists, "Identical index already exists: %s", spec.Name)
		}
		return mongoerr.Server(mongoerr.CodeIndexAlreadyExists, "index already exists with different name: %s", spec.Name)
	}
	return nil
}

// runDropIndexes drops one index by name or key, several by name, or all with "*".
func runDropIndexes(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	was := 0
	index := r.Field("index")
	_, err = m.Write(ctx, r, func(tx *store.Tx) error {
		coll := tx.Collection(ns)
		if coll == nil {
			if m.opt.Persona.wire < wire44 {
				return mongoerr.Server(mongoerr.CodeNamespaceNotFound, "ns not found")
			}
			return mongoerr.Server(mongoerr.CodeNamespaceNotFound, "ns not found %s", ns)
		}
		if coll.Options().ViewOn != "" {
			return viewError(ns)
		}
		was = len(coll.Indexes())
		names, err := indexNames(coll, index)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := tx.DropIndex(ns, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	d := bson.D{{Key: "nIndexesWas", Value: int32(was)}}
	if s, _ := index.StringValueOK(); s == "*" {
		d = append(d, bson.E{Key: "msg", Value: "non-_id indexes dropped for collection"})
	}
	return d, nil
}

// indexNames are the indexes that the argument means.
func indexNames(coll *store.Coll, v bson.RawValue) ([]string, error) {
	if name, ok := v.StringValueOK(); ok {
		if name != "*" {
			return []string{name}, nil
		}
		var all []string
		for _, ix := range coll.Indexes() {
			if !ix.IsID() {
				all = append(all, ix.Spec().Name)
			}
		}
		return all, nil
	}
	if key, ok := v.DocumentOK(); ok {
		for _, ix := range coll.Indexes() {
			if query.Compare(bson.DocumentValue(ix.Spec().Key), v) == 0 {
				return []string{ix.Spec().Name}, nil
			}
		}
		return nil, mongoerr.Server(mongoerr.CodeIndexNotFound, "can't find index with key: %s", value.PrintDoc(key))
	}
	arr, ok := v.ArrayOK()
	var names []string
	for _, e := range arr.All() {
		name, isString := e.StringValueOK()
		ok = ok && isString
		names = append(names, name)
	}
	if !ok || len(names) == 0 {
		return nil, mongoerr.Server(mongoerr.CodeIndexNotFound, "invalid index name spec")
	}
	return names, nil
}

func runListIndexes(_ context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	a, err := parseList(r)
	if err != nil {
		return nil, err
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	coll := sn.Collection(ns)
	switch {
	case coll == nil:
		return nil, mongoerr.Server(mongoerr.CodeNamespaceNotFound, "ns does not exist: %s", ns)
	case coll.Options().ViewOn != "":
		return nil, viewError(ns)
	}
	var docs []bson.Raw
	for _, ix := range coll.Indexes() {
		doc := ix.Spec().Doc
		if own := clustered(coll); own != nil && ix.IsID() {
			doc = own
		}
		docs = append(docs, doc)
	}
	c := &cursor{ns: r.DB + ".$cmd.listIndexes." + coll.Name(), src: &listSource{docs}}
	return m.openList(r, c, len(docs), a.batchSize)
}
