package main

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant/replset"
)

func TestNothingIsLostOverAStepDownAndACrash(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	var out strings.Builder
	if err := run(t.Context(), &out, set); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "all of them there") {
		t.Error(out.String())
	}
}
