package query

import (
	"encoding/binary"
	"math"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// bitTest is $bitsAllSet and its kin: it looks at the two's complement of a whole number, sign-extended for ever, or at
// the bytes of a binary, lowest first.
type bitTest struct {
	positions []uint32
	all, set  bool
}

func (t *bitTest) holds(v bson.RawValue, _ *state) bool {
	var bit func(uint32) bool
	if v.Type == bson.TypeBinary {
		_, data, _ := v.BinaryOK()
		bit = func(i uint32) bool { return int(i/8) < len(data) && data[i/8]>>(i%8)&1 == 1 }
	} else {
		n, ok := value.Integral(v)
		if v.Type == bson.TypeDecimal128 { // rounded rather than refused
			n, ok = value.CutLong(v), true
		}
		if !ok {
			return false
		}
		bit = func(i uint32) bool { return n>>min(i, 63)&1 == 1 }
	}
	for _, i := range t.positions {
		if (bit(i) == t.set) != t.all {
			return !t.all
		}
	}
	return t.all
}

func (p *parser) bits(at, name string, arg bson.RawValue) (node, error) {
	t := &bitTest{
		all: name == "$bitsAllSet" || name == "$bitsAllClear",
		set: name == "$bitsAllSet" || name == "$bitsAnySet",
	}
	var err error
	switch {
	case arg.Type == bson.TypeArray:
		t.positions, err = bitPositions(bson.Raw(arg.Value))
	case value.IsNumber(arg):
		t.positions, err = maskPositions(name, arg)
	case arg.Type == bson.TypeBinary:
		_, data, _ := arg.BinaryOK()
		for i := range len(data) * 8 {
			if data[i/8]>>(i%8)&1 == 1 {
				t.positions = append(t.positions, uint32(i))
			}
		}
	default:
		err = bad("%s takes an Array, a number, or a BinData but received: %s", at, value.PrintElement(name, arg))
	}
	if err != nil {
		return nil, err
	}
	return &leaf{path: newPath(at), leaves: true, test: t}, nil
}

func bitPositions(list bson.Raw) ([]uint32, error) {
	var out []uint32
	for k, v := range list.All() {
		n, whole := value.Integral(v)
		switch {
		case !whole && !value.IsNumber(v), value.IsNumber(v) && value.Float(v) != math.Trunc(value.Float(v)):
			return nil, bad("bit positions must be an integer but got: %s", value.PrintElement(k, v))
		case n > math.MaxInt32 || !whole:
			return nil, bad("bit positions cannot be represented as a 32-bit signed integer: %s", value.PrintElement(k, v))
		case n < 0:
			return nil, bad("bit positions must be >= 0 but got: %s", value.PrintElement(k, v))
		}
		out = append(out, uint32(n))
	}
	return out, nil
}

func maskPositions(name string, arg bson.RawValue) ([]uint32, error) {
	n, whole := value.Integral(arg)
	switch {
	case arg.Type == bson.TypeDouble && value.Float(arg) != math.Trunc(value.Float(arg)):
		return nil, fail(mongoerr.CodeFailedToParse, "Expected an integer: %s", value.PrintElement(name, arg))
	case !whole:
		return nil, fail(mongoerr.CodeFailedToParse, "Cannot represent as a 64-bit integer: %s", value.PrintElement(name, arg))
	case n < 0:
		return nil, fail(mongoerr.CodeFailedToParse, "Expected a positive number in: %s", value.PrintElement(name, arg))
	}
	buf := binary.LittleEndian.AppendUint64(nil, uint64(n))
	var out []uint32
	for i := range 64 {
		if buf[i/8]>>(i%8)&1 == 1 {
			out = append(out, uint32(i))
		}
	}
	return out, nil
}
