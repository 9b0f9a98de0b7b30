package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	theirs "go.mongodb.org/mongo-driver/v2/bson"
)

// holder makes of a type one that holds it, of a value one that holds it, and says what a document has in its place.
type holder struct {
	name  string
	typ   func(reflect.Type) reflect.Type
	value func(to, v reflect.Value) // to is of type typ(v.Type())
	doc   func(v any) any
}

func inField(x any) any { return bson.D{{Key: "x", Value: x}} }
func inList(x any) any  { return bson.A{x} }
func same(x any) any    { return x }

// structWith is a struct with one field X of a type.
func structWith(t reflect.Type, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "X", Type: t, Tag: reflect.StructTag(`bson:"x` + tag + `"`)}})
}

func mapBy(key reflect.Value) holder {
	return holder{"map by " + key.Type().String(), func(t reflect.Type) reflect.Type { return reflect.MapOf(key.Type(), t) }, func(to, v reflect.Value) {
		to.Set(reflect.MakeMap(to.Type()))
		to.SetMapIndex(key, v)
	}, func(x any) any { return bson.D{{Key: fmt.Sprint(key.Interface()), Value: x}} }}
}

// typeHolders are the ways in which a Go type can hold another.
func typeHolders() []holder {
	return []holder{
		{"plain", func(t reflect.Type) reflect.Type { return t }, func(to, v reflect.Value) { to.Set(v) }, same},
		{"pointer", reflect.PointerTo, func(to, v reflect.Value) {
			to.Set(reflect.New(v.Type()))
			to.Elem().Set(v)
		}, same},
		{"slice", reflect.SliceOf, func(to, v reflect.Value) { to.Set(reflect.Append(to, v)) }, inList},
		{"array", func(t reflect.Type) reflect.Type { return reflect.ArrayOf(1, t) }, func(to, v reflect.Value) { to.Index(0).Set(v) }, inList},
		{"struct", func(t reflect.Type) reflect.Type { return structWith(t, "") }, func(to, v reflect.Value) { to.Field(0).Set(v) }, inField},
		{"any", func(reflect.Type) reflect.Type { return reflect.TypeFor[any]() }, func(to, v reflect.Value) { to.Set(v) }, same},
		mapBy(reflect.ValueOf("k")), mapBy(reflect.ValueOf(nString("k"))), mapBy(reflect.ValueOf(7)),
	}
}

// TestTagsReachWhatFieldsHold writes and reads numbers of every type, held in every way by two holders, in fields with each
// tag, also inline, and under each option that does for all fields what a tag does for one.
func TestTagsReachWhatFieldsHold(t *testing.T) {
	numbers := []any{1, int8(1), int16(1), int32(1), int64(1), int64(1) << 40, uint(1), uint8(1), uint16(1), uint32(1), uint64(1), uint64(1) << 40, float32(1.5), 1.5, nInt(1), nFloat(1.5), json.Number("1")}
	options := []codecs{choose(0)}
	for i, s := range switches {
		if s.name == "IntMinSize" || s.name == "AllowTruncatingDoubles" {
			options = append(options, choose(1<<i))
		}
	}
	var cases, errors int
	for _, outer := range typeHolders() {
		for _, inner := range typeHolders() {
			for _, n := range numbers {
				v := reflect.ValueOf(n)
				held := reflect.New(inner.typ(v.Type())).Elem()
				inner.value(held, v)
				field := reflect.New(outer.typ(held.Type())).Elem()
				outer.value(field, held)
				tags := []string{"", ",minsize", ",truncate", ",minsize,truncate"}
				if outer.name == "struct" || outer.name == "map by string" {
					tags = append(tags, ",inline", ",inline,minsize", ",inline,truncate")
				}
				for _, tag := range tags {
					typ := structWith(field.Type(), tag)
					full := reflect.New(typ)
					full.Elem().Field(0).Set(field)
					for _, c := range options {
						what := fmt.Sprintf("%s of %s of %T, tag %q, options%s", outer.name, inner.name, n, tag, c.printed)
						if alikeWritten(t, what, c, full.Interface()) {
							errors++
						}
						cases++
						for _, x := range []any{1.0, 1.5, -2.75, 1e300, int64(1) << 40, 3.0000000001} {
							doc := outer.doc(inner.doc(x))
							if !strings.HasPrefix(tag, ",inline") {
								doc = inField(doc)
							}
							errors += alikeRead(t, what, c, doc, typ, nil)
							if outer.name == "any" { // with something that says which type is wanted
								errors += alikeRead(t, what, c, doc, typ, held.Type())
							}
						}
					}
				}
			}
		}
	}
	if cases == 0 || errors == 0 {
		t.Errorf("%d cases, %d errors: something has not been tried", cases, errors)
	}
}

