package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// A projection may compute fields, as since MongoDB 4.4: {total: {$sum: "$x"}, name: "$who", kind: "fixed"}. Then the whole is
// shaped as by an aggregation's $project, after $slice, $elemMatch and the positional $ have done their work.

// computing is the second half of a projection that computes.
type computing struct {
	shape *shape
	env   *expr.Env
	vars  *expr.Vars
}

// isComputed says whether a value asks for something to be computed; a document of fields does if one of them does.
func isComputed(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeBoolean, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return false
	case bson.TypeEmbeddedDocument:
		first, _ := value.First(bson.Raw(v.Value))
		return !isSpecial(first)
	}
	return true
}

func isSpecial(op string) bool { return op == "$slice" || op == "$elemMatch" || op == "$meta" }

// parseComputed splits the specification: what is special is done by p itself, everything else by a shape.
func (p *Projection) parseComputed(spec bson.Raw, filter *Filter, o Options) error {
	var special, plain []value.Field
	for k, v := range spec.All() {
		first, _ := value.First(value.Doc(v))
		positional := strings.Contains(k, ".$")
		if !positional && !isSpecial(first) {
			plain = append(plain, value.Field{Key: k, Value: v})
			continue
		}
		special = append(special, value.Field{Key: k, Value: v})
		plain = append(plain, value.Field{Key: strings.TrimSuffix(k, ".$"), Value: bson.BooleanValue(true)})
	}
	c := projChecker{filter: filter, p: p, opts: o}
	for _, f := range special {
		if err := c.entry(f.Key, f.Value); err != nil {
			return err
		}
	}
	p.fields.include = true // the shape decides what stays
	env, vars, err := o.exprEnv()
	if err != nil {
		return err
	}
	s, err := parseShape("$project", value.DocOf(plain...), &expr.Parser{Env: env, Scope: vars}, false)
	if err != nil {
		return projectionError(err)
	}
	if err := s.fold(env); err != nil {
		return err
	}
	p.computing = &computing{shape: s, env: env, vars: vars}
	return nil
}

// projectionError gives the faults of a shape the codes that they have in a find.
func projectionError(err error) error {
	codes := map[int32]int32{40176: 31250, 40178: 31254, 40179: 31253, 40180: 51270, mongoerr.CodeInvalidPipelineOperator: 31325}
	e, ok := err.(*mongoerr.Error)
	if !ok {
		return err
	}
	code := codes[e.Code]
	if code == 0 {
		code = e.Code
	}
	return fail(code, "%s", strings.TrimPrefix(e.Message, "Invalid $project :: caused by :: "))
}
