package interop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A world is the real input as this process knows it. Its methods answer questions without any database; what they return
// is written as Extended JSON, where the width of a number does not matter.
type world struct {
	texts     []json.RawMessage // countries as they are in the file
	countries []country
	orders    []order
}

// country is of a country what the answers here need.
type country struct {
	Name         named
	CCA3         string
	Region       string
	Subregion    string
	Flag         string
	Independent  *bool
	Area         json.Number
	LatLng       []json.Number
	Borders      []string
	Currencies   map[string]any
	Languages    map[string]string
	IDD          struct{ Suffixes []string }
	Translations map[string]struct{ Common string }
}

type named struct {
	Common string `json:"common"`
}

func number(n json.Number) float64 {
	f, err := n.Float64()
	if err != nil {
		panic(err)
	}
	return f
}

func byCode(a, b country) int { return cmp.Compare(a.CCA3, b.CCA3) }

func (w world) wholeCountries() any {
	order := make([]int, len(w.texts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return byCode(w.countries[a], w.countries[b]) })
	var all []json.RawMessage
	for _, i := range order {
		all = append(all, w.texts[i])
	}
	return all
}

func (w world) betweenGermanyAndFrance() any {
	type found struct {
		Name    named    `json:"name"`
		Borders []string `json:"borders"`
	}
	var all []found
	for _, c := range slices.SortedFunc(slices.Values(w.countries), byCode) {
		if slices.Contains(c.Borders, "DEU") && slices.Contains(c.Borders, "FRA") {
			all = append(all, found{c.Name, c.Borders})
		}
	}
	return all
}

func (w world) united() any {
	var all []map[string]named
	for _, c := range w.countries {
		if name := strings.ToLower(c.Name.Common); strings.HasPrefix(name, "the ") || strings.HasPrefix(name, "united ") {
			all = append(all, map[string]named{"name": c.Name})
		}
	}
	slices.SortFunc(all, func(a, b map[string]named) int { return cmp.Compare(a["name"].Common, b["name"].Common) })
	return all
}

func (w world) largest() any {
	type found struct {
		CCA3 string      `json:"cca3"`
		Area json.Number `json:"area"`
	}
	var all []found
	for _, c := range w.countries {
		all = append(all, found{c.CCA3, c.Area})
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(-cmp.Compare(number(a.Area), number(b.Area)), cmp.Compare(a.CCA3, b.CCA3))
	})
	return all[20:30]
}

func (w world) count(is func(country) bool) (n int) {
	for _, c := range w.countries {
		if is(c) {
			n++
		}
	}
	return n
}

func (w world) euro() any {
	return w.count(func(c country) bool { return c.Currencies["EUR"] != nil })
}

func (w world) islandsOrUnclear() any {
	return w.count(func(c country) bool { return len(c.Borders) == 0 || c.Independent == nil })
}

