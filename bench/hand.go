package main

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/sextantdb/sextant/bson"
)

// What somebody would write who has nothing but these two shapes to write and read, and checks nothing: the limit.

var le = binary.LittleEndian

func head(b []byte, t bson.Type, key string) []byte {
	return append(append(append(b, byte(t)), key...), 0)
}

func putString(b []byte, key, s string) []byte {
	b = le.AppendUint32(head(b, bson.TypeString, key), uint32(len(s)+1))
	return append(append(b, s...), 0)
}

func putInt32(b []byte, key string, v int32) []byte {
	return le.AppendUint32(head(b, bson.TypeInt32, key), uint32(v))
}

func put64(b []byte, t bson.Type, key string, v uint64) []byte {
	return le.AppendUint64(head(b, t, key), v)
}

func putFloat(b []byte, key string, v float64) []byte {
	return put64(b, bson.TypeDouble, key, math.Float64bits(v))
}

func putBool(b []byte, key string, v bool) []byte {
	b = head(b, bson.TypeBoolean, key)
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func open(b []byte) ([]byte, int) { return append(b, 0, 0, 0, 0), len(b) }

func shut(b []byte, start int) []byte {
	b = append(b, 0)
	le.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

func handFlat(b []byte, f *flat[bson.ObjectID]) []byte {
	b, start := open(b)
	b = append(head(b, bson.TypeObjectID, "_id"), f.ID[:]...)
	b = putString(b, "firstName", f.FirstName)
	b = putString(b, "lastName", f.LastName)
	b = putString(b, "email", f.Email)
	b = putString(b, "street", f.Street)
	b = putString(b, "city", f.City)
	b = putString(b, "description", f.Description)
	b = putInt32(b, "age", f.Age)
	b = putInt32(b, "level", f.Level)
	b = putInt32(b, "score", f.Score)
	b = putInt32(b, "zipCode", f.ZipCode)
	b = putInt32(b, "status", f.Status)
	b = put64(b, bson.TypeInt64, "created", uint64(f.Created))
	b = put64(b, bson.TypeInt64, "updated", uint64(f.Updated))
	b = put64(b, bson.TypeInt64, "balance", uint64(f.Balance))
	b = put64(b, bson.TypeInt64, "visits", uint64(f.Visits))
	b = put64(b, bson.TypeInt64, "version", uint64(f.Version))
	b = putFloat(b, "lat", f.Lat)
	b = putFloat(b, "lng", f.Lng)
	b = putFloat(b, "ratio", f.Ratio)
	b = putFloat(b, "weight", f.Weight)
	b = putBool(b, "active", f.Active)
	b = putBool(b, "verified", f.Verified)
	b = putBool(b, "admin", f.Admin)
	b = putBool(b, "deleted", f.Deleted)
	return shut(b, start)
}

func handNested(b []byte, v *nested[bson.ObjectID]) []byte {
	b, start := open(b)
	b = append(head(b, bson.TypeObjectID, "_id"), v.ID[:]...)
	b = putString(b, "name", v.Name)
	b = put64(b, bson.TypeDateTime, "created", uint64(v.Created.UnixMilli()))
	b, s := open(head(b, bson.TypeArray, "tags"))
	for i, t := range v.Tags {
		b = putString(b, strconv.Itoa(i), t)
	}
	b = shut(b, s)
	b, s = open(head(b, bson.TypeArray, "scores"))
	for i, t := range v.Scores {
		b = putFloat(b, strconv.Itoa(i), t)
	}
	b = shut(b, s)
	b, s = open(head(b, bson.TypeEmbeddedDocument, "attrs"))
	for k, t := range v.Attrs {
		b = putString(b, k, t)
	}
	b = shut(b, s)
	b, s = open(head(b, bson.TypeEmbeddedDocument, "counts"))
	for k, n := range v.Counts {
		b = put64(b, bson.TypeInt64, k, uint64(n))
	}
	b = shut(b, s)
	b, s = open(head(b, bson.TypeEmbeddedDocument, "address"))
	b = putString(b, "street", v.Address.Street)
	b = putString(b, "city", v.Address.City)
	b = putString(b, "zip", v.Address.Zip)
	b, s2 := open(head(b, bson.TypeEmbeddedDocument, "loc"))
	b = putFloat(b, "lat", v.Address.Loc.Lat)
	b = putFloat(b, "lng", v.Address.Loc.Lng)
	b = shut(shut(b, s2), s)
	b, s = open(head(b, bson.TypeArray, "items"))
	for i := range v.Items {
		it := &v.Items[i]
		b, s2 = open(head(b, bson.TypeEmbeddedDocument, strconv.Itoa(i)))
		b = putString(b, "sku", it.SKU)
		b = putInt32(b, "qty", it.Qty)
		b = putFloat(b, "price", it.Price)
		b = put64(b, bson.TypeDateTime, "added", uint64(it.Added.UnixMilli()))
		b = append(head(b, bson.TypeObjectID, "ref"), it.Ref[:]...)
		b = shut(b, s2)
	}
	b = shut(b, s)
	b = append(head(b, bson.TypeObjectID, "parent"), v.Parent[:]...)
	b = le.AppendUint32(head(b, bson.TypeBinary, "blob"), uint32(len(v.Blob)))
	b = append(append(b, 0), v.Blob...)
	b = putBool(b, "active", v.Active)
	return shut(b, start)
}

// reader takes the fields in the one order that it knows.
type reader struct {
	b   []byte
	at  int
	bad bool
}

var errOrder = errors.New("not in the order of the fields")

// field goes behind an expected header and says whether n bytes follow.
func (r *reader) field(t bson.Type, key string, n int) bool {
	end := r.at + len(key) + 2
	if r.bad || end+n > len(r.b) || r.b[r.at] != byte(t) || string(r.b[r.at+1:end-1]) != key || r.b[end-1] != 0 {
		r.bad = true
		return false
	}
	r.at = end
	return true
}

func (r *reader) text(key string, to *string) {
	if !r.field(bson.TypeString, key, 4) {
		return
	}
	n := int(int32(le.Uint32(r.b[r.at:])))
	if n < 1 || r.at+4+n > len(r.b) {
		r.bad = true
		return
	}
	*to = string(r.b[r.at+4 : r.at+3+n])
	r.at += 4 + n
}

func (r *reader) int32(key string, to *int32) {
	if r.field(bson.TypeInt32, key, 4) {
		*to = int32(le.Uint32(r.b[r.at:]))
		r.at += 4
	}
}

func (r *reader) int64(key string, to *int64) {
	if r.field(bson.TypeInt64, key, 8) {
		*to = int64(le.Uint64(r.b[r.at:]))
		r.at += 8
	}
}

func (r *reader) float(key string, to *float64) {
	if r.field(bson.TypeDouble, key, 8) {
		*to = math.Float64frombits(le.Uint64(r.b[r.at:]))
		r.at += 8
	}
}

func (r *reader) bool(key string, to *bool) {
	if r.field(bson.TypeBoolean, key, 1) {
		*to = r.b[r.at] != 0
		r.at++
	}
}

func handReadFlat(b []byte, f *flat[bson.ObjectID]) error {
	r := reader{b: b, at: 4}
	if r.field(bson.TypeObjectID, "_id", 12) {
		f.ID = bson.ObjectID(b[r.at : r.at+12])
		r.at += 12
	}
	r.text("firstName", &f.FirstName)
	r.text("lastName", &f.LastName)
	r.text("email", &f.Email)
	r.text("street", &f.Street)
	r.text("city", &f.City)
	r.text("description", &f.Description)
	r.int32("age", &f.Age)
	r.int32("level", &f.Level)
	r.int32("score", &f.Score)
	r.int32("zipCode", &f.ZipCode)
	r.int32("status", &f.Status)
	r.int64("created", &f.Created)
	r.int64("updated", &f.Updated)
	r.int64("balance", &f.Balance)
	r.int64("visits", &f.Visits)
	r.int64("version", &f.Version)
	r.float("lat", &f.Lat)
	r.float("lng", &f.Lng)
	r.float("ratio", &f.Ratio)
	r.float("weight", &f.Weight)
	r.bool("active", &f.Active)
	r.bool("verified", &f.Verified)
	r.bool("admin", &f.Admin)
	r.bool("deleted", &f.Deleted)
	if r.bad || r.at != len(b)-1 {
		return errOrder
	}
	return nil
}
