// Package expr evaluates aggregation expressions: {$add: ["$a", 1]} over a document and variables.
//
// It is pure: the moment, chance and time zones come in through Env. A parsed Expr is immutable and safe for concurrent
// use. A missing value is the zero bson.RawValue. Errors have the server's codes and texts.
package expr

import (
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Env is what expressions need from outside.
type Env struct {
	Now         time.Time
	ClusterTime bson.Timestamp
	Random      func() float64                           // for $rand, in [0,1)
	Zone        func(name string) (*time.Location, bool) // Olson time zones; nil knows none
	Collator    *value.Collator
	Newer       bool   // than 4.0: the language of 4.4 and later
	Meter       *Meter // of the one execution that this is for; nil: nothing is bounded
}

// Vars is a chain of variables, the innermost first.
type Vars struct {
	name string
	val  bson.RawValue
	next *Vars
}

// With adds a variable in front; v may be nil.
func (v *Vars) With(name string, val bson.RawValue) *Vars { return &Vars{name, val, v} }

// Names lists the variables of the chain.
func (v *Vars) Names() []string {
	var out []string
	for ; v != nil; v = v.next {
		out = append(out, v.name)
	}
	return out
}

func (v *Vars) get(name string) (bson.RawValue, bool) {
	for ; v != nil; v = v.next {
		if v.name == name {
			return v.val, true
		}
	}
	return value.Missing, false
}

// Ctx is one evaluation: the document, the variables, the surroundings.
type Ctx struct {
	Root bson.RawValue
	Vars *Vars
	Env  *Env
}

// With gives a context with one more variable.
func (c *Ctx) With(name string, v bson.RawValue) *Ctx {
	return &Ctx{Root: c.Root, Vars: c.Vars.With(name, v), Env: c.Env}
}

// On gives the context for a document with the variables vars.
func (e *Env) On(doc bson.Raw, vars *Vars) *Ctx {
	return &Ctx{Root: bson.DocumentValue(doc), Vars: vars, Env: e}
}

// Expr is a parsed expression.
type Expr interface {
	Eval(c *Ctx) (bson.RawValue, error)
}

// folder is an expression that can be computed in part before there is a document.
type folder interface {
	fold(c *Ctx) (Expr, error)
}

// Fold computes what does not depend on a document. The server does so before it runs a pipeline: a failing constant
// fails even where there is no document.
func Fold(e Expr, env *Env) (Expr, error) { return fold(e, &Ctx{Env: env}) }

func fold(e Expr, c *Ctx) (Expr, error) {
	if f, ok := e.(folder); ok {
		return f.fold(c)
	}
	return e, nil
}

func foldAll(es []Expr, c *Ctx) (out []Expr, constant bool, err error) {
	constant = true
	for _, e := range es {
		f, err := fold(e, c)
		if err != nil {
			return nil, false, err
		}
		_, lit := f.(Literal)
		constant = constant && lit
		out = append(out, f)
	}
	return out, constant, nil
}

// Literal is a constant.
type Literal struct{ Value bson.RawValue }

// Eval gives the constant.
func (l Literal) Eval(*Ctx) (bson.RawValue, error) { return l.Value, nil }

func fail(code int32, format string, args ...any) error {
	return mongoerr.Server(code, format, args...)
}

func failed(code int32, format string, args ...any) (bson.RawValue, error) {
	return value.Missing, fail(code, format, args...)
}

var null = bson.NullValue()

func intOrLong(n int64) bson.RawValue {
	if n == int64(int32(n)) {
		return bson.Int32Value(int32(n))
	}
	return bson.Int64Value(n)
}

func typeOf(v bson.RawValue) string { return value.TypeName(v.Type) }
