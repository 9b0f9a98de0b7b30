package replset

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

func TestWrongMemberAnswersForAnother(t *testing.T) {
	onFakeTime(t, Options{Members: 3, Fault: WrongMember}, func(t *testing.T, s *Set) {
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
	})
}

// TestFaultsOutliveTheRemovalOfTheMemberTheyNeed: the victim starts again when the last member is no longer in the set.
func TestFaultsOutliveTheRemovalOfTheMemberTheyNeed(t *testing.T) {
	for _, fault := range []Fault{WrongMember, StaleTag} {
		for _, gone := range [][]int{{2}, {2, 0}} {
			onFakeTime(t, Options{Members: 3, Fault: fault}, func(t *testing.T, s *Set) {

				for _, i := range gone {
					if err := s.RemoveMember(t.Context(), i); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Kill(1); err != nil {
					t.Fatal(err)
				}
				if err := s.Restart(1); err != nil {
					t.Fatal(err)
				}
				if _, err := s.WaitPrimary(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestLostWriteDiesWithThePrimary(t *testing.T) {
	onFakeTime(t, Options{Members: 3, Fault: LostWrite}, func(t *testing.T, s *Set) {
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
	})
}

func TestStaleTagIsReportedByHelloAlone(t *testing.T) {
	onFakeTime(t, Options{Fault: StaleTag, Config: []MemberOptions{{Tags: map[string]string{"dc": "east"}},
		{Tags: map[string]string{"dc": "east"}}, {Tags: map[string]string{"dc": "west"}}}}, func(t *testing.T, s *Set) {
		r := dialRaw(t, s, 1, "app").must(t, "admin", bson.D{{Key: "hello", Value: 1}})
		if dc, _ := r.Lookup("tags", "dc").StringValueOK(); dc != "west" {
			t.Errorf("hello reports %v", r.Lookup("tags"))
		}
		if dc := s.Member(1).Tags()["dc"]; dc != "east" {
			t.Errorf("the configuration says %s", dc)
		}
	})
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	tagged := func(name, value string) []MemberOptions {
		return []MemberOptions{{Tags: map[string]string{name: value}}}
	}
	mode := func(name, tag string, n int) map[string]map[string]int {
		return map[string]map[string]int{name: {tag: n}}
	}
	joe := User{Name: "joe", Password: "x"}
	for name, k := range map[string]struct {
		o    Options
		want string // in the error
	}{
		"eight members":        {Options{Members: 8}, "1 to 7"},
		"negative":             {Options{Members: -1}, "-1"},
		"more config":          {Options{Members: 1, Config: make([]MemberOptions, 2)}, "2 members are configured"},
		"only an arbiter":      {Options{Config: []MemberOptions{{Arbiter: true}}}, "priority > 0"},
		"hidden electable":     {Options{Config: []MemberOptions{{}, {Hidden: true, Priority: new(1.0)}}}, "member 1"},
		"fault of one":         {Options{Fault: LostWrite}, "lost-write"},
		"unknown fault":        {Options{Members: 3, Fault: 99}, "fault 99"},
		"negative timeout":     {Options{ElectionTimeout: -1}, "negative"},
		"hasty elections":      {Options{Members: 3, ElectionTimeout: 1}, "at least 10ms"},
		"rare heartbeats":      {Options{Members: 3, HeartbeatInterval: time.Hour}, "1h0m0s"},
		"nameless user":        {Options{Users: []User{{Password: "x"}}}, "name"},
		"user without secret":  {Options{Users: []User{{Name: "joe"}}}, `"joe" needs a password`},
		"user twice":           {Options{Users: []User{joe, {Name: "joe", Password: "y", DB: "admin"}}}, "twice"},
		"port out of bounds":   {Options{Config: []MemberOptions{{Port: 70000}}}, "member 0 cannot listen"},
		"negative port":        {Options{Config: []MemberOptions{{Port: -1}}}, "member 0 cannot listen"},
		"set name of a list":   {Options{SetName: "rs0/a:1,b:2"}, "set name"},
		"set name with NUL":    {Options{SetName: "rs\x000"}, "set name"},
		"set name of bytes":    {Options{SetName: "rs\xff"}, "set name"},
		"member's name":        {Options{Config: []MemberOptions{{Name: "a b/c"}}}, "a b/c"},
		"priority NaN":         {Options{Members: 2, Config: []MemberOptions{{Priority: new(math.NaN())}}}, "out of range"},
		"tag with NUL":         {Options{Config: tagged("a\x00", "b")}, "tag"},
		"tag without name":     {Options{Config: tagged("", "b")}, "tag"},
		"tag of bytes":         {Options{Config: tagged("a", "\xff")}, "tag"},
		"arbiter with tags":    {Options{Members: 2, Config: []MemberOptions{{}, {Arbiter: true, Tags: map[string]string{"a": "b"}}}}, "arbiter cannot have tags"},
		"mode of none":         {Options{Config: tagged("dc", "x"), WriteModes: mode("m", "dc", 0)}, "0 values"},
		"mode of nobody's tag": {Options{Config: tagged("dc", "x"), WriteModes: mode("m", "rack", 1)}, "no member has"},
		"mode of no tag":       {Options{WriteModes: map[string]map[string]int{"m": nil}}, "no tag"},
		"mode majority":        {Options{Config: tagged("dc", "x"), WriteModes: mode("majority", "dc", 1)}, `"majority"`},
	} {
		s, err := Start(t.Context(), k.o)
		if err == nil {
			t.Errorf("%s: accepted", name)
			s.Close()
		} else if !strings.Contains(err.Error(), k.want) || !strings.HasPrefix(err.Error(), "replset: ") {
			t.Errorf("%s: %v; want it to tell of %q", name, err, k.want)
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

func TestMemberWhoseNameIsUnknownIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Options{Members: 2, ElectionTimeout: 100 * time.Millisecond, Config: []MemberOptions{{}, {Name: "member.invalid"}}})
	if err == nil || !strings.Contains(err.Error(), "member.invalid") {
		t.Errorf("%v", err)
	}
}

func TestNameOfASetIsEscapedInItsURI(t *testing.T) {
	s := Run(t, Options{SetName: "a b&c=d%"})
	if uri := s.URI(); !strings.HasSuffix(uri, "?replicaSet=a%20b%26c%3Dd%25") {
		t.Errorf("%s", uri)
	}
}
