package compress

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Unpack appends the size bytes that src unpacks to to dst. src may be a stranger's: neither more nor fewer bytes than
// size are accepted, and memory grows with what truly comes, not with what is announced. The error names the compressor.
func (c *Codec) Unpack(dst, src []byte, id ID, size int) ([]byte, error) {
	if size < 0 {
		return nil, fmt.Errorf("%v: %w: %d bytes", id, ErrSize, size)
	}
	var out []byte
	var err error
	switch id {
	case Noop:
		out = append(dst, src...)
	case Snappy:
		out, err = unpackSnappy(dst, src, size)
	case Zlib:
		out, err = c.unpackZlib(dst, src, size)
	case Zstd:
		out, err = c.unpackZstd(dst, src, size)
	default:
		return nil, fmt.Errorf("there is no %v", id)
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", id, err)
	}
	if n := len(out) - len(dst); n != size {
		return nil, fmt.Errorf("%v: %w: %d bytes, not %d", id, ErrSize, n, size)
	}
	return out, nil
}

// snappyMost is a bound on how many bytes one packed byte can unpack to: a copy of 64 bytes takes at least 2.
const snappyMost = 32

func unpackSnappy(dst, src []byte, size int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n != size || n > snappyMost*len(src) {
		return nil, fmt.Errorf("%w: it says %d bytes, the message %d", ErrSize, n, size)
	}
	start := len(dst)
	dst = grown(dst, n)
	out, err := snappy.Decode(dst[start:start+n:start+n], src)
	if err != nil {
		return nil, err
	}
	return dst[:start+len(out)], nil
}

// firstRoom is how much memory a message gets on its word alone: so many bytes, or so many times its packed size.
const (
	firstRoom  = 64 << 10
	firstTimes = 8
)

func room(src []byte, size int) int { return min(size, max(firstRoom, firstTimes*len(src))) }

func (c *Codec) unpackZlib(dst, src []byte, size int) ([]byte, error) {
	r, err := c.zlibReader(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	defer c.zlibReaders.Put(r)
	end := len(dst) + size
	dst = grown(dst, room(src, size))
	for {
		if len(dst) == cap(dst) && len(dst) < end {
			dst = grown(dst, min(len(dst), end-len(dst)))
		}
		var over [1]byte
		space := dst[len(dst):min(cap(dst), end)]
		if len(space) == 0 {
			space = over[:] // one byte more is one too many
		}
		n, err := r.Read(space)
		if n > 0 && len(dst) == end {
			return nil, ErrSize
		}
		dst = dst[:len(dst)+n]
		switch {
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, err
		}
	}
}

func (c *Codec) zlibReader(src io.Reader) (io.ReadCloser, error) {
	r, _ := c.zlibReaders.Get().(io.ReadCloser)
	if r == nil {
		return zlib.NewReader(src)
	}
	if err := r.(zlib.Resetter).Reset(src, nil); err != nil {
		return nil, err
	}
	return r, nil
}

// unpackZstd tries with more and more room.
func (c *Codec) unpackZstd(dst, src []byte, size int) ([]byte, error) {
	r, err := c.decoder()
	if err != nil {
		return nil, err
	}
	for n := room(src, size); ; n = min(4*n, size) {
		to := grown(dst, n)
		out, err := r.DecodeAll(src, to[:len(dst):len(dst)+n])
		if n == size || !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return out, err
		}
	}
}
