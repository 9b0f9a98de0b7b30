package command

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// A server explains a filter in the form that it has parsed it to: one operator a clause, {a: {$eq: 1}} for {a: 1}, joined by
// one $and in an order of its own.

// clauses are the parts of a filter that must all hold, in that form.
func clauses(filter bson.Raw) (out []bson.Raw) {
	for key, v := range filter.All() {
		switch {
		case key == "$and":
			for _, sub := range value.Array(v) {
				out = append(out, clauses(value.Doc(sub))...)
			}
		case key == "$or" || key == "$nor":
			var subs bson.A
			for _, sub := range value.Array(v) {
				subs = append(subs, joined(clauses(value.Doc(sub))))
			}
			out = append(out, document(bson.D{{Key: key, Value: subs}}))
		case key == "$comment":
		case strings.HasPrefix(key, "$"):
			out = append(out, document(bson.D{{Key: key, Value: v}}))
		default:
			for _, op := range operatorsOf(v) {
				out = append(out, document(bson.D{{Key: key, Value: op}}))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b bson.Raw) int {
		pathA, opA := clauseOf(a)
		pathB, opB := clauseOf(b)
		return cmp.Or(cmp.Compare(rank(opA), rank(opB)), strings.Compare(pathA, pathB))
	})
	return out
}

// joined is a filter of clauses.
func joined(parts []bson.Raw) bson.Raw {
	switch len(parts) {
	case 0:
		return document(bson.D{})
	case 1:
		return parts[0]
	}
	return document(bson.D{{Key: "$and", Value: parts}})
}

// operatorsOf splits what is said of a path into documents of one operator.
func operatorsOf(v bson.RawValue) (out []bson.D) {
	d, ok := v.DocumentOK()
	first := ""
	for key := range d.All() {
		first = key
		break
	}
	switch {
	case v.Type == bson.TypeRegex:
		pattern, options, _ := v.RegexOK()
		return []bson.D{regexClause(pattern, options)}
	case !ok || !strings.HasPrefix(first, "$") || first == "$ref" || first == "$id" || first == "$db":
		return []bson.D{{{Key: "$eq", Value: v}}}
	}
	for op, arg := range d.All() {
		if c := operatorClause(d, op, arg); c != nil {
			out = append(out, c)
		}
	}
	return out
}

func operatorClause(d bson.Raw, op string, arg bson.RawValue) bson.D {
	negated := func(op string, arg any) bson.D {
		return bson.D{{Key: "$not", Value: bson.D{{Key: op, Value: arg}}}}
	}
	switch on, _ := arg.BooleanOK(); {
	case op == "$options":
		return nil
	case op == "$regex":
		pattern, options, ok := arg.RegexOK()
		if !ok {
			pattern, _ = arg.StringValueOK()
		}
		if o, ok := d.Lookup("$options").StringValueOK(); ok {
			options = o
		}
		return regexClause(pattern, options)
	case op == "$ne":
		return negated("$eq", arg)
	case op == "$nin":
		return negated("$in", arg)
	case op == "$exists" && (on || value.Truthy(arg)):
		return bson.D{{Key: op, Value: true}}
	case op == "$exists":
		return negated(op, true)
	case op == "$not":
		return bson.D{{Key: op, Value: merged(operatorsOf(arg))}}
	case op == "$elemMatch":
		inner, _ := arg.DocumentOK()
		for key := range inner.All() {
			if strings.HasPrefix(key, "$") && key != "$and" && key != "$or" && key != "$nor" {
				return bson.D{{Key: op, Value: merged(operatorsOf(arg))}}
			}
			break
		}
		return bson.D{{Key: op, Value: joined(clauses(inner))}}
	case op == "$type" && arg.Type != bson.TypeArray:
		return bson.D{{Key: op, Value: bson.A{typeNumber(arg)}}}
	}
	return bson.D{{Key: op, Value: arg}}
}

// merged puts operators into one document, in the order of a server.
func merged(ops []bson.D) (out bson.D) {
	for _, d := range ops {
		out = append(out, d...)
	}
	slices.SortStableFunc(out, func(a, b bson.E) int { return cmp.Compare(rank(a.Key), rank(b.Key)) })
	return out
}

func regexClause(pattern, options string) bson.D {
	d := bson.D{{Key: "$regex", Value: pattern}}
	if options != "" {
		d = append(d, bson.E{Key: "$options", Value: options})
	}
	return d
}

func typeNumber(v bson.RawValue) any {
	name, ok := v.StringValueOK()
	if t, known := value.TypeFromName(name); ok && known {
		return int32(t)
	}
	return v
}

// ranks are the operators in the order in which a server sorts clauses.
var ranks = []string{"$and", "$or", "$elemMatch", "$size", "$eq", "$lte", "$lt", "$gt", "$gte", "$regex", "$mod", "$exists", "$in",
	"$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear", "$not", "$nor", "$type", "$where", "$expr"}

func rank(op string) int {
	if i := slices.Index(ranks, op); i >= 0 {
		return i
	}
	return len(ranks)
}

// clauseOf is the path and the operator of a clause.
func clauseOf(c bson.Raw) (path, op string) {
	for key, v := range c.All() {
		if strings.HasPrefix(key, "$") {
			return "", key
		}
		op, _ = value.First(value.Doc(v))
		return key, op
	}
	return "", ""
}

// residual is what of a filter is left to look at when the bounds of an index have decided the covered clauses.
func residual(filter bson.Raw, covered []store.Clause) bson.Raw {
	left := slices.DeleteFunc(clauses(filter), func(c bson.Raw) bool {
		path, op := clauseOf(c)
		return slices.ContainsFunc(covered, func(by store.Clause) bool {
			return by.Path == path && by.Op == op && by.Arg.Equal(c.Lookup(path).Document().Lookup(op))
		})
	})
	return joined(left)
}
