// Package query is what the embedded server knows of MongoDB's language: matching, sorting, projecting, updating and
// aggregating documents, and making index keys of them. It turns BSON into BSON.
//
// The package is pure: no goroutine, lock, clock, I/O or chance of its own; what it needs of these comes in through
// Options. Parsed filters, sorts, projections, updates and pipelines are immutable and safe for concurrent use.
// Values are bson.RawValue, the zero RawValue stands for a missing field. Input is taken to be valid BSON
// (bson.Raw.Validate); malformed bytes are read up to the fault and never panic.
//
// Semantics, codes and texts follow a MongoDB 4.0 server; what is newer follows the manual. Errors are *mongoerr.Error.
package query

import (
	"errors"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// Options is what the language needs from outside: the moment, chance, time zones and the settings of the command.
// The zero Options serve every query that asks for none of these.
type Options struct {
	Now         time.Time                                // $$NOW, $currentDate; the same for a whole command
	ClusterTime bson.Timestamp                           // $$CLUSTER_TIME, $currentDate as a timestamp
	Let         bson.Raw                                 // the command's let, computed by EvalLet
	Collation   bson.Raw                                 // the command's collation document; nil compares by bytes
	ObjectID    func() bson.ObjectID                     // makes the _id of an upserted document
	Random      func() float64                           // in [0,1): $sample, $rand
	Dollars     bool                                     // updates may store names that begin with a dollar (since 5.0)
	Strict      bool                                     // find's projections are checked as since 4.4
	Zone        func(name string) (*time.Location, bool) // Olson time zones; nil knows UTC alone
	Meter       *Meter                                   // of the one execution that this is for; nil: bytes are bounded, and nothing else
}

// EvalLet computes the let of a command: constant expressions by variable. Its result goes into Options.Let.
func EvalLet(let bson.Raw, o Options) (bson.Raw, error) {
	env, _, err := o.exprEnv()
	if err != nil {
		return nil, err
	}
	var out []value.Field
	for name, v := range let.All() {
		if err := expr.CheckVariable(name); err != nil {
			return nil, recoded(mongoerr.CodeFailedToParse, err)
		}
		e, err := (&expr.Parser{Env: env}).Operand(v)
		if err != nil {
			return nil, err
		}
		if v, err = e.Eval(env.On(value.DocOf(), nil)); err != nil {
			return nil, err
		}
		if err := o.Meter.Hold("let", len(v.Value)); err != nil {
			return nil, err
		}
		if v.Type == 0 {
			v = bson.NullValue()
		}
		out = append(out, value.Field{Key: name, Value: v})
	}
	return value.DocOf(out...), nil
}

// recoded gives an error another code.
func recoded(code int32, err error) error {
	var e *mongoerr.Error
	if errors.As(err, &e) {
		return fail(code, "%s", e.Message)
	}
	return err
}

// Compare gives the server's order of two values of any types.
func Compare(a, b bson.RawValue) int { return value.Compare(a, b) }

func bad(format string, args ...any) error {
	return mongoerr.Server(mongoerr.CodeBadValue, format, args...)
}

func fail(code int32, format string, args ...any) error {
	return mongoerr.Server(code, format, args...)
}

// prefixed puts words before the message of a server error.
func prefixed(prefix string, err error) error {
	var e *mongoerr.Error
	if errors.As(err, &e) {
		return fail(e.Code, "%s%s", prefix, e.Message)
	}
	return err
}
