package bson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"
)

// The decoders of the package's own types and of those of the standard library that have a meaning in BSON. They return
// errMismatch for a BSON type that they do not take; the caller makes null of it, or an error with both types' names.

func decodeIntoD(d *decoder, v RawValue, p *D, depth int) error {
	if v.Type != TypeEmbeddedDocument {
		return errMismatch
	}
	old := d.begin(v.Value)
	err := d.elements(0, len(v.Value), depth, d.within(insideD))
	if err == nil {
		*p = d.popD(old.elems)
	}
	d.end(old)
	return err
}

func decodeIntoM(d *decoder, v RawValue, p *M, depth int) error {
	if v.Type != TypeEmbeddedDocument {
		return errMismatch
	}
	return d.intoMap(v, (*map[string]any)(p), depth, insideM)
}

// intoMap adds the elements of a document to a map, which is made if it is nil.
func (d *decoder) intoMap(v RawValue, p *map[string]any, depth int, in container) error {
	old := d.begin(v.Value)
	err := d.elements(0, len(v.Value), depth, d.within(in))
	if err == nil {
		if *p == nil {
			*p = make(map[string]any, len(d.elems)-old.elems)
		} else if d.ps.opts.ZeroMaps {
			clear(*p)
		}
		d.popInto(*p, old.elems)
	}
	d.end(old)
	return err
}

func decodeIntoA(d *decoder, v RawValue, p *A, depth int) (err error) {
	if v.Type != TypeArray {
		return errMismatch
	}
	old := d.begin(v.Value)
	*p, err = d.arrayAt(0, len(v.Value), depth, d.within(insideD))
	d.end(old)
	return err
}

func decodeRaw(d *decoder, v RawValue, p *Raw, _ int) error {
	if v.Type != TypeEmbeddedDocument {
		return errMismatch
	}
	*p = bytes.Clone(v.Value)
	return nil
}

func decodeRawArray(d *decoder, v RawValue, p *RawArray, _ int) error {
	if v.Type != TypeArray {
		return errMismatch
	}
	*p = bytes.Clone(v.Value)
	return nil
}

func decodeRawValue(d *decoder, v RawValue, p *RawValue, _ int) error {
	*p = v.Clone()
	return nil
}

func decodeObjectID(d *decoder, v RawValue, p *ObjectID, _ int) error {
	x, ok := v.ObjectIDOK()
	if !ok {
		return errMismatch
	}
	*p = x
	return nil
}

func decodeUUID(d *decoder, v RawValue, p *UUID, _ int) error {
	if v.Type != TypeBinary {
		return errMismatch
	}
	subtype, data, ok := v.BinaryOK()
	if !ok || subtype != TypeBinaryUUID || len(data) != 16 {
		return fmt.Errorf("cannot decode binary of subtype %d and %d bytes into bson.UUID, which is subtype 4 and 16 bytes", subtype, len(data))
	}
	*p = UUID(data)
	return nil
}

func decodeDateTime(d *decoder, v RawValue, p *DateTime, _ int) error {
	ms, ok := v.DateTimeOK()
	if !ok {
		return errMismatch
	}
	*p = DateTime(ms)
	return nil
}

// decodeTime takes what the official driver takes: besides a datetime an RFC 3339 string, milliseconds as int64, and the
// seconds of a timestamp.
func decodeTime(d *decoder, v RawValue, p *time.Time, _ int) error {
	switch v.Type {
	case TypeDateTime:
		*p, _ = v.TimeOK()
	case TypeInt64:
		ms, _ := v.Int64OK()
		*p = DateTime(ms).Time()
	case TypeTimestamp:
		sec, _, _ := v.TimestampOK()
		*p = time.Unix(int64(sec), 0).UTC()
	case TypeString:
		s, err := d.text(v, TypeString)
		if err != nil {
			return err
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return fmt.Errorf("cannot decode the string %.60q into time.Time: it is not RFC 3339", s)
		}
		*p = t.UTC()
	default:
		return errMismatch
	}
	if d.ps.opts.UseLocalTimeZone {
		*p = p.Local()
	}
	return nil
}

