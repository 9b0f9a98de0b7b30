package sextant

import (
	"encoding/binary"
	"reflect"
	"strings"
	"sync"

	"github.com/sextantdb/sextant/bson"
)

// The rules for _id. A document that has an _id keeps it, whatever it is: the driver never turns a string into an
// ObjectID or back. A document has none when it encodes without one, or when it is a struct whose _id field is
// the zero ObjectID (or of a type registered as such), a nil pointer or a nil interface. It then gets a new ObjectID as its first element. The id is
// written back, before anything is sent, where the caller can see it: into the field of a struct passed by pointer
// (inline structs too), into a map, and to the front of a *bson.D. So an insert that failed on its way may be
// tried again under the same id.

// appendInsert appends doc to dst as it is to be inserted and returns its _id as well.
func appendInsert(o bson.Options, dst []byte, doc any, newID func() bson.ObjectID) ([]byte, bson.RawValue, error) {
	start := len(dst)
	dst, err := o.Append(dst, doc)
	if err != nil {
		return dst, bson.RawValue{}, err
	}
	// Raw bytes and marshalers of the caller's may have put anything in, at any depth.
	if err := bson.Raw(dst[start:]).Validate(); err != nil {
		return dst, bson.RawValue{}, err
	}
	id := bson.Raw(dst[start:]).Lookup("_id")
	f := idFieldOf(o, doc)
	switch old, isID := id.ObjectIDOK(); {
	case id.Type == 0: // none at all
		dst = prependID(dst, start, newID())
	case f.zero && isID && old.IsZero():
		oid := newID()
		copy(id.Value, oid[:]) // in place: the value lies inside dst
	case f.zero && id.Type == bson.TypeNull:
		dst = prependID(removeNullID(dst, start), start, newID())
	default:
		return dst, clone(id), nil
	}
	id = clone(bson.Raw(dst[start:]).Lookup("_id"))
	oid, _ := id.ObjectIDOK()
	f.writeBack(doc, oid)
	return dst, id, nil
}

// clone copies a value out of a buffer that will be used again.
func clone(v bson.RawValue) bson.RawValue {
	return bson.RawValue{Type: v.Type, Value: append([]byte(nil), v.Value...)}
}

const idElement = 1 + len("_id\x00") + 12

// prependID makes room after the length of the document that starts at start, and puts the id there.
func prependID(dst []byte, start int, id bson.ObjectID) []byte {
	var gap [idElement]byte
	dst = append(dst, gap[:]...)
	copy(dst[start+4+idElement:], dst[start+4:len(dst)-idElement])
	bson.AppendObjectID(dst[:start+4:start+4+idElement], "_id", id)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// removeNullID takes the element _id: null out of the document that starts at start.
func removeNullID(dst []byte, start int) []byte {
	out := append([]byte(nil), dst[start:start+4]...)
	for key, v := range bson.Raw(dst[start:]).All() {
		if key != "_id" {
			out = bson.AppendValue(out, key, v)
		}
	}
	out = append(out, 0)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	return append(dst[:start], out...)
}

// idField says where the _id of a value lies and whether that place holds nothing yet.
type idField struct {
	field reflect.Value // the struct's field; invalid where there is none
	zero  bool
}

// idFieldOf looks through pointers for a struct with an _id field.
func idFieldOf(o bson.Options, doc any) idField {
	v := reflect.ValueOf(doc)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return idField{}
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return idField{}
	}
	path := idPath(idKey{v.Type(), o.UseJSONStructTags})
	if path == nil {
		return idField{}
	}
	f, err := v.FieldByIndexErr(path)
	if err != nil { // behind a nil pointer
		return idField{}
	}
	return idField{field: f, zero: f.IsZero() && holdsObjectID(o, f.Type())}
}

var objectIDType = reflect.TypeFor[bson.ObjectID]()

// holdsObjectID reports whether a generated id fits into a field of type t.
func holdsObjectID(o bson.Options, t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return objectIDType.Implements(t)
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == objectIDType || !objectIDType.ConvertibleTo(t) {
		return t == objectIDType
	}
	id, err := o.ValueOf(reflect.Zero(t).Interface()) // only a registered type is written as an ObjectID
	return err == nil && id.Type == bson.TypeObjectID
}

// writeBack puts a generated id where the caller of the insert can see it, if there is such a place.
func (f idField) writeBack(doc any, id bson.ObjectID) {
	switch d := doc.(type) {
	case bson.M:
		d["_id"] = id
		return
	case map[string]any:
		d["_id"] = id
		return
	case *bson.M:
		(*d)["_id"] = id
		return
	case *map[string]any:
		(*d)["_id"] = id
		return
	case *bson.D:
		*d = append(bson.D{{Key: "_id", Value: id}}, *d...)
		return
	}
	if writeInto(reflect.ValueOf(doc), id) {
		return
	}
	if !f.field.IsValid() || !f.field.CanSet() || !f.zero {
		return
	}
	switch t := f.field.Type(); t.Kind() {
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		p.Elem().Set(reflect.ValueOf(id).Convert(t.Elem()))
		f.field.Set(p)
	case reflect.Interface:
		f.field.Set(reflect.ValueOf(id))
	default:
		f.field.Set(reflect.ValueOf(id).Convert(t))
	}
}

// writeInto puts the id into a map or, through a pointer, into a D whose type has a name of the caller's.
func writeInto(v reflect.Value, id bson.ObjectID) bool {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	elem := reflect.ValueOf(id)
	switch {
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String && objectIDType.AssignableTo(v.Type().Elem()):
		v.SetMapIndex(reflect.ValueOf("_id").Convert(v.Type().Key()), elem)
	case v.CanSet() && v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[bson.E]():
		first := reflect.ValueOf(bson.D{{Key: "_id", Value: id}}).Convert(v.Type())
		v.Set(reflect.AppendSlice(first, v))
	default:
		return false
	}
	return true
}

// idKey is a struct type, and whether its json tags count.
type idKey struct {
	t      reflect.Type
	byJSON bool
}

// idPaths keeps, for each idKey seen, the way to its _id field: a []int, nil where there is none.
var idPaths sync.Map

func idPath(k idKey) []int {
	if p, ok := idPaths.Load(k); ok {
		return p.([]int)
	}
	p := k.findID(k.t, 0)
	idPaths.Store(k, p)
	return p
}

// tag is the field's tag as package bson sees it.
func (k idKey) tag(f reflect.StructField) string {
	text, ok := f.Tag.Lookup("bson")
	switch {
	case ok:
	case k.byJSON && f.Tag.Get("json") != "":
		text = f.Tag.Get("json")
	case !strings.Contains(string(f.Tag), ":"):
		text = string(f.Tag)
	}
	return text
}

// maxInline bounds the walk through inline structs, which may contain themselves by pointer.
const maxInline = 8

// findID looks for the field with the key _id in t and in its inline structs. No exported field has that
// name without a tag, since the default name is the field's own in lower case.
func (k idKey) findID(t reflect.Type, depth int) []int {
	if depth > maxInline {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(k.tag(f), ",")
		if name == "_id" && f.IsExported() {
			return []int{i}
		}
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() != reflect.Struct || !hasOption(opts, "inline") {
			continue
		}
		if p := k.findID(ft, depth+1); p != nil {
			return append([]int{i}, p...)
		}
	}
	return nil
}

func hasOption(opts, want string) bool {
	for o := range strings.SplitSeq(opts, ",") {
		if o == want {
			return true
		}
	}
	return false
}
