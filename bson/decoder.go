package bson

import "sync"

// decoder is what one decoding, or one Batch, carries along: where strings and boxed scalars go, and stacks for values
// whose number is not known yet.
type decoder struct {
	ps     *plans
	memory StringMemory
	batch  bool // chunks go on from one document to the next

	chunk  []byte // where the next string goes
	chunks int    // how many there have been
	size   int    // of the document: its strings need no more
	filled int    // bytes in the chunks before this one
	expect int    // bytes of text in documents lately
	boxes  boxes
	boxed  int  // the number of the chunk in which the strings of the last box lie
	single bool // strings do not share boxes

	// The document or array that is being decoded into any, and a copy of a part of it that strings are cut from.
	src    []byte
	window string
	winAt  int // where window lies in src

	elems []E   // of the documents being decoded, outer ones first
	items []any // of the arrays being decoded
}

const (
	maxChunk   = 8 << 10 // what one kept string keeps in memory: see StringsInChunks
	maxShare   = 2 << 10 // longer strings do not go into a chunk
	minChunk   = 64
	firstChunk = 512 // of a Batch
)

var decoders = sync.Pool{New: func() any { return new(decoder) }}

func newDecoder(ps *plans, size int) *decoder {
	d := decoders.Get().(*decoder)
	d.start(ps, size)
	return d
}

// start prepares for a document whose strings need no more than size bytes.
func (d *decoder) start(ps *plans, size int) {
	d.ps, d.memory, d.size = ps, ps.opts.Strings, size
	d.single = d.memory == StringsCopied
}

// release forgets all that belongs to the document and gives the decoder back.
func (d *decoder) release() {
	d.endDocument()
	d.chunk = nil
	d.boxes.reset(d.memory == StringsCopied)
	decoders.Put(d)
}

// endDocument forgets the document, and learns how much text there was.
func (d *decoder) endDocument() {
	if used := d.filled + len(d.chunk); used > d.expect {
		d.expect = used
	} else {
		d.expect -= (d.expect - used) / 8
	}
	d.filled = 0
	if d.memory == StringsAliased {
		d.boxes.reset(false) // a box must not keep the bytes of two documents, which may be two batches'
	}
	if d.src != nil {
		d.src, d.window = nil, ""
	}
	if len(d.elems) > 0 || len(d.items) > 0 { // there was an error
		clear(d.elems)
		clear(d.items)
		d.elems, d.items = d.elems[:0], d.items[:0]
	}
}

// keep returns the text of a string, which has been checked.
func (d *decoder) keep(b []byte) string {
	if d.memory == StringsAliased {
		return aliasText(b)
	}
	n := len(d.chunk)
	end := n + len(b)
	if end > cap(d.chunk) || end == n {
		return d.keepElsewhere(b)
	}
	d.chunk = d.chunk[:end]
	to := d.chunk[n:end]
	copy(to, b)
	return aliasText(to)
}

// keepElsewhere is keep where the chunk has no room.
func (d *decoder) keepElsewhere(b []byte) string {
	switch {
	case len(b) == 0:
		return ""
	case d.memory == StringsCopied || len(b) > maxShare:
		return string(b)
	}
	d.newChunk(max(min(d.expect-d.filled-len(d.chunk), d.size), len(b), minChunk))
	return d.keep(b)
}

// stringAt is the string at the start of doc[at:end], which holds at least five bytes, and where it ends: 0 if the string
// does not fit or is not UTF-8.
func (d *decoder) stringAt(doc []byte, at, end int) (text string, next int) {
	n := int(int32(le.Uint32(doc[at:])))
	if n < 1 || n > end-at-4 || doc[at+3+n] != 0 {
		return "", 0
	}
	if text, ok := d.checked(doc[at+4 : at+3+n]); ok {
		return text, at + 4 + n
	}
	return "", 0
}

// checked is keep with the check, which is not ok for what is not UTF-8.
func (d *decoder) checked(b []byte) (text string, ok bool) {
	n := len(d.chunk)
	end := n + len(b)
	if d.memory == StringsAliased || end > cap(d.chunk) || end == n {
		if !validText(b) {
			return "", false
		}
		return d.keep(b), true
	}
	chunk := d.chunk[:end]
	if !putText(roomOf(chunk), n, aliasText(b)) {
		return "", false
	}
	d.chunk = chunk
	return aliasText(chunk[n:]), true
}

// newChunk starts a chunk for about n bytes.
func (d *decoder) newChunk(n int) {
	if d.batch {
		n = max(n, 2*cap(d.chunk), firstChunk) // a batch may be small: a cursor over three documents, say
	}
	d.filled += len(d.chunk)
	d.chunks++
	d.chunk = make([]byte, 0, min(n, maxChunk))
}

// string is checked with an error.
func (d *decoder) string(b []byte) (string, error) {
	if text, ok := d.checked(b); ok {
		return text, nil
	}
	return "", invalid("string %.60q is not UTF-8", b)
}

// text decodes a string, symbol or code.
func (d *decoder) text(v RawValue, t Type) (string, error) {
	b, ok := v.textBytes(t)
	if !ok {
		return "", malformed(v)
	}
	return d.string(b)
}

// key is string for a key.
func (d *decoder) key(b []byte) (string, error) {
	if text, ok := d.checked(b); ok {
		return text, nil
	}
	return "", invalid("key %q is not UTF-8", b)
}
