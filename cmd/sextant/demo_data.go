package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/event"
)

// discovery checks that one seed is enough.
func (d *demo) discovery(ctx context.Context) error {
	d.section("Discovery from one seed")
	want := map[event.Kind]int{event.RSPrimary: 1, event.RSSecondary: 2}
	for _, c := range []struct {
		name   string
		client *sextant.Client
	}{{"east", d.east}, {"west", d.west}} {
		start := time.Now()
		found, err := d.allMembers(ctx, c.client)
		if err != nil {
			return err
		}
		kinds := map[event.Kind]int{}
		rows := [][]string{{"member", "kind", "round trip", "tags"}}
		for _, m := range found {
			kinds[m.Kind]++
			rows = append(rows, []string{d.name(m.Address), m.Kind.String(), milliseconds(m.RTT), tagText(m.Tags)})
		}
		slices.SortFunc(rows[1:], func(a, b []string) int { return strings.Compare(a[0], b[0]) })
		d.table(rows)
		d.check("the "+c.name+" client finds all three members from one seed",
			len(found) == 3 && kinds[event.RSPrimary] == want[event.RSPrimary] && kinds[event.RSSecondary] == want[event.RSSecondary],
			"%d members after %s", len(found), milliseconds(time.Since(start)))
	}
	return nil
}

// allMembers waits until no member is unknown any more, for at most ten seconds.
func (d *demo) allMembers(ctx context.Context, c *sextant.Client) ([]event.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		if err := c.Refresh(ctx); err != nil {
			return nil, err
		}
		members := c.Hosts().Members
		if !slices.ContainsFunc(members, func(m event.Member) bool { return m.Kind == event.Unknown }) && len(members) >= 3 {
			return members, nil
		}
		d.progress("%d members known so far", len(members))
		select {
		case <-ctx.Done():
			return members, nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

type person struct {
	ID      bson.ObjectID `bson:"_id,omitempty"`
	Name    string        `bson:"name"`
	Awards  []string      `bson:"awards"`
	Address address       `bson:"address"`
	Wins    wins          `bson:"wins"`
}

type address struct {
	City string `bson:"city"`
}

type wins struct {
	FirstPlace int `bson:"first place"`
}

// people is where the demo's documents live; every member has them before a read is counted.
func people(c *sextant.Client) *sextant.Collection[person] {
	return sextant.CollectionOf[person](c.Database("demo"), "people")
}

// documents checks the small lessons: ids, strings that are not ids, arrays, dotted paths, $in.
func (d *demo) documents(ctx context.Context) error {
	d.section("Documents and queries")
	coll := sextant.CollectionOf[person](d.east.Database("demo"), "people", sextant.CollectionOptions{
		WriteConcern: concern.W(3),
	})
	joe := &person{Name: "joe", Awards: []string{"gold", "silver"}, Address: address{"Oslo"}, Wins: wins{3}}
	pointers := sextant.As[*person](coll)
	if _, err := pointers.InsertOne(ctx, joe); err != nil {
		return fmt.Errorf("insert joe: %w", err)
	}
	others := []person{
		{Name: "ann", Awards: []string{"bronze"}, Address: address{"Lima"}, Wins: wins{0}},
		{Name: "kim", Awards: []string{"silver"}, Address: address{"Rome"}, Wins: wins{1}},
	}
	if _, err := coll.InsertMany(ctx, others); err != nil {
		return fmt.Errorf("insert the others: %w", err)
	}
	d.check("an inserted document gets an ObjectID, written back into the caller's struct", !joe.ID.IsZero(), "_id %s", joe.ID.Hex())

	found, err := coll.FindOne(ctx, bson.M{"_id": joe.ID})
	d.check("a read by _id finds it", err == nil && found.Name == "joe", "%s%s", found.Name, suffix(err))

	_, err = coll.FindOne(ctx, bson.M{"_id": joe.ID.Hex()})
	d.check("the id as a string finds nothing", errors.Is(err, sextant.ErrNoDocuments), "%v", err)

	for _, q := range []struct {
		name   string
		filter bson.M
		want   []string
	}{
		{"a value matches an element of an array", bson.M{"awards": "silver"}, []string{"joe", "kim"}},
		{"a dotted path may hold a space", bson.M{"wins.first place": 3}, []string{"joe"}},
		{"$in takes any of several values", bson.M{"address.city": bson.M{"$in": bson.A{"Lima", "Rome"}}}, []string{"ann", "kim"}},
	} {
		names, err := d.names(ctx, coll, q.filter)
		d.check(q.name, err == nil && slices.Equal(names, q.want), "%s finds %s%s", q.filter, strings.Join(names, ", "), suffix(err))
	}
	return nil
}

// names lists who matches a filter, in order of the name.
func (d *demo) names(ctx context.Context, coll *sextant.Collection[person], filter bson.M) ([]string, error) {
	cur, err := coll.Find(ctx, filter, sextant.FindOptions{Sort: bson.D{{Key: "name", Value: 1}}})
	if err != nil {
		return nil, err
	}
	var names []string
	for p, err := range cur.Each(ctx) {
		if err != nil {
			return names, err
		}
		names = append(names, p.Name)
	}
	return names, nil
}

func suffix(err error) string {
	if err == nil {
		return ""
	}
	return ", " + headline(err)
}

// headline is an error's first line, which says what went wrong; the lines below it go into detail.
func headline(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// milliseconds prints a duration as an operator reads it.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// tagText prints tags in the order of their names.
func tagText(tags map[string]string) string {
	var out []string
	for k, v := range tags {
		out = append(out, k+":"+v)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
