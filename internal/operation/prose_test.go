package operation_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// TestProseSDAM9StateChangesAreParsedInEveryShape is prose test 9 of "server discovery and monitoring": errors without a
// code are told by their text, wherever their fields stand. The shapes of the old write and query messages, {err: ...}
// and {$err: ...}, are not among them: no server that is spoken to sends them. Broken by a text that is not known, by
// looking for fields at fixed places, or by not keeping the error.
func TestProseSDAM9StateChangesAreParsedInEveryShape(t *testing.T) {
	count := func(pref *readpref.ReadPref) *operation.Op {
		return &operation.Op{Name: "count", DB: "shop", Coll: "people", Kind: operation.Read, ReadPref: pref, Append: named("count")}
	}
	write := func() *operation.Op { o := insert(); o.Retryable = false; return o }
	for name, k := range map[string]struct {
		op   *operation.Op
		text string
	}{
		"a write command":                      {write(), "not writable primary"},
		"a write command, in older words":      {write(), "not master"},
		"a write command, in the middle":       {write(), "replicatedToNum called but not master anymore"},
		"a query with secondaryOk":             {count(readpref.Secondary()), "not primary or secondary; cannot currently read from this replSet member"},
		"a query with secondaryOk, older":      {count(readpref.Secondary()), "not master or secondary; cannot currently read from this replSet member"},
		"a query without secondaryOk":          {count(nil), "not writable primary and secondaryOk=false"},
		"a count with secondaryOk":             {count(readpref.Secondary()), "node is recovering"},
		"a count without secondaryOk":          {count(nil), "not writable primary"},
		"a count without secondaryOk, capital": {count(nil), "Not Master and slaveOk=false"},
	} {
		for _, reply := range []bson.D{
			{{Key: "ok", Value: 0}, {Key: "errmsg", Value: k.text}},
			{{Key: "errmsg", Value: k.text}, {Key: "more", Value: 1}, {Key: "ok", Value: 0.0}},
		} {
			t.Run(name, func(t *testing.T) {
				var unknown []event.Member // told by one goroutine, the publisher's
				s := settings{cluster: func(c *cluster.Config) {
					c.Monitor = &event.Monitor{TopologyChanged: func(e *event.TopologyEvent) {
						if e.Type == event.MemberUpdated && e.MemberAfter.Kind == event.Unknown {
							unknown = append(unknown, e.MemberAfter)
						}
					}}
				}}
				deploy(t, s, func(t *testing.T, d *deployment) {
					run(t, d, find())
					time.Sleep(time.Second)
					for _, m := range d.members {
						m.script(answer{reply: reply})
					}
					err := d.x.Run(t.Context(), k.op)
					e, ok := err.(*mongoerr.Error)
					if !ok || !mongoerr.IsStateChange(err) {
						t.Fatalf("error %v", err)
					}
					synctest.Wait() // for the publisher; the member was checked at once and may be known again
					if len(unknown) != 1 || unknown[0].Address != e.Server || !mongoerr.IsStateChange(unknown[0].LastError) ||
						!strings.Contains(unknown[0].LastError.Error(), k.text) {
						t.Errorf("after an error of %s these became Unknown: %v", e.Server, unknown)
					}
				})
			})
		}
	}
}
