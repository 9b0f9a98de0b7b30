package query

import (
	"errors"
	"fmt"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// table is a collection in insertion order, enough to run one write.
type table struct {
	docs []bson.Raw
	let  bson.Raw
}

func runUpdateVector(v vector) error {
	tb := &table{docs: v.raws("docs")}
	var reply bson.Raw
	var err error
	tb.let = value.Doc(value.Doc(v.get("options")).Lookup("let"))
	if op := value.Doc(v.get("op")); op != nil {
		reply, err = tb.update(op)
	} else {
		reply, err = tb.findAndModify(value.Doc(v.get("findAndModify")))
	}
	if first := reply.Lookup("writeErrors", "0"); err == nil && first.Type != 0 && v.get("error").Type != 0 {
		code, _ := value.Integral(word(first, "code"))
		err = fail(int32(code), "%s", text(word(first, "errmsg"))) // some recordings give the first write error as the error
	}
	if v.get("error").Type != 0 {
		if err := wantError(v, err); err != nil {
			return err
		}
		return sameDocs(tb.docs, v.raws("after"))
	}
	if err != nil {
		return err
	}
	if want := v.get("reply"); !same(bson.DocumentValue(reply), want) {
		return fmt.Errorf("reply:\n   got  %s\n   want %s", jsonText(bson.DocumentValue(reply)), jsonText(want))
	}
	return sameDocs(tb.docs, v.raws("after"))
}

var testOptions = Options{
	Now:      time.Date(2032, 2, 29, 12, 30, 15, 123e6, time.UTC),
	ObjectID: func() bson.ObjectID { return bson.ObjectID{1, 2, 3} },
}

func argument(op bson.Raw, keys ...string) bson.RawValue {
	for _, k := range keys {
		if v := op.Lookup(k); v.Type != 0 {
			return v
		}
	}
	return value.Missing
}

func field(key string, v bson.RawValue) value.Field { return value.Field{Key: key, Value: v} }

func int32Field(key string, n int) value.Field { return field(key, bson.Int32Value(int32(n))) }

func docValue(fields ...value.Field) bson.RawValue { return bson.DocumentValue(value.DocOf(fields...)) }

// update runs one entry of an update command; a refusal is a write error in the reply.
func (tb *table) update(op bson.Raw) (bson.Raw, error) {
	n, modified, id, err := tb.runUpdate(op)
	var e *mongoerr.Error
	if err != nil && !errors.As(err, &e) {
		return nil, err
	}
	fields := []value.Field{int32Field("n", n), int32Field("nModified", modified)}
	if err != nil {
		fields = []value.Field{int32Field("n", 0), int32Field("nModified", 0)}
		we := docValue(int32Field("index", 0), int32Field("code", int(e.Code)), field("errmsg", bson.StringValue(e.Message)))
		fields = append(fields, field("writeErrors", value.ArrayOf([]bson.RawValue{we})))
	} else if id.Type != 0 {
		fields = append(fields, field("upserted", value.ArrayOf([]bson.RawValue{docValue(int32Field("index", 0), field("_id", id))})))
	}
	return value.DocOf(append(fields, field("ok", bson.DoubleValue(1)))...), nil
}

func (tb *table) runUpdate(op bson.Raw) (n, modified int, id bson.RawValue, err error) {
	o := testOptions
	o.Collation, o.Zone = value.Doc(op.Lookup("collation")), testZone
	let := tb.let
	if own := value.Doc(op.Lookup("let")); own != nil {
		let = own
	}
	if o.Let, err = EvalLet(let, o); err != nil {
		return 0, 0, id, err
	}
	multi := value.Truthy(op.Lookup("multi"))
	u, err := ParseUpdate(op.Lookup("u"), documents(op.Lookup("arrayFilters")), o)
	if err != nil {
		return 0, 0, id, err
	}
	if multi && u.IsReplacement() {
		return 0, 0, id, fail(mongoerr.CodeFailedToParse, "multi update only works with $ operators")
	}
	f, err := ParseFilter(value.Doc(op.Lookup("q")), o)
	if err != nil {
		return 0, 0, id, err
	}
	for i, d := range tb.docs {
		ok, pos, err := f.Eval(d)
		if err != nil {
			return 0, 0, id, err
		}
		if !ok || n > 0 && !multi {
			continue
		}
		n++
		out, changed, err := u.Apply(d, pos, false)
		if err != nil {
			return 0, 0, id, err
		}
		if changed {
			modified++
			tb.docs[i] = out
		}
	}
	if n == 0 && value.Truthy(op.Lookup("upsert")) {
		doc, err := tb.upsert(u, f)
		return 1, 0, value.Get(doc, "_id"), err
	}
	return n, modified, id, nil
}

func (tb *table) upsert(u *Update, f *Filter) (bson.Raw, error) {
	doc, err := u.Upsert(f)
	if err != nil {
		return nil, err
	}
	id := value.Get(doc, "_id")
	for _, d := range tb.docs {
		if Compare(value.Get(d, "_id"), id) == 0 {
			return nil, fail(11000, "E11000 duplicate key error collection: vt.c index: _id_ dup key: { : %s }", value.Print(id))
		}
	}
	tb.docs = append(tb.docs, doc)
	return doc, nil
}

func (tb *table) findAndModify(op bson.Raw) (bson.Raw, error) {
	o := testOptions
	o.Collation, o.Zone = value.Doc(op.Lookup("collation")), testZone
	let := tb.let
	if own := value.Doc(op.Lookup("let")); own != nil {
		let = own
	}
	var err error
	if o.Let, err = EvalLet(let, o); err != nil {
		return nil, err
	}
	update := op.Lookup("update")
	remove := value.Truthy(op.Lookup("remove"))
	fresh := value.Truthy(op.Lookup("new"))
	f, err := ParseFilter(value.Doc(argument(op, "query", "q")), o)
	if err != nil {
		return nil, err
	}
	s, err := ParseSortWith(value.Doc(op.Lookup("sort")), o)
	if err != nil {
		return nil, err
	}
	at, pos, err := tb.best(f, s)
	if err != nil {
		return nil, err
	}
	project := func(d bson.Raw) (bson.RawValue, error) { return projected(op, d, f, pos) }
	if remove {
		return tb.remove(at, project)
	}
	u, err := ParseUpdate(update, documents(op.Lookup("arrayFilters")), o)
	if err != nil {
		return nil, err
	}
	if at < 0 {
		return tb.modifyNone(u, f, value.Truthy(op.Lookup("upsert")), fresh, project)
	}
	old := tb.docs[at]
	out, _, err := u.Apply(old, pos, false)
	if err != nil {
		return nil, err
	}
	tb.docs[at] = out
	if !fresh {
		out = old
	}
	v, err := project(out)
	if err != nil {
		return nil, err
	}
	last := docValue(int32Field("n", 1), field("updatedExisting", bson.BooleanValue(true)))
	return value.DocOf(field("lastErrorObject", last), field("value", v), field("ok", bson.DoubleValue(1))), nil
}

func projected(op, doc bson.Raw, f *Filter, pos int) (bson.RawValue, error) {
	spec := value.Doc(op.Lookup("fields"))
	if spec.IsEmpty() {
		return bson.DocumentValue(doc), nil
	}
	p, err := ParseProjection(spec, f)
	if err != nil {
		return value.Missing, err
	}
	out, err := p.Apply(doc, pos)
	return bson.DocumentValue(out), err
}

func (tb *table) best(f *Filter, s *Sort) (at, pos int, err error) {
	at = -1
	for i, d := range tb.docs {
		ok, p, err := f.Eval(d)
		if err != nil {
			return -1, -1, err
		}
		if ok && (at < 0 || s.Natural() < 0 || s.Less(d, tb.docs[at])) {
			at, pos = i, p
		}
	}
	return at, pos, nil
}

func (tb *table) remove(at int, project func(bson.Raw) (bson.RawValue, error)) (bson.Raw, error) {
	n, v := 0, bson.NullValue()
	if at >= 0 {
		var err error
		n = 1
		if v, err = project(tb.docs[at]); err != nil {
			return nil, err
		}
		tb.docs = append(tb.docs[:at:at], tb.docs[at+1:]...)
	}
	return value.DocOf(field("lastErrorObject", docValue(int32Field("n", n))), field("value", v), field("ok", bson.DoubleValue(1))), nil
}

func (tb *table) modifyNone(u *Update, f *Filter, upsert, fresh bool, project func(bson.Raw) (bson.RawValue, error)) (bson.Raw, error) {
	last := []value.Field{int32Field("n", 0), field("updatedExisting", bson.BooleanValue(false))}
	v := bson.NullValue()
	if upsert {
		doc, err := tb.upsert(u, f)
		if err != nil {
			return nil, err
		}
		last[0] = int32Field("n", 1)
		last = append(last, field("upserted", value.Get(doc, "_id")))
		if fresh {
			if v, err = project(doc); err != nil {
				return nil, err
			}
		}
	}
	return value.DocOf(field("lastErrorObject", docValue(last...)), field("value", v), field("ok", bson.DoubleValue(1))), nil
}
