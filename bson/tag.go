package bson

import (
	"reflect"
	"strings"
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
// since other programs that share the struct may have their own. Where there is neither, byJSON takes the tag json.
func parseTag(sf reflect.StructField, byJSON bool) fieldTag {
	text, ok := sf.Tag.Lookup("bson")
	switch {
	case ok:
	case byJSON && sf.Tag.Get("json") != "":
		text = sf.Tag.Get("json")
	case !strings.Contains(string(sf.Tag), ":"):
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
func omitter(t reflect.Type, tag fieldTag, opts *Options) func(place) bool {
	omitEmpty := tag.omitEmpty || opts.OmitEmpty
	if !omitEmpty && !tag.omitZero {
		return nil
	}
	if t.Implements(zeroerType) || reflect.PointerTo(t).Implements(zeroerType) && t.Kind() != reflect.Interface {
		return omitByMethod(t)
	}
	if f := omitFast(t); f != nil {
		return f
	}
	empty := func(p place) bool { return isEmpty(p.value(t), opts.OmitZeroStruct) }
	zero := func(p place) bool { return p.value(t).IsZero() }
	switch {
	case !tag.omitZero:
		return empty
	case !omitEmpty:
		return zero
	}
	return func(p place) bool { return empty(p) || zero(p) }
}

// omitFast is for the kinds that need no reflection.
func omitFast(t reflect.Type) func(place) bool {
	switch t.Kind() {
	case reflect.String:
		return func(p place) bool { return len(*at[string](p)) == 0 }
	case reflect.Pointer:
		return func(p place) bool { _, ok := p.pointee(); return !ok }
	case reflect.Int:
		return func(p place) bool { return *at[int](p) == 0 }
	case reflect.Int64:
		return func(p place) bool { return *at[int64](p) == 0 }
	case reflect.Int32:
		return func(p place) bool { return *at[int32](p) == 0 }
	case reflect.Bool:
		return func(p place) bool { return !*at[bool](p) }
	}
	return nil
}

// omitByMethod asks IsZero. A nil pointer or interface counts as zero without asking.
func omitByMethod(t reflect.Type) func(place) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return func(p place) bool {
			rv := p.value(t)
			return rv.IsNil() || rv.Interface().(Zeroer).IsZero()
		}
	}
	return func(p place) bool { return p.value(t).Addr().Interface().(Zeroer).IsZero() }
}

// isEmpty is the rule of omitempty for types without IsZero: structs and arrays with elements are never empty, save that
// zeroStructs makes those structs empty whose exported fields are.
func isEmpty(v reflect.Value, zeroStructs bool) bool {
	if v.Kind() != reflect.Interface && v.Type().Implements(zeroerType) && v.CanInterface() {
		return v.Kind() == reflect.Pointer && v.IsNil() || v.Interface().(Zeroer).IsZero()
	}
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		if !zeroStructs {
			return false
		}
		for i := range v.NumField() {
			if sf := v.Type().Field(i); (sf.IsExported() || sf.Anonymous) && !isEmpty(v.Field(i), true) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}
