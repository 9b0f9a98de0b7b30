package bson

import (
	"errors"
	"fmt"
	"io"
)

// Encoder writes documents one after the other, as mongodump does. NewEncoder makes one.
type Encoder struct {
	w       io.Writer
	options Options
	buf     []byte
}

// NewEncoder returns an Encoder that writes to w, each document with one Write.
func NewEncoder(w io.Writer) *Encoder { return Options{}.NewEncoder(w) }

// NewEncoder is the function NewEncoder with these options.
func (o Options) NewEncoder(w io.Writer) *Encoder { return &Encoder{w: w, options: o} }

// Encode writes v as a document; see Marshal. Nothing is written if v cannot be encoded. A writer that takes less than it
// was given without an error gives io.ErrShortWrite.
func (e *Encoder) Encode(v any) error {
	if e.w == nil {
		return errors.New("bson: the Encoder has no writer: make it with NewEncoder")
	}
	out, err := e.options.Append(e.buf[:0], v)
	if err != nil {
		return err
	}
	if e.buf = out; cap(out) > maxScratch {
		e.buf = nil // one huge document should not stay in memory
	}
	return writeAll(e.w, out)
}

// writeAll writes b with one Write.
func writeAll(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// MaxStreamedDocument is the size of the largest document that a Decoder reads: more than a server stores, and so a sign
// that the bytes are no documents.
const MaxStreamedDocument = 64 << 20

// Decoder reads documents that follow one another. NewDecoder makes one.
type Decoder struct {
	r     io.Reader
	batch *Batch
	buf   []byte
}

// NewDecoder returns a Decoder that reads from r, never beyond the end of a document.
func NewDecoder(r io.Reader) *Decoder { return Options{}.NewDecoder(r) }

// NewDecoder is the function NewDecoder with these options. With StringsAliased each document gets memory of its own, so
// that what is kept of one keeps that one and no other; else neighbouring documents share chunks as those of a Batch do.
func (o Options) NewDecoder(r io.Reader) *Decoder { return &Decoder{r: r, batch: o.NewBatch()} }

// Decode reads the next document into v; see Unmarshal. It returns io.EOF where there is none, and io.ErrUnexpectedEOF
// inside an error where one is cut off. After an error of the reader, or a length that cannot be, the Decoder does not
// know where the next document starts.
func (d *Decoder) Decode(v any) error {
	doc, err := d.next()
	if err != nil {
		return err
	}
	return d.batch.Unmarshal(doc, v)
}

// next reads a document. Its buffer grows with what comes, not with what the length promises.
func (d *Decoder) next() ([]byte, error) {
	if d.r == nil {
		return nil, errors.New("bson: the Decoder has no reader: make it with NewDecoder")
	}
	if d.batch.options.Strings == StringsAliased || cap(d.buf) > maxScratch {
		d.buf = nil
	}
	var err error
	if d.buf, err = d.read(d.buf[:0], 4); err != nil {
		if errors.Is(err, io.EOF) && len(d.buf) == 0 {
			return nil, io.EOF
		}
		return nil, cutOff(err, d.buf, 4)
	}
	n := length(d.buf)
	if n < 5 || n > MaxStreamedDocument {
		return nil, decodeDone(invalid("length prefix %d, which is not from 5 to %d", n, MaxStreamedDocument))
	}
	for len(d.buf) < n && err == nil {
		d.buf, err = d.read(d.buf, min(n-len(d.buf), 64<<10+len(d.buf)))
	}
	if err != nil {
		return nil, cutOff(err, d.buf, n)
	}
	return d.buf, nil
}

func (d *Decoder) read(buf []byte, n int) ([]byte, error) {
	at := len(buf)
	buf = grow(buf, n)
	got, err := io.ReadFull(d.r, buf[at:at+n])
	return buf[:at+got], err
}

func cutOff(err error, got []byte, want int) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return decodeDone(fmt.Errorf("a document is cut off: %d bytes of %d: %w", len(got), want, err))
}
