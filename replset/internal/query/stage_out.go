package query

import (
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Output is where $out or $merge writes, and how.
type Output struct {
	DB, Coll       string
	Merge          bool     // $merge; otherwise the documents replace the collection
	On             []string // $merge: the fields that identify a document
	WhenMatched    string   // replace, keepExisting, merge, fail, or pipeline
	WhenNotMatched string   // insert, discard, fail
	pipeline       *Pipeline
	names          []string
	vals           []expr.Expr
}

// Combine gives what a $merge writes in place of a document that was found, unless that is to fail; nil leaves it as it is.
func (o *Output) Combine(existing, fresh bson.Raw) (bson.Raw, error) {
	switch o.WhenMatched {
	case "keepExisting":
		return nil, nil
	case "replace":
		if value.Get(fresh, "_id").Type == 0 {
			return setFirst(fresh, value.Get(existing, "_id")), nil
		}
		return fresh, nil
	case "merge":
		return expr.MergeObjects([]bson.Raw{existing, fresh}), nil
	}
	r := &running{env: o.pipeline.env, ee: o.pipeline.ee}
	mark := r.meter().Mark()
	defer func() { r.meter().Release(mark) }()
	r.vars = r.vars.With("new", bson.DocumentValue(fresh))
	for i, e := range o.vals {
		v, err := e.Eval(r.ctx(fresh))
		if err != nil {
			return nil, err
		}
		r.vars = r.vars.With(o.names[i], v)
	}
	out, err := collect(o.pipeline.run(r, docsOf([]bson.Raw{existing})))
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return out[0], nil
}

// setFirst puts an _id in front.
func setFirst(doc bson.Raw, id bson.RawValue) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendValue(dst, "_id", id)
	for k, v := range doc.All() {
		if k != "_id" {
			dst = bson.AppendValue(dst, k, v)
		}
	}
	return bson.EndDocument(dst, start)
}

// outStage is $out and $merge: it writes all documents at the end and yields none.
type outStage struct{ target Output }

func parseOut(pp *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	s := &outStage{target: Output{DB: pp.env.DB, Merge: name == "$merge"}}
	if name == "$merge" {
		return []stage{s}, s.target.parseMerge(pp, arg)
	}
	db, coll := value.Get(value.Doc(arg), "db"), value.Get(value.Doc(arg), "coll")
	if arg.Type == bson.TypeString {
		coll = arg
	} else if db.Type != bson.TypeString || coll.Type != bson.TypeString {
		return nil, fail(mongoerr.CodeTypeMismatch, "$out stage requires a string argument, but found %s", value.TypeName(arg.Type))
	} else {
		s.target.DB, _ = value.Text(db)
	}
	s.target.Coll, _ = value.Text(coll)
	if strings.HasPrefix(s.target.Coll, "system.") || strings.Contains(s.target.Coll, "$") {
		return nil, fail(17385, "Can't $out to special collection: %s", s.target.Coll)
	}
	return []stage{s}, nil
}

func (o *Output) parseMerge(pp *pipelineParser, arg bson.RawValue) error {
	o.On, o.WhenMatched, o.WhenNotMatched = []string{"_id"}, "merge", "insert"
	if s, ok := value.Text(arg); ok && arg.Type == bson.TypeString {
		o.Coll = s
		return nil
	}
	if arg.Type != bson.TypeEmbeddedDocument {
		return fail(51182, "$merge only supports a string or object argument, not %s", value.TypeName(arg.Type))
	}
	doc := bson.Raw(arg.Value)
	for k, v := range doc.All() {
		var err error
		switch k {
		case "into":
			err = o.into(v)
		case "on":
			err = o.on(v)
		case "let", "whenMatched":
		case "whenNotMatched":
			o.WhenNotMatched, _ = value.Text(v)
			if !slices.Contains([]string{"insert", "discard", "fail"}, o.WhenNotMatched) {
				err = bad("Enumeration value '%s' for field '$merge.whenNotMatched' is not a valid value.", o.WhenNotMatched)
			}
		default:
			err = fail(40415, "BSON field '$merge.%s' is an unknown field.", k)
		}
		if err != nil {
			return err
		}
	}
	if o.Coll == "" {
		return fail(40414, "BSON field '$merge.into' is missing but a required field")
	}
	return o.whenMatched(pp, value.Get(doc, "whenMatched"), value.Get(doc, "let"))
}

func (o *Output) into(v bson.RawValue) error {
	if s, ok := value.Text(v); ok && v.Type == bson.TypeString {
		if o.Coll = s; s == "" {
			return fail(5786800, "$merge 'into' field cannot be an empty string")
		}
		return nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return fail(51178, "$merge 'into' field  must be either a string or an object, but found %s", value.TypeName(v.Type))
	}
	if s, ok := value.Text(value.Get(bson.Raw(v.Value), "db")); ok {
		o.DB = s
	}
	if o.Coll, _ = value.Text(value.Get(bson.Raw(v.Value), "coll")); o.Coll == "" {
		return fail(5786801, "$merge 'into' field must specify a 'coll' that is not empty, null or undefined")
	}
	return nil
}

func (o *Output) on(v bson.RawValue) error {
	list := []bson.RawValue{v}
	switch v.Type {
	case bson.TypeArray:
		list = value.Array(v)
	case bson.TypeString:
	default:
		return fail(51186, "$merge 'on' field  must be either a string or an array of strings, but found %s", value.TypeName(v.Type))
	}
	o.On = nil
	for _, e := range list {
		s, ok := value.Text(e)
		if !ok || e.Type != bson.TypeString {
			return fail(51134, "$merge 'on' array elements must be strings, but found %s", value.TypeName(e.Type))
		}
		o.On = append(o.On, s)
	}
	if len(o.On) == 0 {
		return fail(51187, "If explicitly specifying $merge 'on', must include at least one field")
	}
	return nil
}

func (o *Output) whenMatched(pp *pipelineParser, v, let bson.RawValue) error {
	switch v.Type {
	case 0:
		return nil
	case bson.TypeArray:
		o.WhenMatched = "pipeline"
		sub := pp.sub("$merge")
		sub.update = true
		sub.scope = sub.scope.With("new", value.Missing)
		for k, e := range value.Doc(let).All() {
			parsed, err := pp.operand(e)
			if err != nil {
				return err
			}
			o.names, o.vals = append(o.names, k), append(o.vals, parsed)
			sub.scope = sub.scope.With(k, value.Missing)
		}
		var err error
		o.pipeline, err = sub.parse(bson.RawArray(v.Value))
		return err
	}
	if v.Type != bson.TypeString {
		return fail(51191, "$merge 'whenMatched' field  must be either a string or an array, but found %s", value.TypeName(v.Type))
	}
	o.WhenMatched, _ = value.Text(v)
	if !slices.Contains([]string{"replace", "keepExisting", "merge", "fail"}, o.WhenMatched) {
		return bad("Enumeration value '%s' for field 'whenMatched' is not a valid value.", o.WhenMatched)
	}
	if let.Type != 0 {
		return fail(51199, "Cannot use 'let' variables with 'whenMatched: %s' mode", o.WhenMatched)
	}
	return nil
}

func (s *outStage) run(r *running, in Docs) Docs {
	return r.whole("$out", in, func(_ *holding, docs []bson.Raw) ([]bson.Raw, error) {
		if r.env.Write == nil {
			return nil, fail(mongoerr.CodeInternalError, "a pipeline cannot write here")
		}
		return nil, r.env.Write(s.target, docs)
	})
}
