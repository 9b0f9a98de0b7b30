package query

import (
	"iter"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Docs is a stream of documents; an error ends it.
type Docs = iter.Seq2[bson.Raw, error]

// Env is what a pipeline needs from outside.
type Env struct {
	Options
	DB, Coll string                                          // the namespace that the pipeline runs on
	Lookup   func(coll string) Docs                          // the documents of a collection of DB; one that is not there is empty
	Write    func(target Output, docs []bson.Raw) error      // $out and $merge
	Views    func(coll string) (string, bson.RawArray, bool) // the collection and pipeline behind a view; nil if there are none
}

// Pipeline is a parsed aggregation pipeline.
type Pipeline struct {
	stages []stage
	env    *Env
	ee     *expr.Env
}

// stage is one step: it turns a stream of documents into another.
type stage interface {
	run(r *running, in Docs) Docs
}

// running is one execution of a pipeline.
type running struct {
	env  *Env
	ee   *expr.Env
	vars *expr.Vars
	made bool // a stage's input was made by the stages before it, and is not a collection's
	most int  // so many of a stage's documents are looked at by the next; 0: all
}

func (r *running) ctx(doc bson.Raw) *expr.Ctx { return r.ee.On(doc, r.vars) }

// ParsePipeline parses the stages. Constants are computed now, so that what must fail fails before there is a document.
func ParsePipeline(stages bson.RawArray, env Env) (*Pipeline, error) {
	ee, vars, err := env.Options.exprEnv()
	if err != nil {
		return nil, err
	}
	pp := &pipelineParser{env: &env, ee: ee, scope: vars}
	return pp.parse(stages)
}

// exprEnv is what expressions see of the options, with the variables of let.
func (o Options) exprEnv() (*expr.Env, *expr.Vars, error) {
	c, err := value.ParseCollation(o.Collation)
	if err != nil {
		return nil, nil, err
	}
	var vars *expr.Vars
	for k, v := range o.Let.All() {
		vars = vars.With(k, v)
	}
	m := o.Meter
	if m == nil {
		m = &Meter{}
	}
	return &expr.Env{Now: o.Now, ClusterTime: o.ClusterTime, Random: o.Random, Zone: o.Zone, Collator: c, Newer: o.Strict, Meter: m}, vars, nil
}

// Run sends documents through the pipeline.
func (p *Pipeline) Run(src Docs) Docs {
	_, vars, err := p.env.Options.exprEnv()
	if err != nil {
		return failing(err)
	}
	return p.run(&running{env: p.env, ee: p.ee, vars: vars}, src)
}

func (p *Pipeline) run(r *running, src Docs) Docs {
	made := r.made
	for i, s := range p.stages {
		own := *r
		own.made, own.most = made, p.mostAfter(i)
		src = s.run(&own, src)
		if _, passes := s.(passing); !passes {
			made = true
		}
	}
	return src
}

// mostAfter is how many of the documents that stage i gives the next ones let pass, 0 for all.
func (p *Pipeline) mostAfter(i int) int {
	skipped := int64(0)
	for _, s := range p.stages[i+1:] {
		w, ok := s.(*windowStage)
		if !ok {
			break
		}
		if w.limit > 0 {
			return int(min(skipped+w.limit, 1<<30))
		}
		skipped = min(skipped+w.skip, 1<<30)
	}
	return 0
}

// LeadingMatch is the filter of a $match that begins the pipeline, nil if there is none: the caller may have used an index
// for it. The stage still runs.
func (p *Pipeline) LeadingMatch() *Filter {
	if len(p.stages) > 0 {
		if m, ok := p.stages[0].(*matchStage); ok {
			return m.filter
		}
	}
	return nil
}

// ReadsCollection says whether the documents of the collection are asked for: not by a pipeline that begins with $documents.
func (p *Pipeline) ReadsCollection() bool {
	if len(p.stages) == 0 {
		return true
	}
	_, own := p.stages[0].(*documentsStage)
	return !own
}

// Writes is the target of a last $out or $merge, nil if the pipeline only reads.
func (p *Pipeline) Writes() *Output {
	if n := len(p.stages); n > 0 {
		if o, ok := p.stages[n-1].(*outStage); ok {
			return &o.target
		}
	}
	return nil
}

func failing(err error) Docs {
	return func(yield func(bson.Raw, error) bool) { yield(nil, err) }
}

func docsOf(docs []bson.Raw) Docs {
	return func(yield func(bson.Raw, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// collect gathers the few documents of a stream that is bounded otherwise.
func collect(in Docs) ([]bson.Raw, error) {
	var out []bson.Raw
	for d, err := range in {
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// pipelineParser parses stages; a sub-pipeline is parsed by a copy.
type pipelineParser struct {
	env    *Env
	ee     *expr.Env
	scope  *expr.Vars
	within string // the stage that this pipeline is inside of
	update bool   // only what an update may use
	depth  int
}

// maxStages is the most stages that a pipeline may have.
const maxStages = 1000

func (pp *pipelineParser) parse(stages bson.RawArray) (*Pipeline, error) {
	out := &Pipeline{env: pp.env, ee: pp.ee}
	if pp.depth > 20 {
		return nil, fail(mongoerr.CodeFailedToParse, "sub-pipelines nest deeper than 20 levels")
	}
	n := stages.Len()
	if n > maxStages {
		return nil, fail(7749501, "Pipeline length must be no longer than %d stages", maxStages)
	}
	for i, v := range stages.All() {
		if v.Type != bson.TypeEmbeddedDocument {
			return nil, fail(mongoerr.CodeTypeMismatch, "Each element of the 'pipeline' array must be an object")
		}
		doc := bson.Raw(v.Value)
		if doc.Len() != 1 {
			return nil, fail(40323, "A pipeline stage specification object must contain exactly one field.")
		}
		name, arg := value.First(doc)
		parse := stageFor(name)
		switch {
		case parse != nil:
		case !serverStages[name]:
			return nil, fail(40324, "Unrecognized pipeline stage name: '%s'", name)
		case pp.within == "$facet":
			return nil, fail(40600, "%s is not allowed to be used within a $facet stage", name)
		default:
			return nil, fail(40602, "%s is only valid as the first stage in a pipeline.", name)
		}
		ss, err := parse(pp, name, arg)
		if err != nil {
			return nil, err
		}
		if err := pp.allowed(name, i, n); err != nil {
			return nil, err
		}
		out.stages = append(out.stages, ss...)
	}
	return out, nil
}

// CheckStageNames refuses stages that no server knows. A server looks at the names before anything of a command is done, and at
// the rest when a statement's turn has come.
func CheckStageNames(stages bson.RawArray) error {
	for _, v := range stages.All() {
		doc, ok := v.DocumentOK()
		if !ok || doc.Len() != 1 {
			continue
		}
		if name, _ := value.First(doc); stageFor(name) == nil && !serverStages[name] {
			return fail(40324, "Unrecognized pipeline stage name: '%s'", name)
		}
	}
	return nil
}

// serverStages are answered by the server, which takes them out when they begin a pipeline: here they are out of place.
var serverStages = map[string]bool{
	"$collStats": true, "$indexStats": true, "$listLocalSessions": true, "$listSessions": true, "$currentOp": true, "$listSearchIndexes": true,
}

// allowed checks where a stage may stand.
func (pp *pipelineParser) allowed(name string, i, n int) error {
	switch name {
	case "$out", "$merge":
		if pp.within != "" {
			codes := map[string]int32{"$lookup": 51047, "$unionWith": 31441, "$facet": 40600}
			return fail(max(codes[pp.within], 31441), "%s is not allowed to be used within a %s stage", name, pp.within)
		}
		if i != n-1 {
			return fail(40601, "%s can only be the final stage in the pipeline", name)
		}
	case "$documents":
		if i != 0 {
			return fail(40602, "$documents is only valid as the first stage in a pipeline.")
		}
	case "$facet":
		if pp.within == "$facet" {
			return fail(40600, "$facet is not allowed to be used within a $facet stage")
		}
	}
	if pp.update && !updateStages[name] {
		return fail(72, "%s is not allowed to be used within an update", name)
	}
	return nil
}

var updateStages = map[string]bool{"$addFields": true, "$set": true, "$project": true, "$unset": true, "$replaceRoot": true, "$replaceWith": true}

func (pp *pipelineParser) exprs() *expr.Parser { return &expr.Parser{Env: pp.ee, Scope: pp.scope} }

// operand parses and folds one expression.
func (pp *pipelineParser) operand(v bson.RawValue) (expr.Expr, error) {
	e, err := pp.exprs().Operand(v)
	if err != nil {
		return nil, err
	}
	return expr.Fold(e, pp.ee)
}

// sub is the parser for a pipeline inside a stage.
func (pp *pipelineParser) sub(within string) *pipelineParser {
	out := *pp
	out.within = within
	out.depth++
	return &out
}

// parseStage parses one stage; some are made of several.
type parseStage func(pp *pipelineParser, name string, arg bson.RawValue) ([]stage, error)

func stageFor(name string) parseStage {
	switch name {
	case "$match":
		return parseMatch
	case "$project":
		return parseProject
	case "$addFields", "$set":
		return parseAddFields
	case "$unset":
		return parseUnset
	case "$group":
		return parseGroup
	case "$sort":
		return parseSortStage
	case "$limit", "$skip":
		return parseWindow
	case "$unwind":
		return parseUnwind
	case "$count":
		return parseCount
	case "$replaceRoot", "$replaceWith":
		return parseReplaceRoot
	case "$sortByCount":
		return parseSortByCount
	case "$lookup":
		return parseLookup
	case "$graphLookup":
		return parseGraphLookup
	case "$facet":
		return parseFacet
	case "$bucket":
		return parseBucket
	case "$bucketAuto":
		return parseBucketAuto
	case "$sample":
		return parseSample
	case "$redact":
		return parseRedact
	case "$out", "$merge":
		return parseOut
	case "$unionWith":
		return parseUnion
	case "$documents":
		return parseDocuments
	case "$setWindowFields":
		return parseSetWindowFields
	case "$densify":
		return parseDensify
	case "$fill":
		return parseFill
	}
	return nil
}

// setAt sets a dotted path in a document, making documents on the way; a missing value takes the field away.
func setAt(doc bson.Raw, path string, v bson.RawValue) bson.Raw {
	first, rest, more := strings.Cut(path, ".")
	old := value.Get(doc, first)
	if more {
		inner := value.DocOf()
		if old.Type == bson.TypeEmbeddedDocument {
			inner = bson.Raw(old.Value)
		}
		v = bson.DocumentValue(setAt(inner, rest, v))
	}
	dst, start := bson.BeginDocument(nil)
	for k, e := range doc.All() {
		if k == first {
			e = v
		}
		if e.Type != 0 {
			dst = bson.AppendValue(dst, k, e)
		}
	}
	if old.Type == 0 && v.Type != 0 {
		dst = bson.AppendValue(dst, first, v)
	}
	return bson.EndDocument(dst, start)
}
