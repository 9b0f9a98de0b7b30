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
	from := roomOf(b)
	var high uint64
	switch {
	case n >= 16:
		for at := 0; at < n-16; at += 16 {
			high |= from.get64(at) | from.get64(at+8)
		}
		high |= from.get64(n-16) | from.get64(n-8) // the last bytes, some of which the loop may have seen
	case n >= 8:
		high = from.get64(0) | from.get64(n-8)
	case n >= 4:
		high = uint64(from.get32(0) | from.get32(n-4))
	case n > 0:
		high = uint64(b[0] | b[n/2] | b[n-1])
	}
	return high&highBits == 0
}

// putKey copies a key to a place with room for it and reports whether it is ASCII without NUL; the others need a closer
// look. Words are looked at on their way: a processor would have to wait for a look at what it has just written in other
// pieces. Two words that may overlap copy any length between one and two words.
func putKey(to room, at int, key string) bool {
	n := len(key)
	switch {
	case n > 16:
		return putLongKey(to, at, key)
	case n >= 8:
		v, w := word64(key, 0), word64(key, n-8)
		to.put64(at, v)
		to.put64(at+n-8, w)
		return (v|(v-lowBits)|w|(w-lowBits))&highBits == 0
	case n >= 4:
		v, w := word32(key, 0), word32(key, n-4)
		to.put32(at, v)
		to.put32(at+n-4, w)
		both := uint64(v) | uint64(w)<<32
		return (both|(both-lowBits))&highBits == 0
	}
	var bad byte
	for i := range n {
		c := key[i]
		to.put8(at+i, c)
		bad |= c | (c - 1)
	}
	return bad < utf8.RuneSelf
}

// putLongKey is putKey for at least 8 bytes.
func putLongKey(to room, at int, key string) bool {
	last := len(key) - 8
	var bad uint64
	for i := 0; i < last; i += 8 {
		v := word64(key, i)
		to.put64(at+i, v)
		bad |= v | (v - lowBits)
	}
	v := word64(key, last)
	to.put64(at+last, v)
	return (bad|v|(v-lowBits))&highBits == 0
}

// putText copies a text to a place with room for it and reports whether it is UTF-8. It looks at words on their way, as
// putKey does.
func putText(to room, at int, s string) bool {
	n := len(s)
	var high uint64
	switch {
	case n >= 16:
		for i := 0; i < n-16; i += 16 {
			v, w := word64(s, i), word64(s, i+8)
			to.put64(at+i, v)
			to.put64(at+i+8, w)
			high |= v | w
		}
		v, w := word64(s, n-16), word64(s, n-8)
		to.put64(at+n-16, v)
		to.put64(at+n-8, w)
		high |= v | w
	case n >= 8:
		v, w := word64(s, 0), word64(s, n-8)
		to.put64(at, v)
		to.put64(at+n-8, w)
		high = v | w
	case n >= 4:
		v, w := word32(s, 0), word32(s, n-4)
		to.put32(at, v)
		to.put32(at+n-4, w)
		high = uint64(v | w)
	default:
		for i := range n {
			to.put8(at+i, s[i])
			high |= uint64(s[i])
		}
	}
	return high&highBits == 0 || utf8.ValidString(s)
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
	if !putKey(roomOf(dst), n+1, key) {
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
