package bson

import (
	"fmt"
	"slices"
)

// UUIDRepresentation says how the bytes of a UUID are stored. There are five because drivers did it differently before
// subtype 4; see the UUID specification. A UUID is written as UUIDStandard and read from that alone: what is stored in
// another way is read as a Binary, and converted by who knows which driver wrote it.
type UUIDRepresentation uint8

const (
	UUIDUnspecified  UUIDRepresentation = iota // none: an error wherever it is used
	UUIDStandard                               // subtype 4, the bytes in the order of RFC 4122
	UUIDCSharpLegacy                           // subtype 3, bytes 0-3, 4-5 and 6-7 each reversed
	UUIDJavaLegacy                             // subtype 3, bytes 0-7 and 8-15 each reversed
	UUIDPythonLegacy                           // subtype 3, the bytes in the order of RFC 4122
)

func (r UUIDRepresentation) String() string {
	names := []string{"unspecified", "standard", "csharpLegacy", "javaLegacy", "pythonLegacy"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("UUIDRepresentation(%d)", uint8(r))
}

// subtype is that of the binary, and an error where there is none.
func (r UUIDRepresentation) subtype() (byte, error) {
	switch r {
	case UUIDStandard:
		return TypeBinaryUUID, nil
	case UUIDCSharpLegacy, UUIDJavaLegacy, UUIDPythonLegacy:
		return TypeBinaryUUIDOld, nil
	}
	return 0, fmt.Errorf("bson: the UUID representation %v does not say how the bytes are stored", r)
}

// reorder turns the order of RFC 4122 into that of the representation, and back.
func (r UUIDRepresentation) reorder(u UUID) UUID {
	switch r {
	case UUIDCSharpLegacy:
		slices.Reverse(u[0:4])
		slices.Reverse(u[4:6])
		slices.Reverse(u[6:8])
	case UUIDJavaLegacy:
		slices.Reverse(u[0:8])
		slices.Reverse(u[8:16])
	}
	return u
}

// Binary returns the UUID as binary of subtype 4.
func (u UUID) Binary() Binary { return Binary{TypeBinaryUUID, u[:]} }

// BinaryAs returns the UUID as another driver would have stored it. UUIDUnspecified is an error.
func (u UUID) BinaryAs(r UUIDRepresentation) (Binary, error) {
	subtype, err := r.subtype()
	if err != nil {
		return Binary{}, err
	}
	u = r.reorder(u)
	return Binary{subtype, u[:]}, nil
}

// UUID returns the UUID that a binary of subtype 4 holds. Another subtype is an error.
func (b Binary) UUID() (UUID, error) { return b.UUIDAs(UUIDStandard) }

// UUIDAs returns the UUID that a binary holds, stored in the way that r says. A subtype that is not that of r is an error.
func (b Binary) UUIDAs(r UUIDRepresentation) (UUID, error) {
	subtype, err := r.subtype()
	switch {
	case err != nil:
		return UUID{}, err
	case b.Subtype != subtype:
		return UUID{}, fmt.Errorf("bson: binary of subtype %d is no UUID in the representation %v, which has subtype %d", b.Subtype, r, subtype)
	case len(b.Data) != 16:
		return UUID{}, fmt.Errorf("bson: a UUID has 16 bytes, this binary %d", len(b.Data))
	}
	return r.reorder(UUID(b.Data)), nil
}
