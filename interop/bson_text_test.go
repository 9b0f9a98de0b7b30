package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	theirs "go.mongodb.org/mongo-driver/v2/bson"
)

// tagged and unusual are used with json tags only: the official package remembers a struct's tags without the option.
type tagged struct {
	A string `json:"jay,omitempty"`
	B string `json:"jot" bson:"bee"`
	C int    `json:"-"`
}

type unusual struct {
	A string `json:",omitempty"`
	B int64  `json:"b,string,minsize"`
	C sub    `json:",inline"`
	D int    `json:""`
	E int    `json:"e" bson:""`
	F int    `json:"f" xml:"x"`
	G int    `json:"g" bson:"-"`
	H int    `json:"-,"`
	I []int  `json:"i,omitzero" bson:",omitempty"`
}

func TestBothPackagesTakeJSONTags(t *testing.T) {
	o := bson.Options{UseJSONStructTags: true}
	check := func(v any) []byte {
		got, err := o.Marshal(v)
		var want bytes.Buffer
		enc := theirs.NewEncoder(theirs.NewDocumentWriter(&want))
		enc.UseJSONStructTags()
		theirErr := enc.Encode(v)
		if err != nil || theirErr != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("ours %v %v, theirs %v %v", bson.Raw(got), err, bson.Raw(want.Bytes()), theirErr)
		}
		return got
	}
	decode := func(data []byte, v any) error {
		dec := theirs.NewDecoder(theirs.NewDocumentReader(bytes.NewReader(data)))
		dec.UseJSONStructTags()
		return dec.Decode(v)
	}
	for _, v := range []tagged{{}, {"a", "b", 3}} {
		data := check(v)
		var back, official tagged
		v.C = 0
		if err, theirErr := o.Unmarshal(data, &back), decode(data, &official); err != nil || theirErr != nil || back != v || official != v {
			t.Errorf("%+v comes back as %+v, %v; theirs %+v, %v", v, back, err, official, theirErr)
		}
	}
	for _, v := range []unusual{{}, {"a", 1, sub{X: 2, Y: "y"}, 4, 5, 6, 7, 8, []int{}}} {
		data := check(v)
		var back, official unusual
		if err, theirErr := o.Unmarshal(data, &back), decode(data, &official); err != nil || theirErr != nil || !equal(back, official) {
			t.Errorf("%v: %+v, %v; theirs %+v, %v", bson.Raw(data), back, err, official, theirErr)
		}
	}
}

// listed are texts that may differ: the namespace of a DBPointer, which they do not escape (checkExtJSON), and decimals with
// too many digits, which stand for zero (checkDecimal).
var listed = regexp.MustCompile(`{"\$dbPointer":|{"\$numberDecimal":"-?0`)

var fraction = regexp.MustCompile(`("\$date":"[^"]*\.)(\d\d?)Z"`)

// threeDigits writes fractions of a second as the specification has them: see checkExtJSON.
func threeDigits(text []byte) []byte {
	return fraction.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := fraction.FindSubmatch(found)
		return fmt.Appendf(nil, "%s%s%sZ\"", parts[1], parts[2], "00"[:3-len(parts[2])])
	})
}

// TestBothPackagesWriteTheSameExtendedJSON, byte for byte.
func TestBothPackagesWriteTheSameExtendedJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	compare := func(p pair) {
		t.Helper()
		for bits := range 4 {
			got, err := bson.MarshalExtJSON(p.ours, bits&1 != 0, bits&2 != 0)
			want, theirErr := theirs.MarshalExtJSON(p.theirs, bits&1 != 0, bits&2 != 0)
			want = threeDigits(want)
			if listed.Match(got) && json.Valid(got) {
				continue
			}
			if (err == nil) != (theirErr == nil) || err == nil && !bytes.Equal(got, want) {
				t.Fatalf("%#v, %d\nours   %s %v\ntheirs %s %v", p.ours, bits, got, err, want, theirErr)
			}
		}
	}
	for _, v := range []any{1, int64(5), 1.5, 1e20, 1e21, 1e22, 1e-7, 1e-6, 123456789.0, 0.1, math.Copysign(0, -1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64,
		"a<b>&\u2028\u2029é\x7f\x01\b\f\n\r\t\"\\/\x00", true, nil, []int{1}, map[string]int{"a": 1}} {
		compare(pair{bson.D{{Key: "k<é\x01", Value: v}}, theirs.D{{Key: "k<é\x01", Value: v}}})
	}
	for range 1500 {
		compare(drawPairD(r, 3))
	}
}

