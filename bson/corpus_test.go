package bson_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/conformance/corpus"
)

// corpusFile is one file of the official BSON corpus.
type corpusFile struct {
	BSONType     string        `json:"bson_type"`
	Valid        []corpusValid `json:"valid"`
	DecodeErrors []struct {
		Description string
		BSON        string
	} `json:"decodeErrors"`
	ParseErrors []struct {
		Description string
		String      string
	} `json:"parseErrors"`
}

type corpusValid struct {
	Description    string
	CanonicalBSON  string  `json:"canonical_bson"`
	CanonicalJSON  string  `json:"canonical_extjson"`
	RelaxedJSON    *string `json:"relaxed_extjson"`
	DegenerateBSON *string `json:"degenerate_bson"`
	DegenerateJSON *string `json:"degenerate_extjson"`
	Lossy          bool
}

func TestCorpus(t *testing.T) {
	dir := corpus.Need(t, "bson-corpus")
	files, err := corpus.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var f corpusFile
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		cases += len(f.Valid) + len(f.DecodeErrors) + len(f.ParseErrors)
		t.Run(filepath.Base(path), func(t *testing.T) { runCorpusFile(t, f) })
	}
	if cases != 983 {
		t.Errorf("the corpus has %d cases, not 983: read what is new, then change this number", cases)
	}
}

func runCorpusFile(t *testing.T, f corpusFile) {
	for _, c := range f.Valid {
		t.Run(c.Description, func(t *testing.T) { checkValid(t, c) })
	}
	for _, c := range f.DecodeErrors {
		t.Run(c.Description, func(t *testing.T) {
			b := unhex(t, c.BSON)
			var d bson.D
			var m bson.M
			if bson.Raw(b).Validate() == nil {
				t.Error("Validate accepts it")
			}
			if bson.Unmarshal(b, &d) == nil || bson.Unmarshal(b, &m) == nil {
				t.Error("Unmarshal accepts it")
			}
			if _, err := bson.MarshalExtJSON(bson.Raw(b), true, false); err == nil {
				t.Error("MarshalExtJSON accepts it")
			}
		})
	}
	for _, c := range f.ParseErrors {
		t.Run(c.Description, func(t *testing.T) {
			if f.BSONType == "0x13" {
				if d, err := bson.ParseDecimal128(c.String); err == nil {
					t.Errorf("ParseDecimal128(%q) = %v", c.String, d)
				}
				return
			}
			if v, err := bson.ParseExtJSON([]byte(c.String), false); err == nil {
				t.Errorf("%s is read as %v", c.String, v)
			}
			if !json.Valid([]byte(c.String)) {
				t.Errorf("%s is not even JSON", c.String)
			}
		})
	}
}

// checkValid makes the assertions of the corpus for codecs with and without a native representation in between.
func checkValid(t *testing.T, c corpusValid) {
	canonical := unhex(t, c.CanonicalBSON)
	sources := map[string][]byte{"canonical BSON": canonical}
	if c.DegenerateBSON != nil {
		sources["degenerate BSON"] = unhex(t, *c.DegenerateBSON)
	}
	for name, b := range sources {
		if err := bson.Raw(b).Validate(); err != nil {
			t.Errorf("%s: Validate: %v", name, err)
		}
		var d bson.D
		if err := bson.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := bson.Marshal(d)
		if err != nil || !bytes.Equal(back, canonical) && !c.Lossy {
			t.Errorf("%s through D: %x, want %x, error %v", name, back, canonical, err)
		}
		for _, v := range []any{d, bson.Raw(b)} {
			sameJSON(t, name, v, true, c.CanonicalJSON)
			if c.RelaxedJSON != nil {
				sameJSON(t, name, v, false, *c.RelaxedJSON)
			}
		}
	}
	readJSON(t, c.CanonicalJSON, true, canonical, c)
	readJSON(t, c.CanonicalJSON, false, canonical, c)
	if c.DegenerateJSON != nil {
		readJSON(t, *c.DegenerateJSON, false, canonical, c)
	}
	if c.RelaxedJSON != nil {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(*c.RelaxedJSON), false, &d); err != nil {
			t.Fatalf("relaxed JSON: %v", err)
		}
		sameJSON(t, "relaxed JSON", d, false, *c.RelaxedJSON)
	}
}

func readJSON(t *testing.T, text string, canonicalOnly bool, want []byte, c corpusValid) {
	t.Helper()
	v, err := bson.ParseExtJSON([]byte(text), canonicalOnly)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	if !c.Lossy && !bytes.Equal(v.Value, want) {
		t.Errorf("%s is read as %x, want %x", text, v.Value, want)
	}
	sameJSON(t, text, v, true, c.CanonicalJSON)
}

// sameJSON compares what v prints with want, apart from blanks, escapes and the order of keys.
func sameJSON(t *testing.T, source string, v any, canonical bool, want string) {
	t.Helper()
	for _, escapeHTML := range []bool{true, false} {
		got, err := bson.MarshalExtJSON(v, canonical, escapeHTML)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			return
		}
		if !reflect.DeepEqual(normal(t, string(got)), normal(t, want)) {
			t.Errorf("%s (%T, canonical %v)\ngot  %s\nwant %s", source, v, canonical, got, want)
		}
	}
}

func normal(t *testing.T, text string) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
