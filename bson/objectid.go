package bson

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrInvalidHex is returned for text that is not the 24 hexadecimal digits of an ObjectID.
var ErrInvalidHex = errors.New("bson: the text is not a valid ObjectID of 24 hexadecimal digits")

// ObjectID is 12 bytes: seconds since the epoch (4, big endian), a random number chosen once a process (5), a counter
// that starts at a random value (3, big endian).
type ObjectID [12]byte

// NilObjectID is the zero ObjectID.
var NilObjectID ObjectID

// objectIDs makes ids. Its counter may be raced for by any number of goroutines.
type objectIDs struct {
	process [5]byte
	counter atomic.Uint32
}

func newObjectIDs() *objectIDs {
	var seed [8]byte
	rand.Read(seed[:]) // never fails: crypto/rand crashes the program where the system has no randomness
	g := &objectIDs{process: [5]byte(seed[:5])}
	g.counter.Store(uint32(seed[5])<<16 | uint32(seed[6])<<8 | uint32(seed[7]))
	return g
}

func (g *objectIDs) at(t time.Time) ObjectID {
	var id ObjectID
	binary.BigEndian.PutUint32(id[:4], uint32(t.Unix()))
	copy(id[4:9], g.process[:])
	// Only the low 24 bits are used, so that the counter wraps from 0xFFFFFF to 0 as the specification demands.
	n := g.counter.Add(1)
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}

var processIDs = newObjectIDs()

// NewObjectID returns an id that no other call in any process will return.
func NewObjectID() ObjectID { return processIDs.at(time.Now()) }

// NewObjectIDFromTimestamp returns a new id whose time is t.
func NewObjectIDFromTimestamp(t time.Time) ObjectID { return processIDs.at(t) }

// ObjectIDFromHex reads 24 hexadecimal digits. The error wraps ErrInvalidHex.
func ObjectIDFromHex(s string) (ObjectID, error) {
	var id ObjectID
	if len(s) != 24 {
		return NilObjectID, fmt.Errorf("%w: %d characters", ErrInvalidHex, len(s))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return NilObjectID, fmt.Errorf("%w: %v", ErrInvalidHex, err)
	}
	return id, nil
}

// Timestamp returns the time in the id, in UTC, to the second.
func (id ObjectID) Timestamp() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(id[:4])), 0).UTC()
}

// Hex returns the 24 hexadecimal digits.
func (id ObjectID) Hex() string { return hex.EncodeToString(id[:]) }

// String returns ObjectID("...").
func (id ObjectID) String() string { return `ObjectID("` + id.Hex() + `")` }

// IsZero reports whether the id is NilObjectID.
func (id ObjectID) IsZero() bool { return id == NilObjectID }

// MarshalText returns the hexadecimal digits.
func (id ObjectID) MarshalText() ([]byte, error) { return []byte(id.Hex()), nil }

// UnmarshalText reads the hexadecimal digits.
func (id *ObjectID) UnmarshalText(b []byte) error {
	x, err := ObjectIDFromHex(string(b))
	if err == nil {
		*id = x
	}
	return err
}

// MarshalJSON returns the hexadecimal digits as a JSON string.
func (id ObjectID) MarshalJSON() ([]byte, error) { return json.Marshal(id.Hex()) }

// UnmarshalJSON reads a JSON string of hexadecimal digits, {"$oid": "..."}, null or "" (the latter two leave the id).
func (id *ObjectID) UnmarshalJSON(b []byte) error {
	var s string
	if string(b) == "null" {
		return nil
	}
	if err := json.Unmarshal(b, &s); err != nil {
		var ext struct {
			OID *string `json:"$oid"`
		}
		if json.Unmarshal(b, &ext) != nil || ext.OID == nil {
			return fmt.Errorf("%w: JSON is neither a string nor {\"$oid\": string}", ErrInvalidHex)
		}
		s = *ext.OID
	}
	if s == "" {
		return nil
	}
	return id.UnmarshalText([]byte(s))
}
