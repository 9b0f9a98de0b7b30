package main

import (
	"fmt"

	"github.com/sextantdb/sextant/bson"
	official "go.mongodb.org/mongo-driver/v2/bson"
)

// sink keeps results from being optimised away.
var sink []byte

func must(err error) {
	if err != nil {
		panic(err) // both sides were seen to work before anything is measured
	}
}

var aliasing = bson.Options{Strings: bson.StringsAliased}

func loop(f func()) func(int) {
	return func(n int) {
		for range n {
			f()
		}
	}
}

// encoding makes the candidates that write ours, and the official package's equal value.
func encoding(ours, theirs any) []candidate {
	buf := make([]byte, 0, 1<<20)
	return []candidate{
		{"official", loop(func() {
			b, err := official.Marshal(theirs)
			must(err)
			sink = b
		})},
		{"append", loop(func() {
			b, err := bson.Append(buf, ours)
			must(err)
			sink = b
		})},
		{"marshal", loop(func() {
			b, err := bson.Marshal(ours)
			must(err)
			sink = b
		})},
	}
}

// decoding makes the candidates that read data into a fresh T, the official package into a fresh O.
func decoding[T, O any](data []byte) []candidate {
	return []candidate{
		{"official", loop(func() { must(official.Unmarshal(data, new(O))) })},
		{"decode", loop(func() { must(bson.Unmarshal(data, new(T))) })},
		{"aliasing", loop(func() { must(aliasing.Unmarshal(data, new(T))) })},
	}
}

// same says whether both packages write the same bytes for equal values; a map's order is left to the caller.
func same(ours, theirs any) error {
	a, err := bson.Marshal(ours)
	if err != nil {
		return err
	}
	b, err := official.Marshal(theirs)
	if err != nil {
		return err
	}
	if len(a) != len(b) {
		return fmt.Errorf("%T: %d bytes, the official package writes %d", ours, len(a), len(b))
	}
	return nil
}
