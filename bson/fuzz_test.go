package bson

import (
	"bytes"
	"testing"
)

// seeds are documents of every type, and what is wrong in one place.
func seeds(f *testing.F) []Raw {
	f.Helper()
	b, start := BeginDocument(nil)
	b = AppendDouble(b, "double", -0.5)
	b = AppendString(b, "string", "é\x00")
	b = AppendDocument(b, "doc", sample())
	b = AppendArray(b, "array", NewRawArray(Int32Value(1), NullValue()))
	b = AppendBinary(b, "bin", 0x80, []byte{1, 2})
	b = AppendBinary(b, "old", TypeBinaryBinaryOld, []byte{1, 2})
	b = AppendUndefined(b, "undefined")
	b = AppendObjectID(b, "oid", ObjectID{1, 2, 3})
	b = AppendBoolean(b, "bool", true)
	b = AppendDateTime(b, "date", -1)
	b = AppendRegex(b, "regex", "a.b", "xi")
	b = AppendDBPointer(b, "ptr", "db.c", ObjectID{9})
	b = AppendJavaScript(b, "js", "f()")
	b = AppendSymbol(b, "symbol", "s")
	b = AppendCodeWithScope(b, "scoped", "f()", sample())
	b = AppendInt32(b, "int32", -1)
	b = AppendTimestamp(b, "ts", 1, 2)
	b = AppendInt64(b, "int64", 1<<40)
	b = AppendDecimal128(b, "decimal", Decimal128{h: decimalNaN})
	b = AppendMinKey(b, "min")
	b = AppendMaxKey(b, "max")
	all := Raw(EndDocument(b, start))
	if err := all.Validate(); err != nil {
		f.Fatal(err)
	}
	short := all[:len(all)-1]
	return []Raw{all, sample(), emptyDoc, short, {5, 0, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff, 0}}
}

// FuzzRawValidate: nothing panics on any bytes, and on valid ones all readers agree on the elements.
func FuzzRawValidate(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := Raw(b)
		valid := r.Validate() == nil
		elements, err := r.Elements()
		if valid && (err != nil || len(elements) != r.Len()) {
			t.Fatalf("valid, but %d elements of %d: %v", len(elements), r.Len(), err)
		}
		rebuilt, start := BeginDocument(nil)
		for k, v := range r.All() {
			rebuilt = AppendValue(rebuilt, k, v)
			_ = r.Lookup(k, "0", "x")
			_ = v.Any()
			_ = v.String()
			if valid && v.Validate() != nil {
				t.Fatalf("valid, but %s alone is not: %v", k, v.Validate())
			}
		}
		if rebuilt = EndDocument(rebuilt, start); valid && !onlyRegexDiffers(b, rebuilt) {
			t.Fatalf("rebuilt from its elements: %x, was %x", rebuilt, b)
		}
	})
}

// onlyRegexDiffers compares documents; a regex's options may have been sorted.
func onlyRegexDiffers(a, b []byte) bool {
	return bytes.Equal(a, b) || len(a) == len(b) && bytes.IndexByte(a, byte(TypeRegex)) >= 0
}

// FuzzUnmarshal: decoding agrees with Validate, and what was decoded is encoded as the same bytes, apart from the keys of
// arrays, which are not kept, and the order of a regex's options.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d D
		err := Unmarshal(b, &d)
		if (err == nil) != (Raw(b).Validate() == nil) {
			t.Fatalf("Unmarshal: %v, Validate: %v", err, Raw(b).Validate())
		}
		var w whole
		_ = Unmarshal(b, &w)
		if err != nil {
			return
		}
		back, err := Marshal(d)
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		again, err := Marshal(mustDecode(t, back))
		if err != nil || !bytes.Equal(again, back) {
			t.Fatalf("not stable: %x, then %x: %v", back, again, err)
		}
		if !hasByte(b, TypeArray) && !onlyRegexDiffers(b, back) {
			t.Fatalf("decoded and encoded: %x, was %x", back, b)
		}
		var m M
		if err := Unmarshal(b, &m); err != nil {
			t.Fatalf("into D but not into M: %v", err)
		}
	})
}

func hasByte(b []byte, t Type) bool { return bytes.IndexByte(b, byte(t)) >= 0 }

func mustDecode(t *testing.T, b []byte) D {
	var d D
	if err := Unmarshal(b, &d); err != nil {
		t.Fatalf("encoded, but not decoded: %v", err)
	}
	return d
}

// FuzzExtJSON: no text panics; what is read is valid BSON, and printed canonically it is read as the same, unless it has
// keys that look like a wrapper's when they move below the top or NaN with a payload.
func FuzzExtJSON(f *testing.F) {
	for _, s := range seeds(f) {
		if s.Validate() == nil {
			text, err := MarshalExtJSON(s, true, false)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(`{"a": {"$date": "2012-12-24T12:15:30.501Z"}, "b": [1, -0, 1e400, 1E+2, "\ud83d\ude00"]}`))
	f.Add([]byte(`{"$regex": {"$regularExpression": {"pattern": "p", "options": "xi"}}, "$uuid": {"$uuid": "x"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := ParseExtJSON(text, false)
		if err != nil {
			return
		}
		if err := v.Validate(); err != nil {
			t.Fatalf("%s is read as malformed BSON: %v", text, err)
		}
		out, err := MarshalExtJSON(v, true, true)
		if err != nil {
			t.Fatalf("read, but not printed: %v", err)
		}
		back, err := ParseExtJSON(out, v.Type == TypeEmbeddedDocument)
		if err != nil {
			t.Fatalf("%s\nprints %s\nwhich is not read: %v", text, out, err)
		}
		if v.Type == TypeEmbeddedDocument && !back.Equal(v) {
			t.Fatalf("%s\nprints %s\nwhich is read as %x, not %x", text, out, back.Value, v.Value)
		}
	})
}
