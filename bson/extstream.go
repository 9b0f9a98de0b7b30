package bson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// ExtJSONEncoder writes Extended JSON values one after the other, each on a line of its own or indented.
// NewExtJSONEncoder makes one.
type ExtJSONEncoder struct {
	w              io.Writer
	writer         extWriter
	prefix, indent string
	options        Options
}

// NewExtJSONEncoder returns an encoder that writes to w; see MarshalExtJSON.
func NewExtJSONEncoder(w io.Writer, canonical, escapeHTML bool) *ExtJSONEncoder {
	return &ExtJSONEncoder{w: w, writer: extWriter{canonical: canonical, escapeHTML: escapeHTML}}
}

// SetIndent puts each key and value on a line of its own, as json.Encoder does; two empty strings undo that.
func (e *ExtJSONEncoder) SetIndent(prefix, indent string) { e.prefix, e.indent = prefix, indent }

// SetOptions sets how Go values become BSON.
func (e *ExtJSONEncoder) SetOptions(o Options) { e.options = o }

// Encode writes v, anything that ValueOf takes, and a line's end. A writer that takes less than it was given without an
// error gives io.ErrShortWrite.
func (e *ExtJSONEncoder) Encode(v any) error {
	if e.w == nil {
		return errors.New("bson: the ExtJSONEncoder has no writer: make it with NewExtJSONEncoder")
	}
	rv, err := e.options.ValueOf(v)
	if err != nil {
		return err
	}
	out, err := e.writer.value(nil, rv, 1)
	if err != nil {
		return encodeDone(err)
	}
	if e.prefix != "" || e.indent != "" {
		var buf bytes.Buffer
		if err := json.Indent(&buf, out, e.prefix, e.indent); err != nil {
			return err
		}
		out = buf.Bytes()
	}
	return writeAll(e.w, append(out, '\n'))
}

// ExtJSONDecoder reads Extended JSON values that follow one another, with or without blanks between them.
// NewExtJSONDecoder makes one.
type ExtJSONDecoder struct {
	json      *json.Decoder // finds out where a value ends
	canonical bool
	options   Options
}

// NewExtJSONDecoder returns a decoder that reads from r, which it may read beyond the value; see UnmarshalExtJSON.
func NewExtJSONDecoder(r io.Reader, canonical bool) *ExtJSONDecoder {
	d := &ExtJSONDecoder{canonical: canonical}
	if r != nil {
		d.json = json.NewDecoder(r)
	}
	return d
}

// SetOptions sets how BSON becomes Go values.
func (d *ExtJSONDecoder) SetOptions(o Options) { d.options = o }

// Decode reads the next value into v. It returns io.EOF where there is none.
func (d *ExtJSONDecoder) Decode(v any) error {
	if d.json == nil {
		return errors.New("bson: the ExtJSONDecoder has no reader: make it with NewExtJSONDecoder")
	}
	var text json.RawMessage
	if err := d.json.Decode(&text); err != nil {
		if err == io.EOF {
			return err
		}
		return decodeDone(err)
	}
	rv, err := ParseExtJSON(text, d.canonical)
	if err != nil {
		return err
	}
	return d.options.UnmarshalValue(rv, v)
}
