package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// reads is how many reads of a mode the command makes; its tests make fewer.
const reads = 600

// evenly bounds the share of one of two members over n reads: 240 to 360 of 600, five standard deviations either way.
func evenly(share, n int) bool {
	return math.Abs(float64(share)-float64(n)/2) <= 60*math.Sqrt(float64(n)/reads)
}

// tally counts reads by the member that answered: as the driver says, and as the members themselves have counted.
type tally struct {
	said, served map[string]int
	took         time.Duration
}

func (t tally) String() string {
	if !t.agree() {
		return fmt.Sprintf("%s by the driver's word, but served by %s", share(t.said), share(t.served))
	}
	return share(t.said)
}

// share prints how many reads each member had.
func share(counts map[string]int) string {
	var out []string
	for _, n := range memberNames {
		if counts[n] > 0 {
			out = append(out, fmt.Sprintf("%s %d", n, counts[n]))
		}
	}
	if len(out) == 0 {
		return "nobody"
	}
	return strings.Join(out, ", ")
}

// cells is the tally as a row of the table of modes.
func (t tally) cells(mode, last string) []string {
	row := []string{mode}
	for _, n := range memberNames {
		row = append(row, fmt.Sprint(t.said[n]))
	}
	return append(row, last)
}

// agree says whether the members served what the driver claims.
func (t tally) agree() bool { return maps.Equal(t.said, t.served) }

// only says whether one member answered everything.
func (t tally) only(member int, n int) bool {
	return t.agree() && t.said[memberNames[member]] == n
}

// read makes n sequential reads and counts who answered.
func (d *demo) read(ctx context.Context, app string, coll *sextant.Collection[person], n int, o sextant.FindOptions) (tally, error) {
	return d.readShown(ctx, app, coll, n, o, func(done int, t tally) { d.progress("%d of %d reads: %s", done, n, share(t.said)) })
}

// readShown is read with a say in how it is shown while it runs.
func (d *demo) readShown(ctx context.Context, app string, coll *sextant.Collection[person], n int, o sextant.FindOptions,
	show func(done int, t tally)) (tally, error) {
	t := tally{said: map[string]int{}, served: map[string]int{}}
	before := d.served(app)
	start := time.Now()
	o.Limit = 1
	for i := range n {
		cur, err := coll.Find(ctx, bson.D{}, o)
		if err != nil {
			return t, err
		}
		t.said[d.name(cur.Server())]++
		if _, err := cur.All(ctx); err != nil {
			return t, err
		}
		if i%20 == 19 {
			show(i+1, t)
		}
	}
	t.took = time.Since(start)
	for i, after := range d.served(app) {
		if after > before[i] {
			t.served[memberNames[i]] = int(after - before[i])
		}
	}
	return t, nil
}

// served says how many finds each member has served to an application, by the member's own count.
func (d *demo) served(app string) []int64 {
	out := make([]int64, len(memberNames))
	for i, m := range d.set.Members() {
		out[i] = m.OpCounters(app)["find"]
	}
	return out
}

// fiveModes counts who answers in each mode.
func (d *demo) fiveModes(ctx context.Context) error {
	n := d.reads
	d.section(fmt.Sprintf("%d reads of the east client in each of the five modes", n))
	modes := []struct {
		pref *readpref.ReadPref
		name string
		hold string
		ok   func(t tally) bool
	}{
		{readpref.Primary(), "primary", "east-1 alone", func(t tally) bool { return t.only(east1, n) }},
		{readpref.PrimaryPreferred(), "primaryPreferred", "east-1 alone", func(t tally) bool { return t.only(east1, n) }},
		{readpref.Secondary(), "secondary", "east-2 alone, the only one inside the window", func(t tally) bool { return t.only(east2, n) }},
		{readpref.SecondaryPreferred(), "secondaryPreferred", "east-2 alone", func(t tally) bool { return t.only(east2, n) }},
		{readpref.Nearest(), "nearest", "the two in the east evenly, the 150 ms member never", func(t tally) bool {
			a, b := t.said[memberNames[east1]], t.said[memberNames[east2]]
			return t.agree() && a+b == n && evenly(a, n) && evenly(b, n)
		}},
	}
	d.row(append(append([]string{"mode"}, memberNames...), "a read takes"), true)
	coll := people(d.east)
	tallies := make([]tally, len(modes))
	for i, m := range modes {
		t, err := d.readShown(ctx, "east", coll, n, sextant.FindOptions{ReadPreference: m.pref},
			func(done int, t tally) { d.row(t.cells(m.name, fmt.Sprintf("(%d of %d)", done, n)), false) })
		if err != nil {
			return fmt.Errorf("reads with mode %s: %w", m.name, err)
		}
		d.row(t.cells(m.name, milliseconds(t.took/time.Duration(n))), true)
		tallies[i] = t
	}
	for i, m := range modes {
		d.check(m.name+": "+m.hold, m.ok(tallies[i]), "%s", tallies[i])
	}
	return nil
}

