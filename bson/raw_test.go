package bson

import (
	"testing"
)

// sample is {"a": 1, "b": {"c": [true, "x"]}}.
func sample() Raw {
	b, start := BeginDocument(nil)
	b = AppendInt32(b, "a", 1)
	b, inner := BeginDocumentElement(b, "b")
	b, arr := BeginArrayElement(b, "c")
	b = AppendBoolean(b, "0", true)
	b = AppendString(b, "1", "x")
	b = EndDocument(b, arr)
	b = EndDocument(b, inner)
	return EndDocument(b, start)
}

func TestRawLookupGoesThroughDocumentsAndArrays(t *testing.T) {
	r := sample()
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	if s, ok := r.Lookup("b", "c", "1").StringValueOK(); !ok || s != "x" {
		t.Errorf("b.c.1 = %q, %v", s, ok)
	}
	for _, path := range [][]string{{"z"}, {"a", "b"}, {"b", "c", "2"}, {}} {
		if v := r.Lookup(path...); !v.IsZero() {
			t.Errorf("Lookup(%q) = %v", path, v.Type)
		}
	}
	if r.Len() != 2 || r.IsEmpty() || !Raw(emptyDoc).IsEmpty() {
		t.Error("wrong number of elements")
	}
}

func TestRawAllDoesNotAllocate(t *testing.T) {
	r := sample()
	sum := 0
	n := testing.AllocsPerRun(100, func() {
		for k, v := range r.All() {
			if k == "a" {
				i, _ := v.AsInt64OK()
				sum += int(i)
			}
		}
		v := r.Lookup("b", "c", "0")
		if ok, _ := v.BooleanOK(); ok {
			sum++
		}
	})
	if n != 0 || sum == 0 {
		t.Errorf("%v allocations, sum %d", n, sum)
	}
}

func TestRawReadersStopAtMalformedBytes(t *testing.T) {
	good := sample()
	for i := range good {
		for _, x := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			bad := good.Clone()
			bad[i] = x
			_ = bad.Validate()
			for _, v := range bad.All() {
				v.StringValueOK()
				v.CodeWithScopeOK()
			}
			bad.Lookup("b", "c", "1")
		}
		if err := good[:i].Validate(); err == nil {
			t.Fatalf("the first %d bytes are valid", i)
		}
	}
}
