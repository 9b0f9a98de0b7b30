package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// operator is one update operator with its argument.
type operator interface {
	// change alters the element that is there; false says that nothing had to be done.
	change(a *applying, e *elem, at place) (bool, error)
	// create gives the value of a path that does not exist; missing for operators that do nothing there.
	create(a *applying) (bson.RawValue, error)
}

// leafNode is the end of a path: the operator. Without one it only holds the source path of a $rename.
type leafNode struct{ op operator }

// lenient operators do nothing where the path cannot exist, others refuse.
type lenient interface{ ignoresBlockedPath() }

// inserter is an operator that only works on the document of an upsert.
type inserter interface{ onlyOnInsert() }

func (l *leafNode) apply(a *applying, at place) (bool, error) {
	if _, only := l.op.(inserter); l.op == nil || only && !a.insert {
		return false, nil
	}
	if r, ok := l.op.(*rename); ok {
		return r.apply(a, at)
	}
	if len(at.missing) == 0 {
		return l.existing(a, at)
	}
	return l.absent(a, at)
}

func (l *leafNode) existing(a *applying, at place) (bool, error) {
	changed, err := l.op.change(a, at.at, at)
	if err != nil || !changed {
		return false, err
	}
	if at.taken[0] == "_id" {
		return false, fail(mongoerr.CodeImmutableField, "Performing an update on the path '%s' would modify the immutable field '_id'", at.text())
	}
	return true, a.opts.storable(at.at)
}

func (l *leafNode) absent(a *applying, at place) (bool, error) {
	v, err := l.op.create(a)
	if err != nil {
		return false, err
	}
	if v.Type == 0 {
		if _, ok := l.op.(lenient); ok {
			return false, nil
		}
		return false, checkViable(at)
	}
	return true, createAt(a, at, v)
}

// checkViable refuses a path that could not be created either: it leads through a scalar, or by a name into an array.
func checkViable(at place) error {
	part := at.missing[0]
	_, numeric := value.ParseIndex(part)
	if at.at.container() && (!at.at.isArray() || numeric) {
		return nil
	}
	return fail(mongoerr.CodePathNotViable, "Cannot use the part (%s) of (%s) to traverse the element ({%s})", part, at.text(), at.at.text())
}

// maxBackfill is how many elements an update may add to an array to reach an index.
const maxBackfill = 1500000

// createAt makes the missing parts, documents on the way and the value at the end. A number makes a field in a document
// and an element in an array, which is filled up with nulls.
func createAt(a *applying, at place, v bson.RawValue) error {
	e, parts := at.at, at.missing
	for i := len(parts) - 1; i > 0; i-- {
		v = bson.DocumentValue(value.DocOf(value.Field{Key: parts[i], Value: v}))
	}
	key := parts[0]
	if e.isArray() {
		n, ok := looseIndex(key)
		if !ok {
			return notCreatable(key, e)
		}
		have := len(e.children())
		if n-have > maxBackfill {
			return fail(34, "can't backfill more than %d elements", maxBackfill)
		}
		for range n - have {
			e.append("", bson.NullValue())
		}
	} else if !e.container() {
		return notCreatable(key, e)
	}
	made := e.append(key, v)
	if err := a.opts.storable(made); err != nil {
		return err
	}
	if len(at.taken) > 0 && at.taken[0] == "_id" {
		return fail(mongoerr.CodeImmutableField, "Updating the path '%s' to %s would modify the immutable field '_id'", strings.Join(at.taken, "."), e.text())
	}
	return nil
}

func notCreatable(part string, e *elem) error {
	return fail(mongoerr.CodePathNotViable, "Cannot create field '%s' in element {%s}", part, e.text())
}
