package readpref

import (
	"testing"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
)

func TestStringNamesEveryPart(t *testing.T) {
	p := Secondary(Tags("dc", "east", "use", "r"), Tags(), MaxStaleness(90*time.Second))
	if got, want := p.String(), `mode secondary, tags [{dc: "east", use: "r"}, {}], max staleness 90 s`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var none *ReadPref
	if none.String() != "mode primary" || none.Mode() != PrimaryMode || !none.IsPlain() {
		t.Error("nil is not the primary")
	}
}

func TestDocumentHasModeTagsAndStaleness(t *testing.T) {
	d := Nearest(Tags("dc", "east"), MaxStaleness(2*time.Minute)).Document()
	if mode, _ := d.Lookup("mode").StringValueOK(); mode != "nearest" {
		t.Errorf("mode %q", mode)
	}
	if v, _ := d.Lookup("tags", "0", "dc").StringValueOK(); v != "east" {
		t.Errorf("tag %q", v)
	}
	if n, _ := d.Lookup("maxStalenessSeconds").AsInt64OK(); n != 120 {
		t.Errorf("staleness %d", n)
	}
	if d := Primary().Document(); d.Len() != 1 || d.Validate() != nil {
		t.Errorf("primary has %v", d)
	}
}

func TestValidateRefusesSenselessPreferences(t *testing.T) {
	bad := map[string]func() (*ReadPref, error){
		"primary with tags":      func() (*ReadPref, error) { return New(PrimaryMode, Tags("a", "b")) },
		"primary with staleness": func() (*ReadPref, error) { return New(PrimaryMode, MaxStaleness(90*time.Second)) },
		"odd tags":               func() (*ReadPref, error) { return New(NearestMode, Tags("a")) },
		"same key twice":         func() (*ReadPref, error) { return New(NearestMode, Tags("a", "1", "a", "2")) },
		"negative staleness":     func() (*ReadPref, error) { return New(NearestMode, MaxStaleness(-time.Second)) },
		"half a second":          func() (*ReadPref, error) { return New(NearestMode, MaxStaleness(time.Second/2)) },
		"unknown mode":           func() (*ReadPref, error) { return New(Mode(9)) },
		"a nil option":           func() (*ReadPref, error) { return New(NearestMode, nil) },
	}
	for name, build := range bad {
		if _, err := build(); !mongoerr.IsConfig(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := New(PrimaryMode, Tags()); err != nil {
		t.Errorf("primary with the empty tag set: %v", err)
	}
}

func TestTagSetMatchesWhenEveryTagIsThere(t *testing.T) {
	member := map[string]string{"dc": "east", "use": "r"}
	for set, want := range map[*TagSet]bool{
		{}:                              true,
		{{"dc", "east"}}:                true,
		{{"dc", "east"}, {"use", "r"}}:  true,
		{{"dc", "west"}}:                false,
		{{"dc", "east"}, {"rack", "1"}}: false,
		{{"rack", ""}}:                  false,
	} {
		if got := set.Match(member); got != want {
			t.Errorf("%v: got %v", set, got)
		}
	}
}

func TestParseModeTakesAnyCase(t *testing.T) {
	if m, err := ParseMode("secondarypreferred"); err != nil || m != SecondaryPreferredMode {
		t.Error(m, err)
	}
	if _, err := ParseMode("slave"); !mongoerr.IsConfig(err) {
		t.Error(err)
	}
}
