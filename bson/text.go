package bson

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

var le = binary.LittleEndian

const (
	highBits = 0x8080808080808080 // of each byte of a word
	lowBits  = 0x0101010101010101
)

// validText is utf8.Valid, for texts that are mostly short and mostly ASCII.
func validText(b []byte) bool { return isASCII(b) || utf8.Valid(b) }

func isASCII(b []byte) bool {
	n := len(b)
	if n < 8 {
		return isShortASCII(b)
	}
	high := le.Uint64(b[n-8:]) // the last bytes, some of which the loop may see too
	for ; len(b) >= 16; b = b[16:] {
		high |= le.Uint64(b) | le.Uint64(b[8:])
	}
	if len(b) >= 8 {
		high |= le.Uint64(b)
	}
	return high&highBits == 0
}

// isShortASCII is isASCII for less than eight bytes.
func isShortASCII(b []byte) bool {
	n := len(b)
	switch {
	case n >= 4:
		return (le.Uint32(b)|le.Uint32(b[n-4:]))&uint32(highBits&0xffffffff) == 0
	case n > 0:
		return b[0]|b[n/2]|b[n-1] < utf8.RuneSelf
	}
	return true
}

// putKey copies a key to the start of b and reports whether it is ASCII without NUL; the others need a closer look. Words
// are looked at on their way: a processor would have to wait for a look at what it has just written in other pieces.
func putKey(b []byte, key string) bool {
	from := bytesOf(key)
	n := len(from)
	b = b[:n]
	switch {
	case n > 16:
		copy(b, from)
		return isPlain(from)
	case n >= 8: // two words that may overlap
		v, w := le.Uint64(from), le.Uint64(from[n-8:])
		le.PutUint64(b, v)
		le.PutUint64(b[n-8:], w)
		return (v|(v-lowBits)|w|(w-lowBits))&highBits == 0
	case n >= 4:
		v, w := le.Uint32(from), le.Uint32(from[n-4:])
		le.PutUint32(b, v)
		le.PutUint32(b[n-4:], w)
		both := uint64(v) | uint64(w)<<32
		return (both|(both-lowBits))&highBits == 0
	}
	copy(b, from)
	return isPlain(from)
}

func isPlain(key []byte) bool {
	var bad byte
	for _, c := range key {
		bad |= c | (c - 1)
	}
	return bad < utf8.RuneSelf
}

// putText copies a text to the start of b and reports whether it is UTF-8. Short texts are looked at on their way, as keys.
func putText(b []byte, s string) bool {
	from := bytesOf(s)
	n := len(from)
	b = b[:n]
	switch {
	case n < 8 || n > 32:
		copy(b, from)
		return isASCII(from) || utf8.Valid(from)
	case n > 16:
		v, w := le.Uint64(from), le.Uint64(from[8:])
		x, y := le.Uint64(from[n-16:]), le.Uint64(from[n-8:])
		le.PutUint64(b, v)
		le.PutUint64(b[8:], w)
		le.PutUint64(b[n-16:], x)
		le.PutUint64(b[n-8:], y)
		return (v|w|x|y)&highBits == 0 || utf8.Valid(from)
	}
	v, w := le.Uint64(from), le.Uint64(from[n-8:])
	le.PutUint64(b, v)
	le.PutUint64(b[n-8:], w)
	return (v|w)&highBits == 0 || utf8.Valid(from)
}

// appendKey appends type (zero), key and NUL, or says why the text cannot be a key.
func appendKey(dst []byte, key string) ([]byte, error) {
	n := len(dst)
	end := n + len(key) + 2
	if end > cap(dst) {
		dst = grow(dst, end-n)
	}
	dst = dst[:end]
	dst[n], dst[end-1] = 0, 0
	if !putKey(dst[n+1:], key) {
		if err := checkKey(key); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// checkKey says why a text cannot be a key.
func checkKey(key string) error {
	if strings.IndexByte(key, 0) >= 0 {
		return fmt.Errorf("the key %q holds a NUL byte", key)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("the key %q is not UTF-8", key)
	}
	return nil
}
