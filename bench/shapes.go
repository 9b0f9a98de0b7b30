package main

import "time"

// The shapes that the promises were made for. ID is the ObjectID of one package or the other.

// flat has 25 fields, about 500 bytes: what a row of a table looks like.
type flat[ID any] struct {
	ID          ID      `bson:"_id"`
	FirstName   string  `bson:"firstName"`
	LastName    string  `bson:"lastName"`
	Email       string  `bson:"email"`
	Street      string  `bson:"street"`
	City        string  `bson:"city"`
	Description string  `bson:"description"`
	Age         int32   `bson:"age"`
	Level       int32   `bson:"level"`
	Score       int32   `bson:"score"`
	ZipCode     int32   `bson:"zipCode"`
	Status      int32   `bson:"status"`
	Created     int64   `bson:"created"`
	Updated     int64   `bson:"updated"`
	Balance     int64   `bson:"balance"`
	Visits      int64   `bson:"visits"`
	Version     int64   `bson:"version"`
	Lat         float64 `bson:"lat"`
	Lng         float64 `bson:"lng"`
	Ratio       float64 `bson:"ratio"`
	Weight      float64 `bson:"weight"`
	Active      bool    `bson:"active"`
	Verified    bool    `bson:"verified"`
	Admin       bool    `bson:"admin"`
	Deleted     bool    `bson:"deleted"`
}

type point struct {
	Lat float64 `bson:"lat"`
	Lng float64 `bson:"lng"`
}

type address struct {
	Street string `bson:"street"`
	City   string `bson:"city"`
	Zip    string `bson:"zip"`
	Loc    point  `bson:"loc"`
}

type item[ID any] struct {
	SKU   string    `bson:"sku"`
	Qty   int32     `bson:"qty"`
	Price float64   `bson:"price"`
	Added time.Time `bson:"added"`
	Ref   ID        `bson:"ref"`
}

// nested has slices, maps, a pointer, bytes and twelve documents inside, about 1,700 bytes: what an order looks like.
type nested[ID any] struct {
	ID      ID                `bson:"_id"`
	Name    string            `bson:"name"`
	Created time.Time         `bson:"created"`
	Tags    []string          `bson:"tags"`
	Scores  []float64         `bson:"scores"`
	Attrs   map[string]string `bson:"attrs"`
	Counts  map[string]int64  `bson:"counts"`
	Address address           `bson:"address"`
	Items   []item[ID]        `bson:"items"`
	Parent  *ID               `bson:"parent"`
	Blob    []byte            `bson:"blob"`
	Active  bool              `bson:"active"`
	Opt     *int64            `bson:"opt,omitempty"`
}

func newFlat[ID ~[12]byte](n byte) *flat[ID] {
	return &flat[ID]{
		ID: ID{11: n}, FirstName: "Wilhelm", LastName: "Mustermannov", Email: "wilhelm.m@example.org", Street: "Unter den Linden 123",
		City: "Wiesbaden", Description: "somebody whose description has eighty letters, as descriptions of people often do",
		Age: 41, Level: 7, Score: 123456, ZipCode: 90210, Status: 3,
		Created: 1700000000000, Updated: 1700000001234, Balance: 987654321012, Visits: 4242, Version: 17,
		Lat: 12.5, Lng: -77.125, Ratio: 0.3333, Weight: 71.5, Active: true, Verified: true,
	}
}

func newNested[ID ~[12]byte]() *nested[ID] {
	at := time.UnixMilli(1700000000123).UTC()
	n := &nested[ID]{
		ID: ID{1}, Name: "an order of things", Created: at,
		Attrs: map[string]string{}, Counts: map[string]int64{},
		Address: address{"Unter den Linden 123", "Wiesbaden", "12345", point{12.5, -77.1}},
		Parent:  &ID{2}, Blob: make([]byte, 64), Active: true,
	}
	for i := range 8 {
		n.Tags = append(n.Tags, "tag-"+string(rune('a'+i))+"xyz")
		n.Scores = append(n.Scores, float64(i)*0.37)
	}
	for i := range 6 {
		n.Attrs["attr-"+string(rune('a'+i))] = "a value of 12"
		n.Counts["count"+string(rune('a'+i))] = int64(i) << 40
	}
	for i := range 10 {
		n.Items = append(n.Items, item[ID]{"sku-12345678", int32(i + 1000), float64(i) * 1.7, at, ID{byte(i)}})
	}
	return n
}
