package replset

import (
	"slices"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

func TestWrongMemberAnswersForAnother(t *testing.T) {
	s := quick(t, Options{Members: 3, Fault: WrongMember})
	dialRaw(t, s, primaryIndex(t, s), "app").must(t, "t", insert(1, w(3)))
	c := dialRaw(t, s, 1, "victim")
	r := c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})
	if me, _ := r.Lookup("me").StringValueOK(); me != s.Member(1).Addr() {
		t.Errorf("hello gives the fault away: me is %s", me)
	}
	if got := c.ids(t); !slices.Equal(got, []string{"1"}) {
		t.Errorf("read %v", got)
	}
	if one, two := s.Member(1).OpCounters("victim")["find"], s.Member(2).OpCounters("victim")["find"]; one != 0 || two != 1 {
		t.Errorf("member 1 counted %d finds, member 2 %d", one, two)
	}
}

func TestLostWriteDiesWithThePrimary(t *testing.T) {
	s := quick(t, Options{Members: 3, Fault: LostWrite})
	p := primaryIndex(t, s)
	c := dialRaw(t, s, p, "app")
	c.must(t, "t", insert("old", w(3)))
	c.must(t, "t", insert("lost", majority()))
	if err := s.Kill(p); err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Second, "a new primary", func() bool { return s.Primary() != nil })
	if got := dialRaw(t, s, primaryIndex(t, s), "app").ids(t); !slices.Equal(got, []string{`"old"`}) {
		t.Errorf("the new primary has %v", got)
	}
	if err := s.Restart(p); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReplication(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := dialRaw(t, s, p, "app").ids(t); !slices.Equal(got, []string{`"old"`}) {
		t.Errorf("the old primary kept %v", got)
	}
}

func TestStaleTagIsReportedByHelloAlone(t *testing.T) {
	s := quick(t, Options{Fault: StaleTag, Config: []MemberOptions{{Tags: map[string]string{"dc": "east"}},
		{Tags: map[string]string{"dc": "east"}}, {Tags: map[string]string{"dc": "west"}}}})
	r := dialRaw(t, s, 1, "app").must(t, "admin", bson.D{{Key: "hello", Value: 1}})
	if dc, _ := r.Lookup("tags", "dc").StringValueOK(); dc != "west" {
		t.Errorf("hello reports %v", r.Lookup("tags"))
	}
	if dc := s.Member(1).Tags()["dc"]; dc != "east" {
		t.Errorf("the configuration says %s", dc)
	}
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"eight members":      {Members: 8},
		"negative":           {Members: -1},
		"more config":        {Members: 1, Config: make([]MemberOptions, 2)},
		"only an arbiter":    {Config: []MemberOptions{{Arbiter: true}}},
		"hidden electable":   {Config: []MemberOptions{{}, {Hidden: true, Priority: new(1.0)}}},
		"fault of one":       {Fault: LostWrite},
		"unknown fault":      {Members: 3, Fault: 99},
		"negative timeout":   {ElectionTimeout: -1},
		"nameless user":      {Users: []User{{Password: "x"}}},
		"port out of bounds": {Config: []MemberOptions{{Port: 70000}}},
	} {
		if s, err := Start(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", name)
			s.Close()
		}
	}
	s := Run(t)
	for name, err := range map[string]error{
		"kill 1":      s.Kill(1),
		"kill -1":     s.Kill(-1),
		"hang 7":      s.Hang(7, true),
		"delay -1 ms": s.Delay(0, -time.Millisecond),
		"twice":       s.Partition([]int{0}, []int{0}),
		"no command":  s.FailCommand(0, &FailCommand{}),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
