package sextant_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// The prose tests of the specification "max staleness". Each says which change of the driver would break it.

// stalenessOf is the max staleness that a connection string asks for, and what is wrong with the string.
func stalenessOf(t *testing.T, uri string) (d time.Duration, set bool, err error) {
	t.Helper()
	c, err := sextant.ParseURI(uri)
	if err != nil {
		return 0, false, err
	}
	if _, err := sextant.ConnectConfig(t.Context(), c); err != nil {
		return 0, false, err
	}
	if len(c.Warnings) > 0 {
		t.Errorf("%s: %v", uri, c.Warnings)
	}
	d, set = c.ReadPreference.MaxStaleness()
	return d, set, nil
}

// TestProseMaxStaleness1To6ConnectionStrings: broken by reading maxStalenessSeconds in another unit (1), by dropping it beside
// the mode primary without a word (2, 3), by taking -1 for a duration (4) or as set (5), or by comparing it with the heartbeat
// before there is a topology (6).
func TestProseMaxStaleness1To6ConnectionStrings(t *testing.T) {
	for _, tc := range []struct {
		number, uri string
		want        time.Duration
		invalid     bool
	}{
		{"1", "mongodb://host/?readPreference=secondary&maxStalenessSeconds=120", 120 * time.Second, false},
		{"2", "mongodb://host/?maxStalenessSeconds=120", 0, true},
		{"3", "mongodb://host/?readPreference=primary&maxStalenessSeconds=120", 0, true},
		{"4", "mongodb://host/?readPreference=secondary&maxStalenessSeconds=-1", 0, false},
		{"5", "mongodb://host/?readPreference=primary&maxStalenessSeconds=-1", 0, false},
		{"6", "mongodb://host/?readPreference=secondary&maxStalenessSeconds=1", time.Second, false},
	} {
		d, set, err := stalenessOf(t, tc.uri)
		if tc.invalid != mongoerr.IsConfig(err) || !tc.invalid && err != nil || d != tc.want || set != (tc.want > 0) {
			t.Errorf("%s: %s: %v, %v, %v", tc.number, tc.uri, d, set, err)
		}
	}
}

// TestTooSmallAMaxStalenessIsToldByTheFirstRead: the string is valid (prose test 6), for a mongos might take it.
func TestTooSmallAMaxStalenessIsToldByTheFirstRead(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.ReadPreference = readpref.Nearest(readpref.MaxStaleness(time.Second)) }, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_, err := b.orders().FindOne(t.Context(), bson.D{})
		if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "max staleness 1 s is below 90 s") || time.Since(begun) > 0 {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// TestProseMaxStaleness7And8HeartbeatFrequency: broken by an option that is read and not used, or only where members stream.
func TestProseMaxStaleness7And8HeartbeatFrequency(t *testing.T) {
	var beats events
	r := &routers{reply: bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true}, {Key: "maxWireVersion", Value: 21}, {Key: "ok", Value: 1}}}
	edit := func(c *sextant.Config) {
		if c.HeartbeatFrequency != 500*time.Millisecond {
			t.Errorf("read as %v", c.HeartbeatFrequency)
		}
		c.Monitor = beats.monitor()
	}
	inSharded(t, "mongodb://host/?heartbeatFrequencyMS=500", r, edit, func(t *testing.T, cl *sextant.Client) {
		if kind := kindOf(cl, "host:27017"); kind != event.Standalone {
			t.Fatalf("the server is %v", kind)
		}
		begun := time.Now()
		time.Sleep(10 * time.Second)
		n := 0
		beats.mu.Lock()
		defer beats.mu.Unlock()
		for _, b := range beats.beats {
			if b.E.Type == event.HeartbeatSucceeded && b.At.After(begun) {
				n++
			}
		}
		if n < 18 || n > 22 {
			t.Errorf("%d checks in 10 s", n)
		}
	})
}

// TestProseMaxStaleness9LastWriteDateIsParsed: broken by a lastWriteDate that is not read, or in another unit.
func TestProseMaxStaleness9LastWriteDateIsParsed(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.HeartbeatFrequency = 500 * time.Millisecond }, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		first := b.member(0).LastWrite
		time.Sleep(time.Second)
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if later := b.member(0).LastWrite.Sub(first); first.IsZero() || later <= 0 || later >= 10*time.Second {
			t.Errorf("the last write was at %v, then %v later", first, later)
		}
	})
}

// TestProseMaxStaleness10And11MongosIsTold: broken by a $readPreference without maxStalenessSeconds, with one as a double, or
// with one that nobody asked for.
func TestProseMaxStaleness10And11MongosIsTold(t *testing.T) {
	for uri, want := range map[string]bson.D{
		"mongodb://mongos/?readPreference=secondary&maxStalenessSeconds=120": {{Key: "mode", Value: "secondary"}, {Key: "maxStalenessSeconds", Value: int32(120)}},
		"mongodb://mongos/?readPreference=secondary":                         {{Key: "mode", Value: "secondary"}},
	} {
		var s seen
		inSharded(t, uri, &routers{}, func(c *sextant.Config) { c.Monitor = s.monitor() }, func(t *testing.T, cl *sextant.Client) {
			if _, err := cl.Database("shop").Collection("people").FindOne(t.Context(), bson.D{}); err != sextant.ErrNoDocuments {
				t.Fatal(err)
			}
			sent := s.take("find")
			if len(sent) != 1 {
				t.Fatalf("%v", sent)
			}
			same(t, sent[0].body.Lookup("$readPreference").Document(), want)
			v := sent[0].body.Lookup("$readPreference", "maxStalenessSeconds")
			if v.IsZero() != (len(want) == 1) || !v.IsZero() && v.Type != bson.TypeInt32 && v.Type != bson.TypeInt64 {
				t.Errorf("maxStalenessSeconds is %v", v)
			}
		})
	}
	if _, set := readpref.Secondary().MaxStaleness(); set {
		t.Error("a read preference without a max staleness has one")
	}
}
