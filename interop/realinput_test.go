package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/interop/own"
	"github.com/sextantdb/sextant/replset"
)

// The real input: the countries of the world, from npm, and a file of many orders, which every client imports line by line.
const countriesFile = "countries/node_modules/world-countries/countries.json"

// ours is the driver of this house, played as a stranger.
var ours = stranger{name: "sextant", start: inProcess(own.Serve)}

func discover(t *testing.T) world {
	t.Helper()
	needed(t, "countries", "the npm package world-countries is not in interop/countries/node_modules", exists(countriesFile))
	text, err := os.ReadFile(countriesFile)
	if err != nil {
		t.Fatal(err)
	}
	var w world
	for _, v := range []any{&w.texts, &w.countries} {
		if err := json.Unmarshal(text, v); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.texts) < 200 {
		t.Fatalf("%d countries are too few", len(w.texts))
	}
	return w
}

// imports has the client import documents, a line each, a thousand at a time.
func (p *puppet) imports(collection string, lines func(yield func(string) bool)) {
	p.t.Helper()
	var docs []string
	flush := func() {
		if a := p.tell(fmt.Sprintf(`{"op":"insertMany","collection":%q,"documents":[%s]}`, collection, strings.Join(docs, ","))); a.Error != nil {
			p.t.Fatalf("importing %s: %+v", collection, *a.Error)
		}
		docs = docs[:0]
	}
	for line := range lines {
		if docs = append(docs, line); len(docs) == 1000 {
			flush()
		}
	}
	if len(docs) > 0 {
		flush()
	}
}

// linesOf reads a file line by line.
func linesOf(t *testing.T, path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() && yield(lines.Text()) {
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// eachCountry yields the countries, a line each.
func (w world) eachCountry(yield func(string) bool) {
	for _, text := range w.texts {
		line := &bytes.Buffer{}
		if err := json.Compact(line, text); err != nil || !yield(line.String()) {
			return
		}
	}
}

// whole are doubles that JavaScript cannot tell from integers.
var whole = regexp.MustCompile(`\{"\$numberDouble":"(-?\d+)(\.0)?"\}`)

// asks returns the client's answer. The values of distinct come in any order, and are sorted.
func (p *puppet) asks(q question) string {
	p.t.Helper()
	return q.plain(p, canonical(p, p.must(q.ask)))
}

// knows is the answer that needs no database.
func (p *puppet) knows(q question, w world) string {
	p.t.Helper()
	return q.plain(p, wanted(p, inJSON(q.want(w))))
}

// plain is an answer without what clients need not keep.
func (q question) plain(p *puppet, answer []byte) string {
	answer = whole.ReplaceAll(answer, []byte(`{"$$number":"$1"}`))
	if !strings.Contains(q.ask, `"op":"distinct"`) {
		return string(answer)
	}
	var set struct{ V []json.RawMessage }
	if err := json.Unmarshal(answer, &set); err != nil {
		p.t.Fatalf("%s: %v in %.1000s", q.name, err, answer)
	}
	slices.SortFunc(set.V, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return inJSON(set.V)
}

// differ says where two answers part.
func differ(t *testing.T, q question, who, got, whom, want string) {
	t.Helper()
	if got == want {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	part := func(s string) string { return s[max(0, min(at, len(s))-200):min(len(s), at+200)] }
	t.Errorf("%s, at byte %d:\n%s: %s\n%s: %s", q.name, at, who, part(got), whom, part(want))
}

// TestClientsAgreeOnRealInput has four clients import the same and ask the same, each on a set of its own, ours on one of
// three members; ours asks again with indexes.
func TestClientsAgreeOnRealInput(t *testing.T) {
	w := discover(t)
	w.orders = generateOrders(orderCount, w.countries)
	file := writeOrders(t, w.orders)
	answers := map[string]string{}
	for _, s := range []stranger{ours, strangerNamed("gov2"), strangerNamed("node"), strangerNamed("pymongo")} {
		t.Run(s.name, func(t *testing.T) {
			members := 1
			if s.name == ours.name {
				members = 3
			}
			set := replset.Run(t, replset.Options{Members: members})
			p := s.pull(t, set.URI()+"&w=majority"+s.options)
			p.imports("countries", w.eachCountry)
			p.imports("orders", linesOf(t, file))
			ask := func(when string) {
				for _, q := range questions {
					got := p.asks(q)
					if q.want != nil {
						differ(t, q, s.name+when, got, "the input", p.knows(q, w))
					}
					if s.name == ours.name && when == "" {
						answers[q.name] = got
					}
					differ(t, q, s.name+when, got, ours.name, answers[q.name])
				}
			}
			ask("")
			if s.name != ours.name {
				return
			}
			for _, keys := range []string{`{"customer.country":1,"_id":-1}`, `{"lines.quantity":1,"status":1}`, `{"at":1}`} {
				p.must(`{"op":"createIndex","collection":"orders","keys":` + keys + `}`)
			}
			p.must(`{"op":"createIndex","collection":"countries","keys":{"borders":1,"area":-1}}`)
			ask(" with indexes")
		})
	}
}

// TestServersAgreeOnRealInput asks FerretDB and the embedded set the same, through our driver.
func TestServersAgreeOnRealInput(t *testing.T) {
	w := discover(t)
	foreign := ours.pull(t, startFerretDB(t, compileFerretDB(t)))
	embedded := ours.pull(t, replset.Run(t, replset.Options{Members: 1}).URI())
	for _, p := range []*puppet{foreign, embedded} {
		p.imports("countries", w.eachCountry)
	}
	for _, q := range questions {
		if q.ferret {
			differ(t, q, "the embedded set", embedded.asks(q), "FerretDB", foreign.asks(q))
		}
	}
}
