package query

import (
	"testing"
)

type matchCase struct {
	filter, doc string
	want        bool
}

func checkMatches(t *testing.T, cases []matchCase) {
	t.Helper()
	for _, c := range cases {
		f, err := ParseFilter(js(t, c.filter), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		if got := f.Match(js(t, c.doc)); got != c.want {
			t.Errorf("%s on %s: %v, want %v", c.filter, c.doc, got, c.want)
		}
	}
}

func TestNullMatchesMissingButNotAnEmptyArray(t *testing.T) {
	checkMatches(t, []matchCase{
		{`{"a":null}`, `{}`, true},
		{`{"a":null}`, `{"a":null}`, true},
		{`{"a":null}`, `{"a":0}`, false},
		{`{"a":null}`, `{"a":[]}`, false},
		{`{"a":null}`, `{"a":[null]}`, true},
		{`{"a.b":null}`, `{"a":[1]}`, false},
		{`{"a.b":null}`, `{"a":[{"c":1}]}`, true},
		{`{"a.b":null}`, `{"a":1}`, true},
		{`{"a":{"$ne":null}}`, `{}`, false},
		{`{"a":{"$exists":false}}`, `{"a":null}`, false},
		{`{"a":{"$in":[null]}}`, `{}`, true},
	})
}

func TestComparisonStaysWithinOneType(t *testing.T) {
	checkMatches(t, []matchCase{
		{`{"a":{"$gt":1}}`, `{"a":"x"}`, false},
		{`{"a":{"$lt":"b"}}`, `{"a":1}`, false},
		{`{"a":{"$gt":1}}`, `{"a":{"$numberLong":"2"}}`, true},
		{`{"a":1}`, `{"a":{"$numberDecimal":"1.000"}}`, true},
		{`{"_id":"000000000000000000000001"}`, `{"_id":{"$oid":"000000000000000000000001"}}`, false},
		{`{"a":{"$gt":{"$minKey":1}}}`, `{}`, true},
	})
}

func TestDottedPathsWalkArrays(t *testing.T) {
	checkMatches(t, []matchCase{
		{`{"awards.first place":"gold"}`, `{"awards":[{"first place":"gold"}]}`, true},
		{`{"awards.first place":"gold"}`, `{"awards":{"first place":"gold"}}`, true},
		{`{"a.0":1}`, `{"a":[1,2]}`, true},
		{`{"a.1":1}`, `{"a":[1,2]}`, false},
		{`{"a.0.b":1}`, `{"a":[{"b":1}]}`, true},
		{`{"a.b.c":1}`, `{"a":[{"b":[{"c":1}]}]}`, true},
		{`{"a.0":1}`, `{"a":{"0":1}}`, true},
		{`{"a.0":1}`, `{"a":[{"0":1}]}`, true},
		{`{"a.b":1}`, `{"a":[[{"b":1}]]}`, false},
		{`{"a":[1,2]}`, `{"a":[1,2]}`, true},
		{`{"a":[1,2]}`, `{"a":[[1,2],3]}`, true},
	})
}

func TestPositionIsThatOfTheMatchingElement(t *testing.T) {
	for _, c := range []struct {
		filter, doc string
		want        int
	}{
		{`{"a":2}`, `{"a":[1,2,3]}`, 1},
		{`{"a.b":2}`, `{"a":[{"b":1},{"b":[5,2]}]}`, 1},
		{`{"a":{"$elemMatch":{"$gt":2}}}`, `{"a":[1,2,3]}`, 2},
		{`{"a":{"$elemMatch":{"b":2}}}`, `{"a":[{"b":1},{"b":2}]}`, 1},
		{`{"b":1}`, `{"a":[1],"b":1}`, -1},
		{`{"a":{"$not":{"$eq":9}}}`, `{"a":[1,2]}`, -1},
	} {
		f, err := ParseFilter(js(t, c.filter), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if ok, pos := f.MatchPos(js(t, c.doc)); !ok || pos != c.want {
			t.Errorf("%s on %s: %v at %d, want %d", c.filter, c.doc, ok, pos, c.want)
		}
	}
}
