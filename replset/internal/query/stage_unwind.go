package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// unwindStage is $unwind: one document for each element of an array.
type unwindStage struct {
	path     string
	index    string // where the element's index goes, empty for nowhere
	preserve bool
}

func parseUnwind(_ *pipelineParser, _ string, arg bson.RawValue) ([]stage, error) {
	s := &unwindStage{}
	switch arg.Type {
	case bson.TypeString:
		s.path, _ = value.Text(arg)
	case bson.TypeEmbeddedDocument:
		if err := s.options(bson.Raw(arg.Value)); err != nil {
			return nil, err
		}
	default:
		return nil, fail(15981, "expected either a string or an object as specification for $unwind stage, got %s", value.TypeName(arg.Type))
	}
	if s.path == "" {
		return nil, fail(28812, "no path specified to $unwind stage")
	}
	if !strings.HasPrefix(s.path, "$") {
		return nil, fail(28818, "path option to $unwind stage should be prefixed with a '$': %s", s.path)
	}
	s.path = s.path[1:]
	return []stage{s}, expr.CheckPath(s.path)
}

func (s *unwindStage) options(doc bson.Raw) error {
	for k, v := range doc.All() {
		text, _ := value.Text(v)
		switch k {
		case "path":
			if v.Type != bson.TypeString {
				return fail(28808, "expected a string as the path for $unwind stage, got %s", value.TypeName(v.Type))
			}
			s.path = text
		case "preserveNullAndEmptyArrays":
			if v.Type != bson.TypeBoolean {
				return fail(28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s", value.TypeName(v.Type))
			}
			s.preserve = value.Truthy(v)
		case "includeArrayIndex":
			if v.Type != bson.TypeString || text == "" {
				return fail(28810, "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s", value.TypeName(v.Type))
			}
			if text[0] == '$' {
				return fail(28822, "includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s", text)
			}
			s.index = text
		default:
			return fail(28811, "unrecognized option to $unwind stage: %s", k)
		}
	}
	return nil
}

func (s *unwindStage) run(r *running, in Docs) Docs {
	return func(yield func(bson.Raw, error) bool) {
		for d, err := range in {
			if err != nil {
				yield(nil, err)
				return
			}
			more := s.each(d, func(out bson.Raw) bool {
				if err := r.meter().Step(len(out)); err != nil {
					yield(nil, err)
					return false
				}
				return yield(out, nil)
			})
			if !more {
				return
			}
		}
	}
}

// each yields the documents that one becomes; false if the reader has enough.
func (s *unwindStage) each(d bson.Raw, yield func(bson.Raw) bool) bool {
	v := plainPath(d, s.path)
	if v.Type != bson.TypeArray {
		if value.Nullish(v) && !s.preserve {
			return true
		}
		return yield(s.indexed(d, bson.NullValue()))
	}
	i := int64(0)
	for _, e := range bson.RawArray(v.Value).All() {
		if !yield(s.indexed(setAt(d, s.path, e), bson.Int64Value(i))) {
			return false
		}
		i++
	}
	if i == 0 && s.preserve {
		return yield(s.indexed(setAt(d, s.path, value.Missing), bson.NullValue()))
	}
	return true
}

func (s *unwindStage) indexed(d bson.Raw, i bson.RawValue) bson.Raw {
	if s.index == "" {
		return d
	}
	return setAt(d, s.index, i)
}

// plainPath follows a path through documents alone.
func plainPath(d bson.Raw, path string) bson.RawValue {
	v := bson.DocumentValue(d)
	for part := range strings.SplitSeq(path, ".") {
		if v.Type != bson.TypeEmbeddedDocument {
			return value.Missing
		}
		v = value.Get(bson.Raw(v.Value), part)
	}
	return v
}