// TestBothPackagesReadTheSameExtendedJSON: texts that are good, and some that are not.
func TestBothPackagesReadTheSameExtendedJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	compare := func(text []byte, canonical bool) {
		t.Helper()
		var ours bson.D
		var official theirs.D
		err, theirErr := bson.UnmarshalExtJSON(text, canonical, &ours), safely(func() error { return theirs.UnmarshalExtJSON(text, canonical, &official) })
		if (err == nil) != (theirErr == nil) || err == nil && !equal(ours, ourValue(official)) {
			t.Errorf("%.300s, canonical %v\nours   %v %v\ntheirs %v %v", text, canonical, ours, err, official, theirErr)
		}
	}
	for _, text := range []string{`{}`, `{"a":1}`, `{"a":1.0}`, `{"a":-0}`, `{"a":1e400}`, `{"a":99999999999999999999}`, `{"a":2147483648}`, `{"a":{"$oid":"x"}}`, `{"a":{"$numberInt":1}}`, `{"a":{"$numberLong":5}}`,
		`{"a":{"$numberDouble":1.5}}`, `{"a":{"$date":"2012-01-01"}}`, `{"a":{"$date":"2012-01-01T00:00:00+02:00"}}`, `{"a":{"$date":"2012-01-01T00:00:00.1234567Z"}}`, `{"a":{"$regex":"x","$options":"i"}}`, `{"a":{"$regex":"x"}}`,
		`{"a":{"$binary":{"base64":"AQ==","subType":"0"}}}`, `{"a":{"$binary":{"base64":"AQ","subType":"00"}}}`, `{"a":{"$uuid":"c8edabc3-f738-4ca3-b68d-ab92a91478a3"}}`, `{"a":{"$ref":"c","$id":1}}`, `{"a":{"$ref":1,"$id":1}}`,
		`{"a":{"$dbPointer":{"$ref":"c","$id":{"$oid":"57e193d7a9cc81b4027498b5"}}}}`, `{"a":{"$code":"x","$scope":{"b":1}}}`, `{"a":{"$timestamp":{"i":2,"t":1}}}`, `{"a":{"$timestamp":{"t":-1,"i":2}}}`, `{"a":{"$unknown":1}}`,
		`{"a":{"$undefined":true}}`, `{"a":{"$undefined":false}}`, `{"a":{"$minKey":1}}`, `{"a":{"$minKey":2}}`, `{"a":{"$oid":"57e193d7a9cc81b4027498b5","b":1}}`, `[1]`, `1`, `"x"`, ` {"a" : 1 } `, `{a:1}`, `{'a':1}`, `{"a":NaN}`, `{"a":.5}`,
		`{"a":"\u0000"}`, `{"a":"\ud83d\ude00"}`, `{"a":1,"a":2}`, `{"a":[1,]}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{`, ``, `{"a":{"$symbol":"s"}}`, `{"a":{"$numberInt":"2147483648"}}`, `{"a":{"$numberInt":"1.0"}}`, `{"a":{"$numberDouble":"NaN"}}`,
		`{"a":{"$numberDouble":"1e400"}}`, `{"a":{"$numberDecimal":"1.50"}}`, `{"a":{"$numberDecimal":"x"}}`, strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)} {
		compare([]byte(text), false)
	}
	for range 800 {
		p := drawPairD(r, 3)
		for _, canonical := range []bool{true, false} {
			text, err := bson.MarshalExtJSON(p.ours, canonical, false)
			if err != nil {
				t.Fatal(err)
			}
			compare(text, canonical)
		}
	}
}