func decodeTimestamp(d *decoder, v RawValue, p *Timestamp, _ int) error {
	t, i, ok := v.TimestampOK()
	if !ok {
		return errMismatch
	}
	*p = Timestamp{t, i}
	return nil
}

func decodeDecimal(d *decoder, v RawValue, p *Decimal128, _ int) error {
	x, ok := v.Decimal128OK()
	if !ok {
		return errMismatch
	}
	*p = x
	return nil
}

func decodeBinary(d *decoder, v RawValue, p *Binary, _ int) error {
	if v.Type != TypeBinary {
		return errMismatch
	}
	subtype, data, ok := v.BinaryOK()
	if !ok {
		return malformed(v)
	}
	*p = Binary{subtype, append(make([]byte, 0, len(data)), data...)}
	return nil
}

func decodeRegex(d *decoder, v RawValue, p *Regex, _ int) error {
	if v.Type != TypeRegex {
		return errMismatch
	}
	pattern, options, ok := v.RegexOK()
	if !ok {
		return malformed(v)
	}
	if !utf8.Valid(v.Value) {
		return invalid("regex is not UTF-8")
	}
	*p = Regex{pattern, options}
	return nil
}

func decodeJavaScript(d *decoder, v RawValue, p *JavaScript, _ int) error {
	if v.Type != TypeJavaScript {
		return errMismatch
	}
	s, err := d.text(v, TypeJavaScript)
	*p = JavaScript(s)
	return err
}

func decodeSymbol(d *decoder, v RawValue, p *Symbol, _ int) error {
	if subtype, data, ok := v.BinaryOK(); ok && plainBytes(subtype) { // as into a string
		*p = Symbol(data)
		return nil
	}
	if v.Type != TypeSymbol && v.Type != TypeString {
		return errMismatch
	}
	s, err := d.text(v, v.Type)
	*p = Symbol(s)
	return err
}

func decodeCodeWithScope(d *decoder, v RawValue, p *CodeWithScope, depth int) error {
	if v.Type != TypeCodeWithScope {
		return errMismatch
	}
	code, scope, ok := v.CodeWithScopeOK()
	if !ok || length(scope) != len(scope) {
		return malformed(v)
	}
	if !utf8.ValidString(code) {
		return invalid("code is not UTF-8")
	}
	var doc D
	err := decodeIntoD(d, RawValue{TypeEmbeddedDocument, scope}, &doc, depth)
	if err != nil {
		return decodeUnder(err, "$scope")
	}
	*p = CodeWithScope{JavaScript(code), doc}
	return nil
}

func decodeDBPointer(d *decoder, v RawValue, p *DBPointer, _ int) error {
	if v.Type != TypeDBPointer {
		return errMismatch
	}
	ns, id, ok := v.DBPointerOK()
	if !ok {
		return malformed(v)
	}
	if !utf8.ValidString(ns) {
		return invalid("dbPointer is not UTF-8")
	}
	*p = DBPointer{ns, id}
	return nil
}

// decodeMarker is for the types that have a type byte and nothing else.
func decodeMarker[T any](want Type) func(*decoder, RawValue, *T, int) error {
	return func(_ *decoder, v RawValue, _ *T, _ int) error {
		if v.Type != want {
			return errMismatch
		}
		return nil
	}
}

func decodeNumber(d *decoder, v RawValue, p *json.Number, _ int) error {
	switch v.Type {
	case TypeInt32, TypeInt64:
		n, _ := v.AsInt64OK()
		*p = json.Number(strconv.FormatInt(n, 10))
	case TypeDouble:
		f, _ := v.DoubleOK()
		*p = json.Number(strconv.FormatFloat(f, 'f', -1, 64))
	default:
		return errMismatch
	}
	return nil
}

func decodeURL(d *decoder, v RawValue, p *url.URL, _ int) error {
	if v.Type != TypeString {
		return errMismatch
	}
	s, err := d.text(v, TypeString)
	if err != nil {
		return err
	}
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("cannot decode the string %.60q into url.URL: not a URL", s)
	}
	*p = *u
	return nil
}
