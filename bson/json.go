package bson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// MarshalJSON returns a plain JSON object in the order of the elements, for encoding/json: not Extended JSON, which
// MarshalExtJSON gives. A nil D is null.
func (d D) MarshalJSON() ([]byte, error) {
	if d == nil {
		return []byte("null"), nil
	}
	out := []byte{'{'}
	for i, e := range d {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(e.Key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(e.Value)
		if err != nil {
			return nil, fmt.Errorf("bson: %s: %w", e.Key, err)
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads a plain JSON object, as encoding/json would into an any, but keeps the order: objects become D,
// arrays A, numbers float64. null gives a nil D.
func (d *D) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	v, err := jsonAny(dec)
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

// jsonAny reads one value from the tokens of dec. encoding/json has checked syntax and depth before it calls UnmarshalJSON.
func jsonAny(dec *json.Decoder) (any, error) {
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
			v, err := jsonAny(dec)
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
			v, err := jsonAny(dec)
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
