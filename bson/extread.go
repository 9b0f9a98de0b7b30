package bson

import (
	"fmt"
	"strconv"
	"strings"
)

// extReader turns JSON into BSON, wrapper objects into the types that they stand for.
type extReader struct {
	canonicalOnly bool
}

// document appends an object as a document, whatever its keys.
func (r *extReader) document(dst []byte, n jsonNode, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for i, key := range n.keys {
		if err := checkKey(key); err != nil {
			return dst, err
		}
		at := len(dst)
		out, t, err := r.value(AppendHeader(dst, 0, key), n.kids[i], depth+1)
		if err != nil {
			return dst, decodeUnder(err, key)
		}
		dst = out
		dst[at] = byte(t)
	}
	return EndDocument(dst, start), nil
}

func (r *extReader) array(dst []byte, n jsonNode, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, tooDeep()
	}
	dst, start := BeginDocument(dst)
	for i := range n.kids {
		at := len(dst)
		out, t, err := r.value(appendIndex(dst, i), n.kids[i], depth+1)
		if err != nil {
			return dst, decodeUnder(err, strconv.Itoa(i))
		}
		dst = out
		dst[at] = byte(t)
	}
	return EndDocument(dst, start), nil
}

// value appends the payload of any JSON value and returns its type.
func (r *extReader) value(dst []byte, n jsonNode, depth int) ([]byte, Type, error) {
	switch n.kind {
	case '{':
		return r.object(dst, n, depth)
	case '[':
		dst, err := r.array(dst, n, depth)
		return dst, TypeArray, err
	case '"':
		return appendStringPayload(dst, n.text), TypeString, nil
	case '0':
		return r.number(dst, n.text)
	case 't', 'f':
		return encodeBool(nil, dst, n.kind == 't', depth)
	}
	return dst, TypeNull, nil
}

// number takes a JSON number as the smallest type that holds it: int32, int64, double.
func (r *extReader) number(dst []byte, text string) ([]byte, Type, error) {
	if r.canonicalOnly {
		return dst, 0, fmt.Errorf("the number %.40s is not canonical Extended JSON", text)
	}
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return encodeMinSize(nil, dst, n, 0)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return dst, 0, fmt.Errorf("the number %.40s is out of range", text)
	}
	return encodeFloat(nil, dst, f, 0)
}

// wrapper describes one kind of wrapper object: the keys that it must have, all of them and no other.
type wrapper struct {
	keys []string
	read func(r *extReader, dst []byte, kids []jsonNode, depth int) ([]byte, Type, error)
}

// wrappers by key: the value is a wrapper's description, for keys in any order.
var wrappers map[string]wrapper

func init() { // not a variable's initialiser: $scope reads documents, and so refers to the table
	wrappers = map[string]wrapper{}
	for _, w := range []wrapper{
		{[]string{"$oid"}, (*extReader).oid},
		{[]string{"$symbol"}, textWrapper(TypeSymbol)},
		{[]string{"$numberInt"}, (*extReader).numberInt},
		{[]string{"$numberLong"}, (*extReader).numberLong},
		{[]string{"$numberDouble"}, (*extReader).numberDouble},
		{[]string{"$numberDecimal"}, (*extReader).numberDecimal},
		{[]string{"$binary"}, (*extReader).binary},
		{[]string{"$uuid"}, (*extReader).uuid},
		{[]string{"$code"}, textWrapper(TypeJavaScript)},
		{[]string{"$timestamp"}, (*extReader).timestamp},
		{[]string{"$regularExpression"}, (*extReader).regex},
		{[]string{"$dbPointer"}, (*extReader).dbPointer},
		{[]string{"$date"}, (*extReader).date},
		{[]string{"$minKey"}, oneWrapper(TypeMinKey)},
		{[]string{"$maxKey"}, oneWrapper(TypeMaxKey)},
		{[]string{"$undefined"}, (*extReader).undefined},
	} {
		wrappers[w.keys[0]] = w
	}
	wrappers["$scope"] = wrapper{[]string{"$code", "$scope"}, (*extReader).codeWithScope}
}

// object appends what an object below the top stands for: the value of a wrapper, else a document.
func (r *extReader) object(dst []byte, n jsonNode, depth int) ([]byte, Type, error) {
	var w wrapper
	for _, key := range n.keys {
		// $scope comes with $code, so that the wrapper of more keys is the one that is meant.
		if x, ok := wrappers[key]; ok && len(x.keys) > len(w.keys) {
			w = x
		}
	}
	if w.keys == nil {
		dst, err := r.document(dst, n, depth)
		return dst, TypeEmbeddedDocument, err
	}
	kids, err := n.pick(w.keys...)
	if err != nil {
		return dst, 0, err
	}
	return w.read(r, dst, kids, depth)
}

// pick returns the values of exactly these keys, in their order.
func (n jsonNode) pick(keys ...string) ([]jsonNode, error) {
	if n.kind != '{' {
		return nil, fmt.Errorf("%s where an object with %s should be", n.describe(), strings.Join(keys, " and "))
	}
	kids := make([]jsonNode, len(keys))
	for i, key := range keys {
		for j, k := range n.keys {
			if k == key {
				kids[i] = n.kids[j]
			}
		}
		if kids[i].kind == 0 {
			return nil, fmt.Errorf("%s is missing in an object with %s", key, strings.Join(n.keys, ", "))
		}
	}
	if len(n.keys) != len(keys) {
		return nil, fmt.Errorf("an object with %s must have no other keys, this one has %.100s", strings.Join(keys, " and "), strings.Join(n.keys, ", "))
	}
	return kids, nil
}

func (n jsonNode) describe() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return fmt.Sprintf("the string %.40q", n.text)
	case '0':
		return fmt.Sprintf("the number %.40s", n.text)
	case 'n':
		return "null"
	}
	return "a boolean"
}

// str returns the content of a string.
func (n jsonNode) str(key string) (string, error) {
	if n.kind != '"' {
		return "", fmt.Errorf("%s needs a string, not %s", key, n.describe())
	}
	return n.text, nil
}
