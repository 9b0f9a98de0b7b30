package conformance

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/sextantdb/sextant/bson"
)

// bsonFile is one file of bson-corpus.
type bsonFile struct {
	Type         string       `json:"bson_type"`
	Valid        []bsonValid  `json:"valid"`
	DecodeErrors []bsonBroken `json:"decodeErrors"`
	ParseErrors  []bsonBroken `json:"parseErrors"`
}

type bsonValid struct {
	Description    string
	CanonicalBSON  string  `json:"canonical_bson"`
	CanonicalJSON  string  `json:"canonical_extjson"`
	RelaxedJSON    *string `json:"relaxed_extjson"`
	DegenerateBSON *string `json:"degenerate_bson"`
	DegenerateJSON *string `json:"degenerate_extjson"`
	Lossy          bool
}

type bsonBroken struct{ Description, BSON, String string }

func loadBSON(dir string) ([]Case, error) {
	return load(dir, "", func(stem string, f *bsonFile) (cases []Case) {
		for i, c := range f.Valid {
			cases = append(cases, Case{Name: bsonCase(stem, "valid", i, c.Description), Run: c.run})
		}
		for i, c := range f.DecodeErrors {
			cases = append(cases, Case{Name: bsonCase(stem, "decodeErrors", i, c.Description), Run: c.decode})
		}
		for i, c := range f.ParseErrors {
			cases = append(cases, Case{Name: bsonCase(stem, "parseErrors", i, c.Description), Run: func() error { return c.parse(f.Type == "0x13") }})
		}
		return cases
	})
}

func bsonCase(stem, section string, i int, description string) string {
	return fmt.Sprintf("%s/%s %d: %s", stem, section, i, description)
}

// run makes the assertions for codecs with and without a native representation in between.
func (c bsonValid) run() error {
	canonical, err := hex.DecodeString(c.CanonicalBSON)
	if err != nil {
		return err
	}
	err = c.read("canonical BSON", canonical, canonical)
	if c.DegenerateBSON != nil {
		degenerate, bad := hex.DecodeString(*c.DegenerateBSON)
		err = errors.Join(err, bad, c.read("degenerate BSON", degenerate, canonical))
	}
	err = errors.Join(err, c.parse(c.CanonicalJSON, true, canonical), c.parse(c.CanonicalJSON, false, canonical))
	if c.DegenerateJSON != nil {
		err = errors.Join(err, c.parse(*c.DegenerateJSON, false, canonical))
	}
	if c.RelaxedJSON != nil {
		var d bson.D
		err = errors.Join(err, bson.UnmarshalExtJSON([]byte(*c.RelaxedJSON), false, &d), sameJSON(d, false, *c.RelaxedJSON))
	}
	return err
}

func (c bsonValid) read(name string, data, canonical []byte) error {
	if err := bson.Raw(data).Validate(); err != nil {
		return fmt.Errorf("%s: Validate: %w", name, err)
	}
	var d bson.D
	if err := bson.Unmarshal(data, &d); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	back, err := bson.Marshal(d)
	if err != nil || !bytes.Equal(back, canonical) && !c.Lossy {
		return fmt.Errorf("%s through D: %x, want %x, error %v", name, back, canonical, err)
	}
	for _, v := range []any{d, bson.Raw(data)} {
		err = errors.Join(err, sameJSON(v, true, c.CanonicalJSON))
		if c.RelaxedJSON != nil {
			err = errors.Join(err, sameJSON(v, false, *c.RelaxedJSON))
		}
	}
	return err
}

func (c bsonValid) parse(text string, canonicalOnly bool, want []byte) error {
	v, err := bson.ParseExtJSON([]byte(text), canonicalOnly)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	if !c.Lossy && !bytes.Equal(v.Value, want) {
		return fmt.Errorf("%s is read as %x, want %x", text, v.Value, want)
	}
	return sameJSON(v, true, c.CanonicalJSON)
}

// sameJSON compares what v prints with want, apart from blanks, escapes and the order of keys.
func sameJSON(v any, canonical bool, want string) error {
	wanted, err := plainJSON(want)
	if err != nil {
		return err
	}
	for _, escapeHTML := range []bool{true, false} {
		text, err := bson.MarshalExtJSON(v, canonical, escapeHTML)
		if err != nil {
			return err
		}
		got, err := plainJSON(string(text))
		if err != nil || !reflect.DeepEqual(got, wanted) {
			return fmt.Errorf("%T, canonical %v: got %s, want %s, error %v", v, canonical, text, want, err)
		}
	}
	return nil
}

