package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// exprNode is $expr.
type exprNode struct {
	e    expr.Expr
	env  *expr.Env
	vars *expr.Vars // the command's let
	// shared: many may use the filter at a time, such as a validator. Each match has a meter of its own then.
	shared bool
}

func (p *parser) expression(_ string, arg bson.RawValue, at level) (node, error) {
	if p.noExpr != "" {
		return nil, fail(mongoerr.CodeQueryFeatureNotAllowed, "%s", p.noExpr)
	}
	if at == levelElement {
		return nil, bad("$expr can only be applied to the top-level document")
	}
	env, vars, err := p.opts.exprEnv()
	if err != nil {
		return nil, err
	}
	scope := p.scope
	if scope == nil {
		scope = vars
	}
	e, err := (&expr.Parser{Env: env, Scope: scope}).Operand(arg)
	if err != nil {
		return nil, err
	}
	if e, err = expr.Fold(e, env); err != nil {
		return nil, err
	}
	return &exprNode{e, env, vars, p.opts.Meter == nil}, nil
}

func (x *exprNode) match(doc bson.Raw, st *state) bool {
	vars := st.vars
	if vars == nil {
		vars = x.vars
	}
	env := x.env
	if x.shared {
		own := *env
		own.Meter = &Meter{}
		env = &own
	}
	mark := env.Meter.Mark()
	v, err := x.e.Eval(env.On(doc, vars))
	env.Meter.Release(mark)
	if err != nil {
		return st.fail(err)
	}
	return value.Truthy(v)
}

func (x *exprNode) single(bson.RawValue, *state) bool { return false }

// usesExpr says whether there is an $expr in the filter.
func usesExpr(n node) bool {
	switch n := n.(type) {
	case *and:
		return anyUsesExpr(n.subs)
	case *or:
		return anyUsesExpr(n.subs)
	case *not:
		return usesExpr(n.sub)
	case *exprNode:
		return true
	}
	return false
}

func anyUsesExpr(ns []node) bool {
	for _, n := range ns {
		if usesExpr(n) {
			return true
		}
	}
	return false
}
