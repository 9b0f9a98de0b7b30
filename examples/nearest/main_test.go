package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/replset"
)

func TestReadsGoWhereTheNearestSettingSays(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	var out strings.Builder
	if err := run(t.Context(), &out, set.URI()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^inherited .*RSPrimary 30\b`, `(?m)^collection: nearest .*RSPrimary ([1-9]|1\d|2\d)\b`, `(?m)^call: secondary .*RSPrimary 0\b`, `moon`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}
