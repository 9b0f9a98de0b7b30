package sextant_test

import (
	"context"
	"go/ast"
	"reflect"
	"strings"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// withMethods are the exported types of the package that have methods with pointer receivers, each with whether nothing can
// be done with one that the package did not make.
var withMethods = map[string]struct {
	zero any
	made bool
}{
	"Client":     {&sextant.Client{}, true},
	"Database":   {&sextant.Database{}, true},
	"Collection": {&sextant.Collection[bson.D]{}, true},
	"Cursor":     {&sextant.Cursor[bson.D]{}, true},
	"Pin":        {&sextant.Pin{}, true},
	"Report":     {&sextant.Report{}, false},
	"Config":     {&sextant.Config{}, false},
}

// receiver is the type whose pointers have the exported method that d declares, "" for anything else.
func receiver(d ast.Decl) string {
	fn, ok := d.(*ast.FuncDecl)
	if !ok || fn.Recv == nil || !fn.Name.IsExported() {
		return ""
	}
	star, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return ""
	}
	if generic, ok := star.X.(*ast.IndexExpr); ok {
		return generic.X.(*ast.Ident).Name
	}
	return star.X.(*ast.Ident).Name
}

// TestEveryTypeWithMethodsIsInTheTableOfZeroValues keeps the table above whole.
func TestEveryTypeWithMethodsIsInTheTableOfZeroValues(t *testing.T) {
	found := map[string]bool{}
	for _, src := range sources(t) {
		if src.pkg != "." || src.test {
			continue
		}
		for _, d := range src.ast.Decls {
			if name := receiver(d); ast.IsExported(name) {
				found[name] = true
			}
		}
	}
	for name := range found {
		if _, ok := withMethods[name]; !ok {
			t.Errorf("%s has methods and is not in the table", name)
		}
	}
	if len(found) != len(withMethods) {
		t.Errorf("the table has %d types, the package %d", len(withMethods), len(found))
	}
}

// argumentFor is a value that a method can be called with.
func argumentFor(p reflect.Type) reflect.Value {
	for _, v := range []any{context.Background(), "people", bson.D{{Key: "a", Value: 1}}, []sextant.IndexModel{{Keys: bson.D{{Key: "a", Value: 1}}}}} {
		if reflect.TypeOf(v).AssignableTo(p) && (p.Kind() != reflect.Interface || p.NumMethod() > 0 || reflect.TypeOf(v) == reflect.TypeOf(bson.D{})) {
			return reflect.ValueOf(v)
		}
	}
	return reflect.Zero(p)
}

// TestZeroValuesAndNilPointersAnswerWithoutAPanic: every method of every type, on the zero value and on nil. What returns an
// error returns one of the kind of wrong arguments if the package must have made the value.
func TestZeroValuesAndNilPointersAnswerWithoutAPanic(t *testing.T) {
	fails := func(name string, err error, must bool) {
		if err == nil && must {
			t.Errorf("%s: no error", name)
		} else if err != nil && (!mongoerr.IsConfig(err) || strings.Contains(err.Error(), "nil pointer")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for typ, c := range withMethods {
		for kind, v := range map[string]reflect.Value{"zero ": reflect.ValueOf(c.zero), "nil ": reflect.Zero(reflect.TypeOf(c.zero))} {
			for m := range v.Type().Methods() {
				name := kind + typ + "." + m.Name
				if _, byValue := v.Type().Elem().MethodByName(m.Name); byValue && v.IsNil() {
					continue // the language takes the value before the method has a say
				}
				var in []reflect.Value
				f := v.MethodByName(m.Name)
				if m.Name == "Format" {
					continue // fmt calls it
				}
				for i := range f.Type().NumIn() {
					if f.Type().IsVariadic() && i == f.Type().NumIn()-1 {
						break
					}
					in = append(in, argumentFor(f.Type().In(i)))
				}
				out := without(t, name, func() []reflect.Value { return f.Call(in) })
				for _, o := range out {
					if err, ok := o.Interface().(error); ok {
						fails(name, err, false)
					} else if o.Type() == reflect.TypeFor[error]() {
						fails(name, nil, c.made && (typ != "Cursor" || m.Name != "Close"))
					}
				}
			}
		}
	}
	var db *sextant.Database
	var people *sextant.Collection[bson.D]
	ctx := t.Context()
	for name, f := range map[string]func() error{
		"Aggregate":         func() error { _, err := sextant.Aggregate[bson.D](ctx, people, []bson.D{}); return err },
		"AggregateDatabase": func() error { _, err := sextant.AggregateDatabase[bson.D](ctx, db, []bson.D{}); return err },
		"Distinct":          func() error { _, err := sextant.Distinct[string](ctx, people, "name", bson.D{}); return err },
		"RunCommandAs": func() error {
			_, err := sextant.RunCommandAs[bson.D](ctx, db, bson.D{{Key: "ping", Value: 1}})
			return err
		},
		"RunCommandCursor": func() error {
			_, err := sextant.RunCommandCursor[bson.D](ctx, db, bson.D{{Key: "find", Value: "people"}})
			return err
		},
		"CollectionOf": func() error { _, err := sextant.CollectionOf[bson.D](db, "people").Find(ctx, bson.D{}); return err },
		"As":           func() error { _, err := sextant.As[bson.M](people).Find(ctx, bson.D{}); return err },
		"a nil client's collection": func() error {
			_, err := (*sextant.Client)(nil).Database("shop").Collection("people").InsertOne(ctx, bson.D{})
			return err
		},
		"a nil client's bulk write": func() error {
			_, err := (*sextant.Client)(nil).Database("shop").Collection("people").BulkWrite(ctx, models{insertOf(bson.D{})})
			return err
		},
		"a bulk write without a context": func() error {
			//lint:ignore SA1012 a nil context is what this is about
			_, err := (&sextant.Client{}).Database("shop").Collection("people").BulkWrite(nil, models{insertOf(bson.D{})}) //nolint:staticcheck
			return err
		},
		"a cursor that was not opened": func() error {
			cur, _ := people.Find(ctx, bson.D{})
			defer cur.Close(ctx)
			for _, err := range cur.Each(ctx) {
				return err
			}
			return nil
		},
		"ConnectConfig":   func() error { _, err := sextant.ConnectConfig(ctx, nil); return err },
		"a pin of nobody": func() error { return pinOfNobody(ctx) },
	} {
		fails(name, without(t, name, f), true)
	}
	//lint:ignore SA1012 a nil context is what this is about
	if _, r := sextant.WithReport(nil); r.String() != "" {
		t.Errorf("a report without a context says %q", r)
	}
}

// pinOfNobody gives a client, which is never used, a pin that none made.
func pinOfNobody(ctx context.Context) error {
	_, err := (&sextant.Client{}).Database("shop").With(sextant.DatabaseOptions{Pin: &sextant.Pin{}, ReadPreference: readpref.Primary()}).
		Collection("people").FindOne(ctx, bson.D{})
	return err
}

// without calls f and fails the test for its panic.
func without[R any](t *testing.T, name string, f func() R) (r R) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panicked: %v", name, p)
		}
	}()
	return f()
}
