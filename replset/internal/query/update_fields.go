package query

import (
	"bytes"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// assign is $set.
type assign struct {
	arg    bson.RawValue
	always bool // count the same value as a change too
}

func makeSet(_ *updateParser, _ string, arg bson.RawValue) (operator, error) {
	return &assign{arg: arg}, nil
}

func (s *assign) change(_ *applying, e *elem, _ place) (bool, error) {
	if !s.always && !e.open && e.val.Type == s.arg.Type && bytes.Equal(e.val.Value, s.arg.Value) {
		return false, nil
	}
	e.set(s.arg)
	return true, nil
}

func (s *assign) create(*applying) (bson.RawValue, error) { return s.arg, nil }

// assignOnInsert is $setOnInsert.
type assignOnInsert struct{ assign }

func makeSetOnInsert(_ *updateParser, _ string, arg bson.RawValue) (operator, error) {
	return &assignOnInsert{assign{arg: arg}}, nil
}

func (*assignOnInsert) onlyOnInsert() {}

// unset is $unset: an array keeps a null in the place.
type unset struct{}

func makeUnset(*updateParser, string, bson.RawValue) (operator, error) { return unset{}, nil }

func (unset) ignoresBlockedPath() {}

func (unset) change(_ *applying, e *elem, _ place) (bool, error) {
	if e.parent.isArray() {
		if e.val.Type == bson.TypeNull {
			return false, nil
		}
		e.set(bson.NullValue())
		return true, nil
	}
	e.remove()
	return true, nil
}

func (unset) create(*applying) (bson.RawValue, error) { return value.Missing, nil }

// extreme is $min and $max.
type extreme struct {
	arg  bson.RawValue
	max  bool
	coll *value.Collator
}

func (m *extreme) change(_ *applying, e *elem, _ place) (bool, error) {
	c := value.CompareWith(m.arg, e.value(), m.coll)
	if c == 0 || (c > 0) != m.max {
		return false, nil
	}
	e.set(m.arg)
	return true, nil
}

func (m *extreme) create(*applying) (bson.RawValue, error) { return m.arg, nil }

// now is $currentDate.
type now struct{ timestamp bool }

func makeCurrentDate(_ *updateParser, _ string, arg bson.RawValue) (operator, error) {
	if arg.Type == bson.TypeBoolean {
		return now{}, nil
	}
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, bad("%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: 'timestamp/date'}).", value.TypeName(arg.Type))
	}
	var kind string
	for k, v := range bson.Raw(arg.Value).All() {
		if k != "$type" {
			return nil, bad("Unrecognized $currentDate option: %s", k)
		}
		if v.Type == bson.TypeString {
			kind, _ = value.Text(v)
		}
	}
	if kind != "date" && kind != "timestamp" {
		return nil, bad("The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}")
	}
	return now{timestamp: kind == "timestamp"}, nil
}

func (n now) value(a *applying) bson.RawValue {
	if n.timestamp {
		return a.opts.timestamp()
	}
	return bson.DateTimeValue(a.opts.Now.UnixMilli())
}

func (n now) change(a *applying, e *elem, _ place) (bool, error) {
	e.set(n.value(a))
	return true, nil
}

func (n now) create(a *applying) (bson.RawValue, error) { return n.value(a), nil }

// rename is $rename; its node stands at the destination.
type rename struct{ from, to []string }

func makeRename(_ *updateParser, path string, arg bson.RawValue) (operator, error) {
	to, ok := value.Text(arg)
	if !ok || arg.Type != bson.TypeString {
		return nil, bad("The 'to' field for $rename must be a string: %s", value.PrintElement(path, arg))
	}
	if strings.ContainsRune(to, 0) {
		return nil, bad("The 'to' field for $rename cannot contain an embedded null byte")
	}
	r := &rename{from: strings.Split(path, "."), to: strings.Split(to, ".")}
	for _, p := range []string{path, to} {
		if _, err := checkPath(p); err != nil {
			return nil, err
		}
	}
	switch {
	case path == to:
		return nil, bad("The source and target field for $rename must differ: %s", value.PrintElement(path, arg))
	case onPath(r.from, r.to):
		return nil, bad("The source and target field for $rename must not be on the same path: %s", value.PrintElement(path, arg))
	case dynamic(r.from):
		return nil, bad("The source field for $rename may not be dynamic: %s", path)
	case dynamic(r.to):
		return nil, bad("The destination field for $rename may not be dynamic: %s", to)
	}
	return r, nil
}

func dynamic(parts []string) bool {
	for _, p := range parts {
		if p == "$" || isIdentifier(p) {
			return true
		}
	}
	return false
}

func (r *rename) apply(a *applying, at place) (bool, error) {
	from := cursorAt(a.root)
	for _, part := range r.from {
		from = from.step(part)
	}
	if len(from.missing) > 0 {
		if !from.at.container() || from.at.isArray() && !isIndex(from.missing[0]) {
			return false, checkViable(from)
		}
		return false, nil
	}
	if arr := arrayAbove(from.at.parent); arr != nil {
		return false, bad("The source field cannot be an array element, '%s' in doc with %s has an array field called '%s'", strings.Join(r.from, "."), a.root.idText(), arr.key)
	}
	above := at.at
	if len(at.missing) == 0 {
		above = at.at.parent
	}
	if arr := arrayAbove(above); arr != nil {
		return false, bad("The destination field cannot be an array element, '%s' in doc with %s has an array field called '%s'", strings.Join(r.to, "."), a.root.idText(), arr.key)
	}
	set := &leafNode{op: &assign{arg: from.at.value(), always: true}}
	if _, err := set.apply(a, at); err != nil {
		return false, err
	}
	return (&leafNode{op: unset{}}).apply(a, from)
}

func (r *rename) change(*applying, *elem, place) (bool, error) { return false, nil }
func (r *rename) create(*applying) (bson.RawValue, error)      { return value.Missing, nil }

func isIndex(s string) bool {
	_, ok := value.ParseIndex(s)
	return ok
}

func arrayAbove(e *elem) *elem {
	for ; e != nil; e = e.parent {
		if e.isArray() {
			return e
		}
	}
	return nil
}
