package value

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"strings"

	"github.com/sextantdb/sextant/bson"
)

// Compare gives the order of two values: by canonical type first, numbers by value whatever their type, NaN before every
// other number. Missing is equal to undefined and comes before null.
func Compare(a, b bson.RawValue) int { return CompareWith(a, b, nil) }

// CompareWith is Compare with strings ordered by a collation; nil means by bytes.
func CompareWith(a, b bson.RawValue, c *Collator) int {
	ca, cb := Canonical(a.Type), Canonical(b.Type)
	if ca != cb {
		return cmp.Compare(ca, cb)
	}
	switch ca {
	case 10:
		return compareNumbers(a, b)
	case 15:
		return c.compare(stringBytes(a), stringBytes(b))
	case 20, 25:
		return compareDocs(bson.Raw(a.Value), bson.Raw(b.Value), c)
	case 30:
		return compareBinary(a.Value, b.Value)
	case 35, 40:
		return bytes.Compare(a.Value, b.Value)
	case 45:
		return cmp.Compare(int64(word(a)), int64(word(b)))
	case 47:
		return cmp.Compare(word(a), word(b))
	case 50:
		return compareRegex(a, b)
	case 55:
		return cmp.Or(cmp.Compare(len(a.Value), len(b.Value)), bytes.Compare(a.Value, b.Value))
	case 60:
		return bytes.Compare(stringBytes(a), stringBytes(b))
	case 65:
		return compareScoped(a, b)
	}
	return 0
}

// CompareDocs orders two documents field by field: type, then name, then value; a document that ends first is smaller.
func CompareDocs(a, b bson.Raw) int { return compareDocs(a, b, nil) }

func compareDocs(a, b bson.Raw, c *Collator) int {
	l, r := walk(a), walk(b)
	for l.next() {
		if !r.next() {
			return 1
		}
		d := cmp.Or(cmp.Compare(Canonical(l.val.Type), Canonical(r.val.Type)), bytes.Compare(l.key, r.key))
		if d == 0 {
			d = CompareWith(l.val, r.val, c)
		}
		if d != 0 {
			return d
		}
	}
	if r.next() {
		return -1
	}
	return 0
}

func word(v bson.RawValue) uint64 {
	if len(v.Value) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(v.Value)
}

func stringBytes(v bson.RawValue) []byte {
	if len(v.Value) < 5 {
		return nil
	}
	return v.Value[4 : len(v.Value)-1]
}

// compareBinary looks at the stored length (of subtype 2 with its inner length), then subtype, then bytes.
func compareBinary(a, b []byte) int {
	if len(a) < 5 || len(b) < 5 {
		return cmp.Compare(len(a), len(b))
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a[4], b[4]), bytes.Compare(a[5:], b[5:]))
}

func compareRegex(a, b bson.RawValue) int {
	pa, oa, _ := a.RegexOK()
	pb, ob, _ := b.RegexOK()
	return cmp.Or(strings.Compare(pa, pb), strings.Compare(oa, ob))
}

func compareScoped(a, b bson.RawValue) int {
	ca, sa, _ := a.CodeWithScopeOK()
	cb, sb, _ := b.CodeWithScopeOK()
	if r := strings.Compare(ca, cb); r != 0 {
		return r
	}
	return CompareDocs(sa, sb)
}

func compareNumbers(a, b bson.RawValue) int {
	if a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128 {
		return compareDecimals(exactDecimal(a), exactDecimal(b))
	}
	ia, aInt := Int64(a)
	ib, bInt := Int64(b)
	switch {
	case aInt && bInt:
		return cmp.Compare(ia, ib)
	case aInt:
		return compareIntFloat(ia, Float(b))
	case bInt:
		return -compareIntFloat(ib, Float(a))
	}
	return cmp.Compare(Float(a), Float(b)) // cmp.Compare puts NaN first and equal to itself, -0 equal to 0
}

// compareIntFloat is exact: no integer is rounded on the way.
func compareIntFloat(i int64, f float64) int {
	switch {
	case math.IsNaN(f), f < math.MinInt64:
		return 1
	case f >= math.MaxInt64:
		return -1
	}
	whole := math.Trunc(f)
	return cmp.Or(cmp.Compare(i, int64(whole)), cmp.Compare(0, f-whole))
}
