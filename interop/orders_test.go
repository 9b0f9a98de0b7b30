package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An order is a line of the generated file, in Extended JSON.
type order struct {
	ID       int      `json:"_id"`
	At       date     `json:"at"`
	Customer customer `json:"customer"`
	Status   string   `json:"status"`
	Lines    []item   `json:"lines"`
	Tags     []string `json:"tags,omitempty"`
	Rebate   *float64 `json:"rebate"`
	Note     string   `json:"note,omitempty"`
}

type customer struct {
	Number  int    `json:"number"`
	Name    string `json:"name"`
	Country string `json:"country"` // as cca3 of the countries
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Cents    int    `json:"cents"` // for one
	Price    price  `json:"price"` // the same, as a decimal
}

type date time.Time

func (d date) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]map[string]string{"$date": {"$numberLong": fmt.Sprint(time.Time(d).UnixMilli())}})
}

type price int

func (p price) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"$numberDecimal": fmt.Sprintf("%d.%02d", p/100, p%100)})
}

var (
	forenames = []string{"Zoë", "Ágnes", "Bjørn", "Łukasz", "Şule", "Ольга", "محمد", "さくら", "민준", "joe", "Anne-Marie", "O'Neil \"Red\""}
	surnames  = []string{"Müller", "Ångström", "Dvořák", "Nguyễn", "Παπάς", "Иванова", "李", "佐藤", "smith", "Smith", "d'Arc", "X Æ"}
	states    = []string{"open", "paid", "paid", "paid", "sent", "sent", "returned"}
	marks     = []string{"gift", "urgent", "vip", "Ünïcode", "🚚"}
	notes     = []string{"ring twice", "Straße 5, 2. OG\nlinks", "c'est pour l'été", "  two  spaces ", "$5 off, 100.00%", "\u2028line"}
)

// generateOrders makes orders out of a seed: always the same ones.
func generateOrders(n int, countries []country) []order {
	r := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2024, 2, 28, 23, 59, 59, 999e6, time.UTC)
	orders := make([]order, n)
	for i := range orders {
		number := r.IntN(5000)
		o := order{ID: i + 1, At: date(start.Add(time.Duration(i) * 317 * time.Second)), Status: states[r.IntN(len(states))]}
		o.Customer = customer{number, forenames[number%len(forenames)] + " " + surnames[number/7%len(surnames)], countries[number%len(countries)].CCA3}
		for range 1 + r.IntN(4) {
			cents := 5 + 95*r.IntN(200)
			o.Lines = append(o.Lines, item{fmt.Sprintf("%c-%02d", 'A'+r.IntN(6), r.IntN(30)), 1 + r.IntN(9), cents, price(cents)})
		}
		for range r.IntN(3) {
			o.Tags = append(o.Tags, marks[r.IntN(len(marks))])
		}
		if r.IntN(4) == 0 {
			o.Rebate = new(float64(r.IntN(16)) / 4) // sums of these do not depend on their order
		}
		if r.IntN(10) == 0 {
			o.Note = notes[r.IntN(len(notes))]
		}
		orders[i] = o
	}
	return orders
}

// writeOrders writes them to a file, a line each, and returns its name.
func writeOrders(t *testing.T, orders []order) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "orders.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for enc, i := json.NewEncoder(w), 0; i < len(orders); i++ {
		if err := enc.Encode(orders[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}
