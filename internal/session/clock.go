package session

import "github.com/sextantdb/sextant/bson"

// Clock keeps the highest cluster time seen, as the whole $clusterTime document with its signature. The zero value has
// seen none. Invariant: raw is a copy of the Clock's own, so that a reply's buffer may be used again.
type Clock struct {
	time uint64
	raw  []byte
}

// Advance takes a reply's $clusterTime document if it is later than what is known, and says whether it was.
// A document without a timestamp, or with a signature that is none, or a malformed one, is passed over.
func (c *Clock) Advance(clusterTime bson.Raw) bool {
	t, i, ok := clusterTime.Lookup("clusterTime").TimestampOK()
	if !ok {
		return false
	}
	if signature := clusterTime.Lookup("signature"); signature.Type != 0 {
		if _, ok := signature.DocumentOK(); !ok {
			return false // other members would refuse every command that carries it
		}
	}
	now := uint64(t)<<32 | uint64(i)
	if now <= c.time || clusterTime.Validate() != nil { // malformed, it would spoil every command from now on
		return false
	}
	c.time = now
	c.raw = append(c.raw[:0], clusterTime...)
	return true
}

// Append appends the element $clusterTime, or nothing when no time is known.
func (c *Clock) Append(dst []byte) []byte {
	if c.time == 0 {
		return dst
	}
	return bson.AppendDocument(dst, "$clusterTime", c.raw)
}

// Time is the highest cluster time seen: seconds and ordinal, 0 and 0 when none is known.
func (c *Clock) Time() (t, i uint32) { return uint32(c.time >> 32), uint32(c.time) }
