// Package compress holds the compressors that MongoDB messages can be packed with: snappy, zlib and zstd (specification
// "OP_COMPRESSED"). It knows nothing of messages; both wings use it.
//
// A Codec starts no goroutine and is safe for concurrent use. It belongs to one client, or one member of the embedded set:
// what it keeps for the next use holds channels, which must not leave a bubble of testing/synctest.
package compress

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// ID is the number of a compressor on the wire.
type ID uint8

// The compressors. With Noop a message is packed and not compressed.
const (
	Noop ID = iota
	Snappy
	Zlib
	Zstd
)

var names = [...]string{"noop", "snappy", "zlib", "zstd"}

// String is the name of the compressor in handshakes and connection strings.
func (id ID) String() string {
	if int(id) < len(names) {
		return names[id]
	}
	return fmt.Sprintf("compressor %d", uint8(id))
}

// Names are the compressors that can be negotiated.
func Names() []string { return append([]string(nil), names[1:]...) }

// ByName finds a compressor that can be negotiated.
func ByName(name string) (ID, bool) {
	for id := Snappy; id <= Zstd; id++ {
		if names[id] == name {
			return id, true
		}
	}
	return Noop, false
}

// ErrSize says that packed bytes do not unpack to as many as was declared.
var ErrSize = errors.New("the unpacked size is not the declared one")

// DefaultLevel is the level that zlib chooses itself.
const DefaultLevel = -1

// Codec packs and unpacks. Make one with New.
type Codec struct {
	level        int
	zlibWriters  sync.Pool
	zlibReaders  sync.Pool
	startWriter  sync.Once
	startReader  sync.Once
	zstdWriter   *zstd.Encoder
	zstdReader   *zstd.Decoder
	zstdFailures [2]error // of making the two; impossible with the options given
}

// New makes a Codec whose zlib has a level from -1 (its own choice) to 9.
func New(zlibLevel int) *Codec { return &Codec{level: zlibLevel} }

// zstdWindow bounds the memory of a compression: messages are short.
const zstdWindow = 1 << 20

func (c *Codec) encoder() (*zstd.Encoder, error) {
	c.startWriter.Do(func() {
		c.zstdWriter, c.zstdFailures[0] = zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true))
	})
	return c.zstdWriter, c.zstdFailures[0]
}

func (c *Codec) decoder() (*zstd.Decoder, error) {
	c.startReader.Do(func() {
		c.zstdReader, c.zstdFailures[1] = zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(0))
	})
	return c.zstdReader, c.zstdFailures[1]
}

// Append appends the packed bytes of src to dst. They must not overlap.
func (c *Codec) Append(dst, src []byte, id ID) ([]byte, error) {
	switch id {
	case Noop:
		return append(dst, src...), nil
	case Snappy:
		start := len(dst)
		dst = grown(dst, snappy.MaxEncodedLen(len(src)))
		packed := snappy.Encode(dst[start:cap(dst)], src)
		return dst[:start+len(packed)], nil
	case Zlib:
		return c.appendZlib(dst, src)
	case Zstd:
		w, err := c.encoder()
		if err != nil {
			return nil, err
		}
		return w.EncodeAll(src, dst), nil
	}
	return nil, fmt.Errorf("there is no %v", id)
}

func (c *Codec) appendZlib(dst, src []byte) ([]byte, error) {
	to := &appender{dst}
	w, _ := c.zlibWriters.Get().(*zlib.Writer)
	if w == nil {
		var err error
		if w, err = zlib.NewWriterLevel(to, c.level); err != nil {
			return nil, err
		}
	} else {
		w.Reset(to)
	}
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	c.zlibWriters.Put(w)
	return to.b, nil
}

type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

// grown is dst with room for n more bytes.
func grown(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}