func plainJSON(text string) (v any, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func (c bsonBroken) decode() error {
	data, err := hex.DecodeString(c.BSON)
	if err != nil {
		return err
	}
	var d bson.D
	var m bson.M
	if bson.Raw(data).Validate() == nil {
		err = errors.New("Validate accepts it")
	}
	if bson.Unmarshal(data, &d) == nil || bson.Unmarshal(data, &m) == nil {
		err = errors.Join(err, errors.New("Unmarshal accepts it"))
	}
	if _, bad := bson.MarshalExtJSON(bson.Raw(data), true, false); bad == nil {
		err = errors.Join(err, errors.New("MarshalExtJSON accepts it"))
	}
	return err
}

func (c bsonBroken) parse(decimal bool) error {
	if decimal {
		if d, err := bson.ParseDecimal128(c.String); err == nil {
			return fmt.Errorf("ParseDecimal128(%q) = %v", c.String, d)
		}
		return nil
	}
	if v, err := bson.ParseExtJSON([]byte(c.String), false); err == nil {
		return fmt.Errorf("%s is read as %v", c.String, v)
	}
	return nil
}

// flipBSON asks for another text of valid documents, and makes broken ones good.
func flipBSON(name string, file map[string]any) (cases []string) {
	for _, section := range []string{"valid", "decodeErrors", "parseErrors"} {
		list, _ := file[section].([]any)
		for i, x := range list {
			c := x.(map[string]any)
			switch section {
			case "valid":
				c["canonical_extjson"] = `{"flipped":true}`
			case "decodeErrors":
				c["bson"] = "0500000000"
			default:
				if c["string"] = "{}"; file["bson_type"] == "0x13" {
					c["string"] = "1"
				}
			}
			cases = append(cases, bsonCase(name, section, i, c["description"].(string)))
		}
	}
	return cases
}

// vectorTest is a case of bson-binary-vector.
type vectorTest struct {
	Description string
	Valid       bool
	Vector      []any
	Type        string  `json:"dtype_hex"`
	Padding     int     `json:"padding"`
	BSON        *string `json:"canonical_bson"`
	key         string
}

func loadVectors(dir string) ([]Case, error) {
	type vectorFile struct {
		Key   string       `json:"test_key"`
		Tests []vectorTest `json:"tests"`
	}
	return load(dir, "", func(name string, f *vectorFile) (cases []Case) {
		for _, c := range f.Tests {
			c.key = f.Key
			cases = append(cases, Case{Name: name + "/" + c.Description, Run: c.run})
		}
		return cases
	})
}

func (c vectorTest) run() error {
	doc, err := c.encode()
	switch {
	case c.Valid && err != nil:
		return err
	case !c.Valid && c.Vector != nil && err == nil:
		return fmt.Errorf("%v with padding %d was encoded", c.Vector, c.Padding)
	case c.BSON == nil:
		return nil
	}
	want, err := hex.DecodeString(*c.BSON)
	if err != nil {
		return err
	}
	var got map[string]bson.Vector
	err = bson.Unmarshal(want, &got)
	if !c.Valid {
		if err == nil {
			return fmt.Errorf("%x was decoded as %v", want, got)
		}
		return nil
	}
	if err != nil || !bytes.Equal(doc, want) {
		return fmt.Errorf("encoded as %x, want %x, error %v", doc, want, err)
	}
	back, err := bson.Marshal(got)
	if err != nil || !bytes.Equal(back, want) {
		return fmt.Errorf("decoded and encoded again %x, want %x, error %v", back, want, err)
	}
	return nil
}

// encode makes the document. What the types of Go do not let a caller say is an error here.
func (c vectorTest) encode() ([]byte, error) {
	v, err := c.vector()
	if err != nil {
		return nil, err
	}
	return bson.Marshal(bson.D{{Key: c.key, Value: v}})
}

func (c vectorTest) vector() (bson.Vector, error) {
	if c.Padding != 0 && c.Type != "0x10" {
		return bson.Vector{}, errors.New("only bits have a padding")
	}
	var floats []float32
	for _, x := range c.Vector {
		switch x := x.(type) {
		case float64:
			floats = append(floats, float32(x))
		case map[string]any:
			var f float32
			if _, err := fmt.Sscan(strings.Replace(x["$numberDouble"].(string), "Infinity", "Inf", 1), &f); err != nil {
				return bson.Vector{}, err
			}
			floats = append(floats, f)
		}
	}
	switch c.Type {
	case "0x27":
		return bson.NewVector(floats), nil
	case "0x03":
		ints, err := whole[int8](floats)
		return bson.NewVector(ints), err
	}
	bits, err := whole[byte](floats)
	if err != nil {
		return bson.Vector{}, err
	}
	if c.Padding != int(uint8(c.Padding)) {
		return bson.Vector{}, fmt.Errorf("padding %d", c.Padding)
	}
	return bson.NewPackedBitVector(bits, uint8(c.Padding))
}

func whole[T int8 | byte](floats []float32) ([]T, error) {
	out := []T{}
	for _, f := range floats {
		if float32(T(int(f))) != f {
			return nil, fmt.Errorf("%v does not fit", f)
		}
		out = append(out, T(int(f)))
	}
	return out, nil
}

func flipVectors(name string, file map[string]any) (cases []string) {
	for _, x := range file["tests"].([]any) {
		c := x.(map[string]any)
		c["valid"] = !c["valid"].(bool)
		cases = append(cases, name+"/"+c["description"].(string))
	}
	return cases
}
