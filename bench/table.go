package main

import (
	"errors"

	"github.com/sextantdb/sextant/bson"
	official "go.mongodb.org/mongo-driver/v2/bson"
)

type (
	ourFlat     = flat[bson.ObjectID]
	theirFlat   = flat[official.ObjectID]
	ourNested   = nested[bson.ObjectID]
	theirNested = nested[official.ObjectID]
)

// allGroups is the table of promises with the work behind each.
func allGroups() ([]group, error) {
	f, n := newFlat[bson.ObjectID](1), newNested[bson.ObjectID]()
	of, on := newFlat[official.ObjectID](1), newNested[official.ObjectID]()
	flatBytes, err := bson.Marshal(f)
	nestedBytes, err2 := bson.Marshal(n)
	if err := errors.Join(err, err2, same(f, of), same(n, on), handReadFlat(flatBytes, new(ourFlat))); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, 1<<16)
	groups := []group{
		{"encode struct flat", append(encoding(f, of), candidate{"hand", loop(func() { sink = handFlat(buf, f) })}), []promise{
			{candidate: "append", floor: 10, aim: 12, hand: 2.6, aimed: 2, noAllocs: true},
			{candidate: "marshal", floor: 5, aim: 6, allocs: 1}}},
		{"encode struct nested", append(encoding(n, on), candidate{"hand", loop(func() { sink = handNested(buf, n) })}), []promise{
			{candidate: "append", floor: 12.5, aim: 15, hand: 2.6, aimed: 2, noAllocs: true},
			{candidate: "marshal", floor: 9, aim: 10, allocs: 1}}},
		{"decode struct flat", append(decoding[ourFlat, theirFlat](flatBytes),
			candidate{"hand", loop(func() { must(handReadFlat(flatBytes, new(ourFlat))) })}), []promise{
			{candidate: "decode", floor: 8, aim: 10, hand: 1.4, aimed: 1.15, allocs: 2},
			{candidate: "aliasing", floor: 13, aim: 17}}},
		{"decode struct nested", decoding[ourNested, theirNested](nestedBytes), []promise{
			{candidate: "decode", floor: 6.2, aim: 8, allocs: 11}}},
	}
	dynamic, err := dynamicGroups(flatBytes)
	if err != nil {
		return nil, err
	}
	spec, err := specGroups()
	return append(append(groups, dynamic...), spec...), err
}

// dynamicGroups are the promises for D and M, on the flat shape.
func dynamicGroups(data []byte) ([]group, error) {
	var d bson.D
	var m bson.M
	var od official.D
	var om official.M
	if err := errors.Join(bson.Unmarshal(data, &d), bson.Unmarshal(data, &m), official.Unmarshal(data, &od), official.Unmarshal(data, &om)); err != nil {
		return nil, err
	}
	return []group{
		{"encode D flat", encoding(d, od), []promise{{candidate: "append", floor: 6, aim: 7.5, noAllocs: true}}},
		{"encode M flat", encoding(m, om), []promise{{candidate: "append", floor: 7.3, aim: 9, noAllocs: true}}},
		{"decode D flat", decoding[bson.D, official.D](data), []promise{{candidate: "decode", floor: 5.5, aim: 7, allocs: 5}}},
		{"decode M flat", decoding[bson.M, official.M](data), []promise{{candidate: "decode", floor: 6, aim: 7.5, allocs: 7}}},
	}, errors.Join(same(d, od), same(m, om))
}

// specGroups are the promises for the documents of the specification "benchmarking".
func specGroups() ([]group, error) {
	var out []group
	for _, name := range []string{"flat", "deep", "full"} {
		text, err := corpusFile("extended_bson", name+"_bson.json")
		if err != nil {
			return nil, err
		}
		var d bson.D
		var od official.D
		if err := errors.Join(bson.UnmarshalExtJSON(text, false, &d), official.UnmarshalExtJSON(text, false, &od), same(d, od)); err != nil {
			return nil, err
		}
		data, err := bson.Marshal(d)
		if err != nil {
			return nil, err
		}
		out = append(out,
			group{"encode spec " + name + " as D", encoding(d, od), []promise{{candidate: "append", floor: 5, aim: 8}}},
			group{"decode spec " + name + " as D", decoding[bson.D, official.D](data), []promise{{candidate: "decode", floor: 4, aim: 6}}})
	}
	return out, nil
}
