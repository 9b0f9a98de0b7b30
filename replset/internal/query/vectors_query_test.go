package query

import (
	"errors"
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func runQueryVector(v vector) error {
	got, err := findVector(v)
	if v.get("error").Type != 0 {
		return wantError(v, err)
	}
	if err != nil {
		return err
	}
	return sameDocs(got, v.raws("result"))
}

// findVector is a find without plans: filter, sort, skip, limit, project.
func findVector(v vector) ([]bson.Raw, error) {
	filter := bson.Raw(v.get("filter").Value)
	options := value.Doc(v.get("options"))
	o := testOptions
	o.Zone = testZone
	o.Collation = value.Doc(options.Lookup("collation"))
	var err error
	if o.Let, err = EvalLet(value.Doc(options.Lookup("let")), o); err != nil {
		return nil, err
	}
	f, err := ParseFilter(filter, o)
	if err != nil {
		return nil, err
	}
	s, err := ParseSortWith(value.Doc(options.Lookup("sort")), o)
	if err != nil {
		return nil, err
	}
	var p *Projection
	if spec := value.Doc(options.Lookup("projection")); !spec.IsEmpty() {
		if p, err = ParseProjection(spec, f); err != nil {
			return nil, err
		}
	}
	docs := v.raws("docs")
	if s.Natural() < 0 || value.Long(word(options.Lookup("hint"), "$natural")) < 0 {
		slices.Reverse(docs)
	}
	var got []bson.Raw
	for _, d := range docs {
		ok, _, err := f.Eval(d)
		if err != nil {
			return nil, executorError(err)
		}
		if ok {
			got = append(got, d)
		}
	}
	if err := s.Apply(got); err != nil {
		return nil, executorError(err)
	}
	skip := max(value.Long(options.Lookup("skip")), 0) // a negative one is refused by the find command, not here
	got = got[min(int(skip), len(got)):]
	if limit := value.Long(options.Lookup("limit")); limit > 0 {
		got = got[:min(int(limit), len(got))]
	}
	if p != nil {
		return projectAll(got, f, p)
	}
	return got, nil
}

func projectAll(docs []bson.Raw, f *Filter, p *Projection) ([]bson.Raw, error) {
	for i, d := range docs {
		_, pos, err := f.Eval(d)
		if err != nil {
			return nil, err
		}
		if docs[i], err = p.Apply(d, pos); err != nil {
			return nil, executorError(err)
		}
	}
	return docs, nil
}

// executorError adds what the find command puts before a failure on a document.
func executorError(err error) error {
	var e *mongoerr.Error
	if errors.As(err, &e) {
		return fail(e.Code, "Executor error during find command :: caused by :: %s", e.Message)
	}
	return err
}
