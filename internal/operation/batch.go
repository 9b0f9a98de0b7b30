package operation

import (
	"github.com/sextantdb/sextant/mongoerr"
)

// Envelope is what a server allows a command to be larger than the greatest document, so that a document of the
// greatest size fits into an insert.
const Envelope = 16 << 10

// Batch counts how many writes fit into one message. Make one for each message, and Add writes until it is full.
// It is pure.
type Batch struct {
	t     Target
	noun  string // what errors call a write
	extra int    // bytes that one may have beyond the greatest document
	count int
	bytes int // of the message as it will be
}

// NewBatch begins a message to t of which used bytes are written or reserved: header, body, start of the sequence. Its writes
// are documents, or whatever the noun says.
func NewBatch(t Target, used int, noun string) *Batch { return &Batch{t: t, bytes: used, noun: noun} }

// Statements says that the writes are statements of an update or a delete: a document of the greatest size fits into one.
func (b *Batch) Statements() *Batch {
	b.extra = Envelope
	return b
}

// Count is the number of writes in the message.
func (b *Batch) Count() int { return b.count }

// Check is the error of a write that the server would not take in any message; it names index and size.
func (b *Batch) Check(index, size int) error {
	if limit := int(b.t.MaxBSON); limit > 0 && size > limit+b.extra {
		return tooLarge("%s %d has %d bytes; %s takes at most %d", b.noun, index, size, b.t.Addr, limit)
	}
	return nil
}

// Add enters the write number index, of size bytes. It is false if the message is full, and the write begins the next
// one. A write that the server would not take in any message is an error that names index and size.
func (b *Batch) Add(index, size int) (bool, error) {
	if err := b.Check(index, size); err != nil {
		return false, err
	}
	full := b.t.MaxBatch > 0 && b.count >= int(b.t.MaxBatch) ||
		b.t.MaxMessage > 0 && b.bytes+size > int(b.t.MaxMessage)
	if full {
		if b.count == 0 {
			return false, tooLarge("%s %d has %d bytes; with its command it exceeds the message of %d bytes that %s takes",
				b.noun, index, size, b.t.MaxMessage, b.t.Addr)
		}
		return false, nil
	}
	b.count++
	b.bytes += size
	return true, nil
}

// tooLarge is the error of something too large to be sent, with the server's code for it.
func tooLarge(format string, args ...any) *mongoerr.Error {
	e := mongoerr.New(mongoerr.StageEncode, format, args...)
	e.Code, e.CodeName = mongoerr.CodeBSONObjectTooLarge, mongoerr.CodeName(mongoerr.CodeBSONObjectTooLarge)
	return e
}
