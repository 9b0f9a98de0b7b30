package query

import (
	"cmp"
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Sort is a parsed sort pattern. A document's sort key is the least (for a descending field: the greatest) of its index
// keys, so that an array sorts by its smallest or greatest element.
type Sort struct {
	fields  []IndexField
	coll    *value.Collator
	natural int
}

// ParseSort parses a sort document: 1 or -1 for each path.
func ParseSort(doc bson.Raw) (*Sort, error) { return ParseSortWith(doc, Options{}) }

// ParseSortWith is ParseSort with a collation.
func ParseSortWith(doc bson.Raw, o Options) (*Sort, error) {
	c, err := value.ParseCollation(o.Collation)
	if err != nil {
		return nil, err
	}
	s := &Sort{coll: c}
	for path, v := range doc.All() {
		n, ok := value.Integral(v)
		if path == "$natural" && ok && (n == 1 || n == -1) {
			s.natural = int(n)
			continue
		}
		if v.Type == bson.TypeEmbeddedDocument && value.Get(bson.Raw(v.Value), "$meta").Type != 0 {
			return nil, bad("must have $meta projection for all $meta sort keys")
		}
		if !ok || (n != 1 && n != -1) || path == "" {
			return nil, bad("bad sort specification")
		}
		s.fields = append(s.fields, IndexField{Path: path, Descending: n < 0})
	}
	if s.natural != 0 {
		s.fields = nil
	}
	return s, nil
}

// Natural is 1 or -1 if the pattern holds $natural: the order of storage, or its reverse, is asked for and any other field of
// the pattern is ignored. Otherwise it is 0.
func (s *Sort) Natural() int {
	if s == nil {
		return 0
	}
	return s.natural
}

// Fields is the pattern, for the choice of an index that delivers the order.
func (s *Sort) Fields() []IndexField { return s.fields }

// IsEmpty says that there is nothing to sort by.
func (s *Sort) IsEmpty() bool { return s == nil || len(s.fields) == 0 }

// Key gives the document's sort key. Parallel arrays on the pattern's paths are an error.
func (s *Sort) Key(doc bson.Raw) ([]bson.RawValue, error) {
	keys, _, err := IndexKeys(s.fields, doc)
	if err != nil {
		return nil, err
	}
	return slices.MinFunc(keys, s.CompareKeys), nil
}

// CompareKeys orders two sort keys.
func (s *Sort) CompareKeys(a, b []bson.RawValue) int {
	for i, f := range s.fields {
		if c := value.CompareWith(a[i], b[i], s.coll); c != 0 {
			if f.Descending {
				return -c
			}
			return c
		}
	}
	return 0
}

// Compare orders two documents; a document without a sort key (parallel arrays) comes first. Sorting many documents is
// done with Apply, which makes each key once and reports such documents.
func (s *Sort) Compare(a, b bson.Raw) int {
	ka, ea := s.Key(a)
	kb, eb := s.Key(b)
	if ea != nil || eb != nil {
		return cmp.Compare(btoi(ea == nil), btoi(eb == nil))
	}
	return s.CompareKeys(ka, kb)
}

// Less says whether a sorts before b.
func (s *Sort) Less(a, b bson.Raw) bool { return s.Compare(a, b) < 0 }

// Apply sorts the documents in place; equal ones keep their order.
func (s *Sort) Apply(docs []bson.Raw) error {
	if s.IsEmpty() {
		return nil
	}
	type entry struct {
		key []bson.RawValue
		doc bson.Raw
	}
	all := make([]entry, len(docs))
	for i, d := range docs {
		k, err := s.Key(d)
		if err != nil {
			return err
		}
		all[i] = entry{k, d}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return s.CompareKeys(a.key, b.key) })
	for i, e := range all {
		docs[i] = e.doc
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
