package main

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant/cmd/sextant/internal/doctor"
	"github.com/sextantdb/sextant/event"
)

// TestServersSteerNoTerminal: names, tags and words of a server stay inside the line that prints them.
func TestServersSteerNoTerminal(t *testing.T) {
	const evil = "x\nhealthy\x1b[2J"
	var hosts, page strings.Builder
	set := event.Topology{SetName: evil, Members: []event.Member{{Address: "a:1", Tags: map[string]string{"dc": evil}}}}
	if err := printHosts(&hosts, set, false); err != nil {
		t.Fatal(err)
	}
	if err := printDiagnosis(&page, &doctor.Diagnosis{Verdict: doctor.Degraded, Findings: []doctor.Finding{{Server: evil, Cause: evil, Cure: evil}}}); err != nil {
		t.Fatal(err)
	}
	for text, n := range map[string]int{hosts.String(): 2, page.String(): 3} {
		if strings.Contains(text, "\x1b") || strings.Contains(text, "\nhealthy") || strings.Count(text, `x\nhealthy\x1b[2J`) != n {
			t.Errorf("printed:\n%q", text)
		}
	}
}
