package main

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant/replset"
)

func TestPeopleComeAndGo(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1})
	var out strings.Builder
	if err := run(t.Context(), &out, set.URI()); err != nil {
		t.Fatal(err)
	}
	want := `found joe of Ulm by the id that the insert wrote into joe
the id as a string matches nobody: a string is not an ObjectID
joe has a gold award
3 people live in Ulm
deleted 3
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
