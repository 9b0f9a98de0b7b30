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
func validText(b []byte) bool {
	n := len(b)
	if n < 8 {
		for _, c := range b {
			if c >= utf8.RuneSelf {
				return utf8.Valid(b)
			}
		}
		return true
	}
	at := 0
	for ; at <= n-32; at += 32 {
		w := b[at : at+32]
		if (le.Uint64(w)|le.Uint64(w[8:])|le.Uint64(w[16:])|le.Uint64(w[24:]))&highBits != 0 {
			return utf8.Valid(b[at:])
		}
	}
	for ; at <= n-8; at += 8 {
		if le.Uint64(b[at:])&highBits != 0 {
			return utf8.Valid(b[at:])
		}
	}
	// The last eight bytes, some of which have been seen; the text before is ASCII, so that a letter may start at them only.
	return le.Uint64(b[n-8:])&highBits == 0 || utf8.Valid(b[at:])
}

// plainKey reports whether a key is ASCII without NUL. The others need a closer look.
func plainKey(b []byte) bool {
	n := len(b)
	if n < 8 {
		for _, c := range b {
			if c-1 >= utf8.RuneSelf-1 {
				return false
			}
		}
		return true
	}
	var bad uint64
	for at := 0; at <= n-8; at += 8 {
		w := le.Uint64(b[at:])
		bad |= w | (w - lowBits)
	}
	w := le.Uint64(b[n-8:])
	return (bad|w|(w-lowBits))&highBits == 0
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