// alikeWritten compares what both packages write, and reports whether both refuse it.
func alikeWritten(t *testing.T, what string, c codecs, v any) (refused bool) {
	t.Helper()
	got, err := c.ours.Marshal(v)
	want, theirErr := c.theirsEncode(v)
	if (err == nil) != (theirErr == nil) || err == nil && !bytes.Equal(got, want) {
		t.Errorf("%s\nours   %v %v\ntheirs %v %v", what, bson.Raw(got), err, theirs.Raw(want), theirErr)
	}
	return err != nil && theirErr != nil
}

// alikeRead compares what both packages read into a struct, whose field holds a pointer to a new value of type wanted if
// that is not nil. It returns 1 if both refuse it.
func alikeRead(t *testing.T, what string, c codecs, doc any, typ, wanted reflect.Type) int {
	t.Helper()
	data, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func() reflect.Value {
		p := reflect.New(typ)
		if wanted != nil {
			p.Elem().Field(0).Set(reflect.New(wanted))
		}
		return p
	}
	got, want := fresh(), fresh()
	err, theirErr := c.ours.Unmarshal(data, got.Interface()), safely(func() error { return c.theirsDecode(data, want.Interface()) })
	if theirErr != nil && strings.HasPrefix(theirErr.Error(), "panic:") {
		return 0 // nothing to compare with
	}
	a, aErr := bson.Marshal(got.Interface()) // each by its own package: inside are D and A
	b, bErr := theirs.Marshal(want.Interface())
	if (err == nil) != (theirErr == nil) || err == nil && (aErr != nil || bErr != nil || !bytes.Equal(a, b)) {
		t.Errorf("%s, held %v: %v\nours   %v, %v\ntheirs %v, %v", what, wanted, bson.Raw(data), bson.Raw(a), err, bson.Raw(b), theirErr)
	}
	if err != nil && theirErr != nil {
		return 1
	}
	return 0
}

// ourDynamic and theirDynamic have fields of the types whose numbers only a value shows.
type (
	ourDynamic struct {
		D bson.D             `bson:",minsize"`
		A bson.A             `bson:",minsize"`
		M bson.M             `bson:",minsize"`
		E []bson.E           `bson:",minsize"`
		L []bson.D           `bson:",minsize"`
		C bson.CodeWithScope `bson:",minsize"`
		N ourD               `bson:",minsize"`
		P *bson.D            `bson:",minsize"`
		W int64
	}
	theirDynamic struct {
		D theirs.D             `bson:",minsize"`
		A theirs.A             `bson:",minsize"`
		M theirs.M             `bson:",minsize"`
		E []theirs.E           `bson:",minsize"`
		L []theirs.D           `bson:",minsize"`
		C theirs.CodeWithScope `bson:",minsize"`
		N theirD               `bson:",minsize"`
		P *theirs.D            `bson:",minsize"`
		W int64
	}
)

func TestTagMinsizeReachesWhatDynamicTypesHold(t *testing.T) {
	for _, n := range []any{int64(1), int64(1) << 40, []int64{1}, map[string]any{"k": int64(1)}} {
		d, od := bson.D{{Key: "x", Value: n}, {Key: "in", Value: bson.A{n}}}, theirs.D{{Key: "x", Value: n}, {Key: "in", Value: theirs.A{n}}}
		ours := ourDynamic{d, bson.A{n, d}, bson.M{"x": n}, d, []bson.D{d}, bson.CodeWithScope{Code: "c", Scope: d}, ourD(d), &d, 1}
		official := theirDynamic{od, theirs.A{n, od}, theirs.M{"x": n}, od, []theirs.D{od}, theirs.CodeWithScope{Code: "c", Scope: od}, theirD(od), &od, 1}
		got, err := bson.Marshal(ours)
		want, theirErr := theirs.Marshal(official)
		if err != nil || theirErr != nil || !bytes.Equal(got, want) {
			t.Errorf("%T\nours   %v %v\ntheirs %v %v", n, bson.Raw(got), err, theirs.Raw(want), theirErr)
		}
	}
}
