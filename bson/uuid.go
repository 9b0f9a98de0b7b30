package bson

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// UUID is written as binary of subtype 4, the standard byte order, and read from that subtype alone: the legacy
// subtype 3 does not say which of three byte orders it uses, so that it is read as a Binary.
type UUID [16]byte

// NewUUID returns a random UUID (version 4).
func NewUUID() UUID {
	var u UUID
	rand.Read(u[:]) // never fails: crypto/rand crashes the program where the system has no randomness
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// ParseUUID reads 32 hexadecimal digits, with the usual four hyphens or without any.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	digits := s
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		digits = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(digits) == 32 && !strings.Contains(digits, "-") {
		if _, err := hex.Decode(u[:], []byte(digits)); err == nil {
			return u, nil
		}
	}
	return UUID{}, fmt.Errorf("bson: cannot parse %.60q as a UUID", s)
}

// String returns the digits with hyphens.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// IsZero reports whether all bytes are zero.
func (u UUID) IsZero() bool { return u == UUID{} }

// MarshalText returns the digits with hyphens.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads what ParseUUID reads.
func (u *UUID) UnmarshalText(b []byte) error {
	x, err := ParseUUID(string(b))
	if err == nil {
		*u = x
	}
	return err
}
