package bson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// MarshalJSON returns a plain JSON object in the order of the elements, for encoding/json: not Extended JSON, which
// MarshalExtJSON gives. A nil D is null.
func (d D) MarshalJSON() ([]byte, error) { return appendJSON(nil, d, 1) }

// appendJSON appends a value as encoding/json has it. It goes into containers itself, to notice those that hold themselves.
func appendJSON(dst []byte, v any, depth int) ([]byte, error) {
	if depth > maxPlainDepth {
		return nil, errDeepJSON
	}
	switch x := v.(type) {
	case D:
		return appendJSONDoc(dst, x, depth)
	case M:
		return appendJSONDoc(dst, byKeys(x), depth)
	case map[string]any:
		return appendJSONDoc(dst, byKeys(x), depth)
	case A:
		return appendJSONArray(dst, x, depth)
	case []any:
		return appendJSONArray(dst, x, depth)
	}
	text, err := json.Marshal(v)
	return append(dst, text...), err
}

// maxPlainDepth is the depth that encoding/json reads.
const maxPlainDepth = 10000

var errDeepJSON = fmt.Errorf("bson: JSON nested deeper than %d", maxPlainDepth)

// jsonUnder adds the key that an error was met under.
func jsonUnder(err error, key string) error {
	if err == errDeepJSON {
		return err // whose path nobody would read
	}
	return encodeUnder(err, key)
}

func appendJSONDoc(dst []byte, d D, depth int) ([]byte, error) {
	if d == nil {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '{')
	for i, e := range d {
		if i > 0 {
			dst = append(dst, ',')
		}
		key, err := json.Marshal(e.Key)
		if err != nil {
			return nil, err
		}
		if dst, err = appendJSON(append(append(dst, key...), ':'), e.Value, depth+1); err != nil {
			return nil, jsonUnder(err, e.Key)
		}
	}
	return append(dst, '}'), nil
}

func appendJSONArray(dst []byte, a []any, depth int) ([]byte, error) {
	if a == nil {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '[')
	for i, v := range a {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendJSON(dst, v, depth+1); err != nil {
			return nil, jsonUnder(err, strconv.Itoa(i))
		}
	}
	return append(dst, ']'), nil
}

// byKeys is the map in the order of its keys; nil stays nil.
func byKeys(m map[string]any) D {
	if m == nil {
		return nil
	}
	d := make(D, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d = append(d, E{k, m[k]})
	}
	return d
}

// UnmarshalJSON reads a plain JSON object, as encoding/json would into an any, but keeps the order: objects become D,
// arrays A, numbers float64. null gives a nil D.
func (d *D) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	v, err := jsonAny(dec, 1)
	if err != nil {
		return err
	}
	switch x := v.(type) {
	case nil:
		*d = nil
	case D:
		*d = x
	default:
		return fmt.Errorf("bson: cannot decode a JSON %T into bson.D", v)
	}
	return nil
}

// jsonAny reads one value from the tokens of dec. encoding/json has checked syntax and depth before it calls UnmarshalJSON,
// but others may call that too.
func jsonAny(dec *json.Decoder, depth int) (any, error) {
	if depth > maxPlainDepth {
		return nil, errDeepJSON
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		d := D{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := jsonAny(dec, depth+1)
			if err != nil {
				return nil, err
			}
			d = append(d, E{key.(string), v})
		}
		_, err = dec.Token()
		return d, err
	case json.Delim('['):
		a := A{}
		for dec.More() {
			v, err := jsonAny(dec, depth+1)
			if err != nil {
				return nil, err
			}
			a = append(a, v)
		}
		_, err = dec.Token()
		return a, err
	}
	return token, nil
}

// MarshalJSON returns the instant as encoding/json writes a time.Time.
func (d DateTime) MarshalJSON() ([]byte, error) { return json.Marshal(d.Time()) }

// UnmarshalJSON reads what encoding/json reads as a time.Time; null leaves the value.
func (d *DateTime) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var t time.Time
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	*d = NewDateTimeFromTime(t)
	return nil
}
