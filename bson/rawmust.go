package bson

import "time"

// The accessors of this file panic where the value is not of their type: they are for values whose type is known.

func must[T any](v RawValue, want Type, x T, ok bool) T {
	if !ok {
		panic(v.wrongType(want))
	}
	return x
}

// Double returns a double; it panics on any other type.
func (v RawValue) Double() float64 {
	x, ok := v.DoubleOK()
	return must(v, TypeDouble, x, ok)
}

// StringValue returns a string; it panics on any other type.
func (v RawValue) StringValue() string {
	x, ok := v.StringValueOK()
	return must(v, TypeString, x, ok)
}

// Document returns a document; it panics on any other type.
func (v RawValue) Document() Raw {
	x, ok := v.DocumentOK()
	return must(v, TypeEmbeddedDocument, x, ok)
}

// Array returns an array; it panics on any other type.
func (v RawValue) Array() RawArray {
	x, ok := v.ArrayOK()
	return must(v, TypeArray, x, ok)
}

// Binary returns subtype and data; it panics on any other type.
func (v RawValue) Binary() (subtype byte, data []byte) {
	s, d, ok := v.BinaryOK()
	return must(v, TypeBinary, s, ok), d
}

// ObjectID returns an ObjectID; it panics on any other type.
func (v RawValue) ObjectID() ObjectID {
	x, ok := v.ObjectIDOK()
	return must(v, TypeObjectID, x, ok)
}

// Boolean returns a boolean; it panics on any other type.
func (v RawValue) Boolean() bool {
	x, ok := v.BooleanOK()
	return must(v, TypeBoolean, x, ok)
}

// DateTime returns milliseconds since the Unix epoch; it panics on any other type.
func (v RawValue) DateTime() int64 {
	x, ok := v.DateTimeOK()
	return must(v, TypeDateTime, x, ok)
}

// Time returns a datetime as an instant; it panics on any other type.
func (v RawValue) Time() time.Time {
	x, ok := v.TimeOK()
	return must(v, TypeDateTime, x, ok)
}

// Regex returns pattern and options; it panics on any other type.
func (v RawValue) Regex() (pattern, options string) {
	p, o, ok := v.RegexOK()
	return must(v, TypeRegex, p, ok), o
}

// DBPointer returns collection and id; it panics on any other type.
func (v RawValue) DBPointer() (string, ObjectID) {
	ns, id, ok := v.DBPointerOK()
	return must(v, TypeDBPointer, ns, ok), id
}

// JavaScript returns code; it panics on any other type.
func (v RawValue) JavaScript() string {
	x, ok := v.JavaScriptOK()
	return must(v, TypeJavaScript, x, ok)
}

// Symbol returns a symbol; it panics on any other type.
func (v RawValue) Symbol() string {
	x, ok := v.SymbolOK()
	return must(v, TypeSymbol, x, ok)
}

// CodeWithScope returns code and scope; it panics on any other type.
func (v RawValue) CodeWithScope() (string, Raw) {
	code, scope, ok := v.CodeWithScopeOK()
	return must(v, TypeCodeWithScope, code, ok), scope
}

// Int32 returns a 32-bit integer; it panics on any other type.
func (v RawValue) Int32() int32 {
	x, ok := v.Int32OK()
	return must(v, TypeInt32, x, ok)
}

// Timestamp returns seconds and ordinal; it panics on any other type.
func (v RawValue) Timestamp() (t, i uint32) {
	t, i, ok := v.TimestampOK()
	return must(v, TypeTimestamp, t, ok), i
}

// Int64 returns a 64-bit integer; it panics on any other type.
func (v RawValue) Int64() int64 {
	x, ok := v.Int64OK()
	return must(v, TypeInt64, x, ok)
}

// Decimal128 returns a decimal; it panics on any other type.
func (v RawValue) Decimal128() Decimal128 {
	x, ok := v.Decimal128OK()
	return must(v, TypeDecimal128, x, ok)
}
