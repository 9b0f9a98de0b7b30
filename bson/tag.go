package bson

import (
	"reflect"
	"strings"
	"unsafe"
)

// fieldTag is what a struct field's tag says.
type fieldTag struct {
	key       string
	skip      bool
	inline    bool
	omitEmpty bool
	omitZero  bool
	flags     planFlags
}

// parseTag reads the tag `bson:"key,option,..."`, or a tag that is nothing but `key,option`. Unknown options are ignored,
// since other programs that share the struct may have their own.
func parseTag(sf reflect.StructField) fieldTag {
	text, ok := sf.Tag.Lookup("bson")
	if !ok && !strings.Contains(string(sf.Tag), ":") {
		text = string(sf.Tag)
	}
	key, options, _ := strings.Cut(text, ",")
	tag := fieldTag{key: key, skip: text == "-"}
	if key == "" {
		tag.key = strings.ToLower(sf.Name)
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			tag.omitEmpty = true
		case "omitzero":
			tag.omitZero = true
		case "minsize":
			tag.flags.minSize = true
		case "truncate":
			tag.flags.truncate = true
		case "inline":
			tag.inline = true
		}
	}
	return tag
}

// omitter returns the test that leaves a field out, nil where it never is.
func omitter(t reflect.Type, tag fieldTag) func(unsafe.Pointer) bool {
	if !tag.omitEmpty && !tag.omitZero {
		return nil
	}
	if f := omitFast(t); f != nil {
		return f
	}
	if t.Implements(zeroerType) || reflect.PointerTo(t).Implements(zeroerType) && t.Kind() != reflect.Interface {
		return omitByMethod(t)
	}
	empty := func(p unsafe.Pointer) bool { return isEmpty(reflect.NewAt(t, p).Elem()) }
	zero := func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }
	switch {
	case !tag.omitZero:
		return empty
	case !tag.omitEmpty:
		return zero
	}
	return func(p unsafe.Pointer) bool { return empty(p) || zero(p) }
}

// omitFast is for the types that need no reflection.
func omitFast(t reflect.Type) func(unsafe.Pointer) bool {
	if t.Implements(zeroerType) || reflect.PointerTo(t).Implements(zeroerType) {
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) bool { return len(*(*string)(p)) == 0 }
	case reflect.Pointer:
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	case reflect.Int, reflect.Uint:
		return func(p unsafe.Pointer) bool { return *(*int)(p) == 0 }
	case reflect.Int64, reflect.Uint64:
		return func(p unsafe.Pointer) bool { return *(*int64)(p) == 0 }
	case reflect.Int32, reflect.Uint32:
		return func(p unsafe.Pointer) bool { return *(*int32)(p) == 0 }
	case reflect.Bool:
		return func(p unsafe.Pointer) bool { return !*(*bool)(p) }
	}
	return nil
}

// omitByMethod asks IsZero. A nil pointer or interface counts as zero without asking.
func omitByMethod(t reflect.Type) func(unsafe.Pointer) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return func(p unsafe.Pointer) bool {
			rv := reflect.NewAt(t, p).Elem()
			return rv.IsNil() || rv.Interface().(Zeroer).IsZero()
		}
	}
	return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Interface().(Zeroer).IsZero() }
}

// isEmpty is the rule of omitempty for types without IsZero: structs and arrays with elements are never empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
