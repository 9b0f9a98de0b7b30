package value

import (
	"encoding/binary"
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/sextantdb/sextant/bson"
)

// Key gives bytes that are the same for two values exactly if Compare finds them equal: a key for maps. Missing has a key of
// its own only as undefined has.
func Key(v bson.RawValue, c *Collator) string { return string(appendKey(nil, v, c)) }

func appendKey(dst []byte, v bson.RawValue, c *Collator) []byte {
	kind := Canonical(v.Type)
	dst = append(dst, byte(kind))
	switch kind {
	case 10:
		return appendNumberKey(dst, v)
	case 15:
		k := c.key(stringBytes(v))
		return append(binary.AppendUvarint(dst, uint64(len(k))), k...)
	case 20, 25:
		for w := walk(bson.Raw(v.Value)); w.next(); {
			dst = append(append(dst, 1), w.key...)
			dst = appendKey(append(dst, 0), w.val, c)
		}
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(v.Value))), v.Value...)
}

// appendNumberKey writes whole numbers that a long holds as such, other doubles by their bits, and decimals reduced.
func appendNumberKey(dst []byte, v bson.RawValue) []byte {
	if n, ok := Integral(v); ok {
		return binary.BigEndian.AppendUint64(append(dst, 'i'), uint64(n))
	}
	if IsNaN(v) {
		return append(dst, 'n')
	}
	if v.Type == bson.TypeDecimal128 {
		d := Decimal(v)
		if d.Form == apd.Infinite {
			return appendNumberKey(dst, bson.DoubleValue(DecimalFloat(d)))
		}
		f := DecimalFloat(d)
		if !math.IsInf(f, 0) && ExactDecimal(f).Cmp(d) == 0 {
			return appendNumberKey(dst, bson.DoubleValue(f))
		}
		var r apd.Decimal
		r.Reduce(d)
		return append(append(dst, 'd'), r.String()+"\x00"...)
	}
	return binary.BigEndian.AppendUint64(append(dst, 'f'), math.Float64bits(Float(v)))
}
