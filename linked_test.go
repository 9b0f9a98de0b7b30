package sextant_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestProgramsDoNotLinkNetHTTP holds the driver to its promise that a program which uses it does not carry an HTTP client.
func TestProgramsDoNotLinkNetHTTP(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/internal/credential") {
		t.Fatalf("the list is not that of the driver: %d packages", len(deps))
	}
	if slices.Contains(deps, "net/http") {
		t.Error("the driver links net/http")
	}
}
