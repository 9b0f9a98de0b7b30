package bson

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The readers of the wrapper objects: kids are the values of the wrapper's keys, in the order of the table wrappers.

func textWrapper(t Type) func(*extReader, []byte, []jsonNode, int) ([]byte, Type, error) {
	return func(_ *extReader, dst []byte, kids []jsonNode, _ int) ([]byte, Type, error) {
		s, err := kids[0].str(t.String())
		return appendStringPayload(dst, s), t, err
	}
}

func oneWrapper(t Type) func(*extReader, []byte, []jsonNode, int) ([]byte, Type, error) {
	return func(_ *extReader, dst []byte, kids []jsonNode, _ int) ([]byte, Type, error) {
		if kids[0].kind != '0' || kids[0].text != "1" {
			return dst, 0, fmt.Errorf("%v needs the number 1, not %s", t, kids[0].describe())
		}
		return dst, t, nil
	}
}

func (r *extReader) undefined(dst []byte, kids []jsonNode, _ int) ([]byte, Type, error) {
	if kids[0].kind != 't' {
		return dst, 0, fmt.Errorf("$undefined needs true, not %s", kids[0].describe())
	}
	return dst, TypeUndefined, nil
}

func (r *extReader) oid(dst []byte, kids []jsonNode, _ int) ([]byte, Type, error) {
	s, err := kids[0].str("$oid")
	if err != nil {
		return dst, 0, err
	}
	id, err := ObjectIDFromHex(s)
	return append(dst, id[:]...), TypeObjectID, err
}

func (r *extReader) integer(n jsonNode, key string, bits int) (int64, error) {
	s, err := n.str(key)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s needs an integer of %d bits, not %.40q", key, bits, s)
	}
	return x, nil
}

func (r *extReader) numberInt(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	x, err := r.integer(kids[0], "$numberInt", 32)
	if err != nil {
		return dst, 0, err
	}
	return encodeSmall(nil, dst, int32(x), depth)
}

func (r *extReader) numberLong(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	x, err := r.integer(kids[0], "$numberLong", 64)
	if err != nil {
		return dst, 0, err
	}
	return encodeInt64(nil, dst, x, depth)
}

func (r *extReader) numberDouble(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	s, err := kids[0].str("$numberDouble")
	if err != nil {
		return dst, 0, err
	}
	switch s {
	case "NaN":
		return encodeFloat(nil, dst, math.NaN(), depth)
	case "Infinity":
		return encodeFloat(nil, dst, math.Inf(1), depth)
	case "-Infinity":
		return encodeFloat(nil, dst, math.Inf(-1), depth)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789+-.eE") != "" { // ParseFloat takes names and hexadecimal digits too
		return dst, 0, fmt.Errorf("$numberDouble needs a number that a double can hold, not %.40q", s)
	}
	return encodeFloat(nil, dst, f, depth)
}

func (r *extReader) numberDecimal(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	s, err := kids[0].str("$numberDecimal")
	if err != nil {
		return dst, 0, err
	}
	d, err := ParseDecimal128(s)
	if err != nil {
		return dst, 0, err
	}
	return encodeDecimal(nil, dst, d, depth)
}

func (r *extReader) binary(dst []byte, kids []jsonNode, _ int) ([]byte, Type, error) {
	parts, err := kids[0].pick("base64", "subType")
	if err != nil {
		return dst, 0, fmt.Errorf("$binary: %w", err)
	}
	text, err := parts[0].str("base64")
	if err != nil {
		return dst, 0, err
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return dst, 0, fmt.Errorf("$binary: malformed base64: %w", err)
	}
	sub, err := parts[1].str("subType")
	if err != nil {
		return dst, 0, err
	}
	subtype, err := strconv.ParseUint(sub, 16, 8)
	if err != nil || len(sub) > 2 {
		return dst, 0, fmt.Errorf("$binary: subType needs one or two hexadecimal digits, not %.40q", sub)
	}
	return appendBinaryPayload(dst, byte(subtype), data), TypeBinary, nil
}

func (r *extReader) uuid(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	s, err := kids[0].str("$uuid")
	if err != nil {
		return dst, 0, err
	}
	u, err := ParseUUID(s)
	if err != nil {
		return dst, 0, err
	}
	return encodeUUID(nil, dst, u, depth)
}

func (r *extReader) codeWithScope(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	code, err := kids[0].str("$code")
	if err != nil {
		return dst, 0, err
	}
	if kids[1].kind != '{' {
		return dst, 0, fmt.Errorf("$scope needs a document, not %s", kids[1].describe())
	}
	start := len(dst)
	dst, err = r.document(appendStringPayload(append(dst, 0, 0, 0, 0), code), kids[1], depth)
	if err != nil {
		return dst, 0, decodeUnder(err, "$scope")
	}
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst, TypeCodeWithScope, nil
}

func (r *extReader) timestamp(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	parts, err := kids[0].pick("t", "i")
	if err != nil {
		return dst, 0, fmt.Errorf("$timestamp: %w", err)
	}
	var n [2]uint32
	for i, p := range parts {
		x, err := strconv.ParseUint(p.text, 10, 32)
		if p.kind != '0' || err != nil {
			return dst, 0, fmt.Errorf("$timestamp needs whole numbers of 32 bits, not %s", p.describe())
		}
		n[i] = uint32(x)
	}
	return encodeTimestamp(nil, dst, Timestamp{n[0], n[1]}, depth)
}

func (r *extReader) regex(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	parts, err := kids[0].pick("pattern", "options")
	if err != nil {
		return dst, 0, fmt.Errorf("$regularExpression: %w", err)
	}
	pattern, err := parts[0].str("pattern")
	if err != nil {
		return dst, 0, err
	}
	options, err := parts[1].str("options")
	if err != nil {
		return dst, 0, err
	}
	return encodeRegex(nil, dst, Regex{pattern, options}, depth)
}

func (r *extReader) dbPointer(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	parts, err := kids[0].pick("$ref", "$id")
	if err != nil {
		return dst, 0, fmt.Errorf("$dbPointer: %w", err)
	}
	ns, err := parts[0].str("$ref")
	if err != nil {
		return dst, 0, err
	}
	id, err := parts[1].pick("$oid")
	if err != nil {
		return dst, 0, fmt.Errorf("$dbPointer: %w", err)
	}
	dst, _, err = r.oid(appendStringPayload(dst, ns), id, depth)
	return dst, TypeDBPointer, err
}

// date takes {"$numberLong": "..."}, and in relaxed text the RFC 3339 form with any offset.
func (r *extReader) date(dst []byte, kids []jsonNode, depth int) ([]byte, Type, error) {
	if kids[0].kind != '"' || r.canonicalOnly {
		inner, err := kids[0].pick("$numberLong")
		if err != nil {
			return dst, 0, fmt.Errorf("$date: %w", err)
		}
		ms, err := r.integer(inner[0], "$numberLong", 64)
		if err != nil {
			return dst, 0, err
		}
		return encodeDateTime(nil, dst, DateTime(ms), depth)
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700"} {
		if t, err := time.Parse(layout, kids[0].text); err == nil {
			return encodeTime(nil, dst, t, depth)
		}
	}
	return dst, 0, fmt.Errorf("$date needs a date such as 2006-01-02T15:04:05.000Z, not %.40q", kids[0].text)
}