func (w world) suffixes() any {
	set := map[string]bool{}
	for _, c := range w.countries {
		for _, s := range c.IDD.Suffixes {
			if c.Region == "Europe" {
				set[s] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// A tally is a line of a table that counts.
type tally struct {
	ID   string `json:"_id"`
	N    int    `json:"n"`
	Name string `json:"name,omitempty"`
	Flag string `json:"flag,omitempty"`
}

// ranked are the names by how often they were counted, the most frequent first.
func ranked(counts map[string]int) (list []tally) {
	for id, n := range counts {
		list = append(list, tally{ID: id, N: n})
	}
	slices.SortFunc(list, func(a, b tally) int { return cmp.Or(b.N-a.N, cmp.Compare(a.ID, b.ID)) })
	return list
}

func (w world) mostNeighbours() any {
	counts := map[string]int{}
	for _, c := range w.countries {
		for _, b := range c.Borders {
			counts[b]++
		}
	}
	return ranked(counts)[:12]
}

func (w world) languages() any {
	counts, names := map[string]int{}, map[string]string{}
	for _, c := range w.countries {
		for code, name := range c.Languages {
			counts[code]++
			if counts[code] == 1 {
				names[code] = name
			}
		}
	}
	list := slices.DeleteFunc(ranked(counts), func(t tally) bool { return t.N < 4 })
	for i := range list {
		list[i].Name = names[list[i].ID]
	}
	return list
}

func (w world) regions() any {
	type region struct {
		ID         string      `json:"_id"`
		Countries  int         `json:"countries"`
		Largest    json.Number `json:"largest"`
		South      json.Number `json:"south"`
		Subregions int         `json:"subregions"`
	}
	all, subs := map[string]*region{}, map[string]bool{}
	for _, c := range w.countries {
		r := all[c.Region]
		if r == nil {
			r = &region{ID: c.Region, Largest: c.Area, South: c.LatLng[0]}
			all[c.Region] = r
		}
		r.Countries++
		if number(c.Area) > number(r.Largest) {
			r.Largest = c.Area
		}
		if number(c.LatLng[0]) < number(r.South) {
			r.South = c.LatLng[0]
		}
		if key := c.Region + "/" + c.Subregion; !subs[key] {
			subs[key] = true
			r.Subregions++
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *region) int { return cmp.Compare(a.ID, b.ID) })
}

func (w world) bulky() any {
	n := 0
	for _, o := range w.orders {
		if (o.Status == "open" || o.Status == "sent") && slices.ContainsFunc(o.Lines, func(l item) bool { return l.Quantity >= 8 && l.Cents < 500 }) {
			n++
		}
	}
	return n
}

// A brief is an order of which a projection left a few fields.
type brief struct {
	ID       int                 `json:"_id"`
	At       *date               `json:"at,omitempty"`
	Customer map[string]string   `json:"customer,omitempty"`
	Lines    []map[string]string `json:"lines,omitempty"`
	Note     string              `json:"note,omitempty"`
}

func (w world) deep() any {
	orders := slices.SortedFunc(slices.Values(w.orders), func(a, b order) int {
		return cmp.Or(cmp.Compare(a.Customer.Country, b.Customer.Country), b.ID-a.ID)
	})
	if len(orders) < 50005 {
		return []brief{}
	}
	var all []brief
	for _, o := range orders[50000:50005] {
		b := brief{ID: o.ID, Customer: map[string]string{"country": o.Customer.Country}}
		for _, l := range o.Lines {
			b.Lines = append(b.Lines, map[string]string{"sku": l.SKU})
		}
		all = append(all, b)
	}
	return all
}

func (w world) leapDay() any {
	var all []brief
	for _, o := range w.orders {
		if at := time.Time(o.At); at.Year() == 2024 && at.Month() == 2 && at.Day() == 29 && o.Note != "" {
			all = append(all, brief{ID: o.ID, At: &o.At, Note: o.Note})
		}
	}
	return all
}

func (w world) everyOrder() any {
	var all []brief
	for _, o := range w.orders {
		all = append(all, brief{ID: o.ID, Customer: map[string]string{"name": o.Customer.Name}})
	}
	return all
}

func (w world) months() any {
	type month struct {
		ID    string `json:"_id"`
		Cents int    `json:"cents"`
		Lines int    `json:"lines"`
	}
	var all []month
	for _, o := range w.orders {
		id := time.Time(o.At).Format("2006-01")
		if len(all) == 0 || all[len(all)-1].ID != id {
			all = append(all, month{ID: id})
		}
		m := &all[len(all)-1]
		for _, l := range o.Lines {
			m.Cents += l.Cents * l.Quantity
			m.Lines++
		}
	}
	return all
}

func (w world) bestSold() any {
	type sku struct {
		ID   string `json:"_id"`
		Sold int    `json:"sold"`
		For  price  `json:"for"`
	}
	all := map[string]*sku{}
	for _, o := range w.orders {
		for _, l := range o.Lines {
			if o.Status == "returned" {
				continue
			}
			s := all[l.SKU]
			if s == nil {
				s = &sku{ID: l.SKU}
				all[l.SKU] = s
			}
			s.Sold += l.Quantity
			s.For += price(l.Cents * l.Quantity)
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *sku) int { return cmp.Or(b.Sold-a.Sold, cmp.Compare(a.ID, b.ID)) })[:10]
}

func (w world) buyers() any {
	counts := map[string]int{}
	for _, o := range w.orders {
		counts[o.Customer.Country]++
	}
	list := ranked(counts)[:7]
	for i := range list {
		c := w.countries[slices.IndexFunc(w.countries, func(c country) bool { return c.CCA3 == list[i].ID })]
		list[i].Name, list[i].Flag = c.Translations["jpn"].Common, c.Flag
	}
	return list
}

func (w world) rebates() any {
	type kind struct {
		ID   string   `json:"_id"`
		Sum  float64  `json:"sum"`
		Most *float64 `json:"most"`
		N    int      `json:"n"`
	}
	kinds := map[string]*kind{"double": {ID: "double"}, "int": {ID: "int"}, "null": {ID: "null"}}
	for _, o := range w.orders {
		id := "null"
		if o.Rebate != nil && *o.Rebate == float64(int(*o.Rebate)) {
			id = "int"
		} else if o.Rebate != nil {
			id = "double"
		}
		k := kinds[id]
		k.N++
		if o.Rebate != nil {
			k.Sum += *o.Rebate
			k.Most = new(max(*o.Rebate, *cmp.Or(k.Most, o.Rebate)))
		}
	}
	return slices.SortedFunc(maps.Values(kinds), func(a, b *kind) int { return cmp.Compare(a.ID, b.ID) })
}

func (w world) smiths() any {
	set := map[int]bool{}
	for _, o := range w.orders {
		if regexp.MustCompile(`(?i) smith$`).MatchString(o.Customer.Name) && slices.Contains(o.Tags, "vip") {
			set[o.Customer.Number] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (w world) tags() any {
	set := map[string]bool{}
	for _, o := range w.orders {
		for _, tag := range o.Tags {
			set[tag] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// inJSON is an answer as Extended JSON.
func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return string(text)
}
