package bson

import (
	"encoding/json"
	"net/url"
	"reflect"
	"time"
)

type ownCodec struct {
	enc encodeFunc
	dec decodeFunc
	op  op
	// dynamic: how the numbers inside are written depends on options, and so on a field's tags.
	dynamic bool
}

// own makes a codec of two functions over the Go type itself. A null sets the zero value, save where dec wants it.
func own[T any](enc func(*plans, []byte, T, int) ([]byte, Type, error), dec func(*decoder, RawValue, *T, int) error) ownCodec {
	t := reflect.TypeFor[T]()
	return ownCodec{
		enc: func(ps *plans, dst []byte, p place, depth int) ([]byte, Type, error) {
			return enc(ps, dst, *at[T](p), depth)
		},
		dec: func(d *decoder, v RawValue, p place, depth int) error {
			err := dec(d, v, at[T](p), depth)
			if err != errMismatch {
				return err
			}
			if isNull(v) {
				*at[T](p) = *new(T)
				return nil
			}
			return mismatch(v, t)
		},
	}
}

// as marks an own codec as one that the loops know.
func (o ownCodec) as(op op) ownCodec {
	o.op = op
	return o
}

// withNumbers marks an own codec as dynamic.
func (o ownCodec) withNumbers() ownCodec {
	o.dynamic = true
	return o
}

// ownTypes are the types whose meaning does not follow from their kind.
var ownTypes map[reflect.Type]ownCodec

func init() { // not a variable's initialiser: the functions refer to the table by way of codecOf
	ownTypes = map[reflect.Type]ownCodec{
		reflect.TypeFor[D]():             own(encodeD, decodeIntoD).withNumbers(),
		reflect.TypeFor[M]():             own(encodeM, decodeIntoM).withNumbers(),
		reflect.TypeFor[A]():             own(encodeA, decodeIntoA).withNumbers(),
		reflect.TypeFor[Raw]():           own(encodeRaw, decodeRaw),
		reflect.TypeFor[RawArray]():      own(encodeRawArray, decodeRawArray),
		reflect.TypeFor[RawValue]():      own(encodeRawValue, decodeRawValue),
		reflect.TypeFor[ObjectID]():      own(encodeObjectID, decodeObjectID).as(opObjectID),
		reflect.TypeFor[UUID]():          own(encodeUUID, decodeUUID),
		reflect.TypeFor[DateTime]():      own(encodeDateTime, decodeDateTime).as(opDateTime),
		reflect.TypeFor[Timestamp]():     own(encodeTimestamp, decodeTimestamp),
		reflect.TypeFor[Decimal128]():    own(encodeDecimal, decodeDecimal),
		reflect.TypeFor[Binary]():        own(encodeBinary, decodeBinary),
		reflect.TypeFor[Vector]():        own(encodeVector, decodeVector),
		reflect.TypeFor[Regex]():         own(encodeRegex, decodeRegex),
		reflect.TypeFor[JavaScript]():    own(encodeJavaScript, decodeJavaScript),
		reflect.TypeFor[Symbol]():        own(encodeSymbol, decodeSymbol),
		reflect.TypeFor[CodeWithScope](): own(encodeCodeWithScope, decodeCodeWithScope).withNumbers(),
		reflect.TypeFor[DBPointer]():     own(encodeDBPointer, decodeDBPointer),
		reflect.TypeFor[Undefined]():     own(encodeUndefined, decodeMarker[Undefined](TypeUndefined)),
		reflect.TypeFor[Null]():          own(encodeNull, decodeMarker[Null](TypeNull)),
		reflect.TypeFor[MinKey]():        own(encodeMinKey, decodeMarker[MinKey](TypeMinKey)),
		reflect.TypeFor[MaxKey]():        own(encodeMaxKey, decodeMarker[MaxKey](TypeMaxKey)),
		reflect.TypeFor[time.Time]():     own(encodeTime, decodeTime).as(opTime),
		reflect.TypeFor[json.Number]():   own(encodeNumber, decodeNumber).withNumbers(),
		reflect.TypeFor[url.URL]():       own(encodeURL, decodeURL),
	}
}