// westReads shows what nearest saves a client that is far from the primary.
func (d *demo) westReads(ctx context.Context) error {
	d.section("The client in the west")
	near, err := d.read(ctx, "west", people(d.west), d.reads, sextant.FindOptions{ReadPreference: readpref.Nearest()})
	if err != nil {
		return err
	}
	d.check("nearest: west-1 alone", near.only(west1, d.reads), "%s", near)
	const few = 20
	far, err := d.read(ctx, "west", people(d.west), few, sextant.FindOptions{ReadPreference: readpref.Primary()})
	if err != nil {
		return err
	}
	perNear, perFar := near.took/time.Duration(d.reads), far.took/few
	d.check("primary: every read crosses to the east", far.only(east1, few) && perFar > 10*perNear,
		"%s; %s a read, %s from the nearest: %.0f times as long", far, milliseconds(perFar), milliseconds(perNear), float64(perFar)/float64(perNear))
	return nil
}

// tags checks that tag sets are tried in order, that a wish nobody fulfils is named, and that members say the truth.
func (d *demo) tags(ctx context.Context) error {
	d.section("Tag sets")
	ctx, cancelAll := context.WithTimeout(ctx, 10*time.Second) // far more than 40 reads take; a wish that nobody fulfils waits
	defer cancelAll()
	dc := func(v string) readpref.TagSet { return readpref.TagSet{{Key: "dc", Value: v}} }
	few := 20
	for _, q := range []struct {
		name string
		pref *readpref.ReadPref
		want string
	}{
		{"nearest with dc:west goes to the member that the set tags so", readpref.Nearest(readpref.Tags("dc", "west")), "west"},
		{"secondary with dc:north, else dc:east takes the second set", readpref.Secondary(readpref.TagSets(dc("north"), dc("east"))), "east"},
	} {
		t, err := d.read(ctx, "east", people(d.east), few, sextant.FindOptions{ReadPreference: q.pref})
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		d.check(q.name, t.agree() && d.allTagged(t, q.want), "%s", t)
		if len(failed(d.checks)) > 0 {
			return nil // the tags are wrong: nobody may have those of the next wish
		}
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := people(d.east).FindOne(short, bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Nearest(readpref.Tags("dc", "north"))})
	if err == nil {
		err = errors.New("somebody answered")
	}
	d.check("a tag that nobody has is named in the error", mongoerr.IsSelection(err) && strings.Contains(headline(err), "north"), "%s", headline(err))
	return nil
}

// allTagged holds what answered against the set's own configuration, not against what the members told the driver.
func (d *demo) allTagged(t tally, dc string) bool {
	n := 0
	for i, m := range d.set.Members() {
		if got := t.said[memberNames[i]]; got > 0 {
			if m.Tags()["dc"] != dc {
				return false
			}
			n += got
		}
	}
	return n > 0
}

// override sets a read preference at each level, and lets the nearest one win.
func (d *demo) override(ctx context.Context) error {
	d.section("A read preference at each level")
	db := d.east.Database("demo")
	west := readpref.Nearest(readpref.Tags("dc", "west"))
	atDB := db.With(sextant.DatabaseOptions{ReadPreference: readpref.Secondary()})
	atColl := sextant.CollectionOf[person](atDB, "people", sextant.CollectionOptions{ReadPreference: readpref.PrimaryPreferred()})
	for _, l := range []struct {
		level string
		coll  *sextant.Collection[person]
		call  *readpref.ReadPref
		want  int
	}{
		{"the client's own (primary)", people(d.east), nil, east1},
		{"the database's (secondary) over the client's", sextant.CollectionOf[person](atDB, "people"), nil, east2},
		{"the collection's (primaryPreferred) over the database's", atColl, nil, east1},
		{"the call's (nearest in the west) over the collection's", atColl, west, west1},
	} {
		t, err := d.read(ctx, "east", l.coll, 10, sextant.FindOptions{ReadPreference: l.call})
		if err != nil {
			return fmt.Errorf("%s: %w", l.level, err)
		}
		d.check(l.level, t.only(l.want, 10), "%s; the collection's is %s", t, l.coll.ReadPreference())
	}
	return nil
}
