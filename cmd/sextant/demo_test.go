package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/replset"
)

// fewReads keeps a demo short; the share of each member is then held to wider bounds of the same likelihood.
const fewReads = 60

// inMemory are the conditions of a run on fake time. Make them inside the bubble.
func inMemory(fault replset.Fault) conditions {
	return conditions{fault: fault, reads: fewReads, network: replset.NewMemoryNetwork()}
}

func TestDemoPassesOnAHealthySet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it mostly waits
		var out bytes.Buffer
		if err := runDemo(t.Context(), plain{&out}, inMemory(replset.NoFault)); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if !strings.HasSuffix(out.String(), "checks passed\n") {
			t.Errorf("the last line is not the verdict:\n%s", out.String())
		}
	})
}

func TestDemoNamesTheCheckThatAFaultBreaks(t *testing.T) {
	for fault, check := range map[string]string{
		"wrong-member": "secondary: east-2 alone",
		"stale-tag":    "goes to the member that the set tags so",
		"lost-write":   "every acknowledged write is there afterwards",
	} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				err := runDemo(t.Context(), quiet{plain{&out}}, inMemory(faults[fault]))
				if err == nil || !strings.Contains(out.String(), check) {
					t.Errorf("err %v, printed %q; want a failure that names %q", err, out.String(), check)
				}
			})
		})
	}
}

func TestReportAsJSONHoldsEveryCheck(t *testing.T) {
	var out bytes.Buffer
	r := newReport(asJSON{quiet{plain{&out}}})
	r.section("one")
	r.check("good", true, "%d of %d", 2, 2)
	r.check("bad", false, "1 of 2")
	r.end(r.checks)
	var got struct {
		Passed, Failed int
		Checks         []check
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Passed != 1 || got.Failed != 1 || len(got.Checks) != 2 || got.Checks[0] != (check{"one", "good", true, "2 of 2"}) {
		t.Errorf("got %+v", got)
	}
}

func TestQuietPrintsOneLineThatNamesTheFailures(t *testing.T) {
	var out bytes.Buffer
	r := newReport(quiet{plain{&out}})
	r.section("one")
	r.say("nothing of this")
	r.check("good", true, "yes")
	r.check("bad", false, "1 of 2")
	r.end(r.checks)
	if got := out.String(); got != "1 of 2 checks failed: bad (1 of 2)\n" {
		t.Errorf("got %q", got)
	}
}

func TestCommandLineErrorsAreOneLineAndExitWithTwo(t *testing.T) {
	for _, args := range [][]string{
		{"demo", "--break", "nothing"}, {"demo", "now"}, {"sail"}, {"serve", "--members", "9"}, {"serve", "--auth", "joe"},
		{"serve", "--port", "65535"}, {"hosts"}, {"hosts", "http://x"}, {"hosts", "mongodb://h/?nonsense=1"},
		{"explain", "mongodb://h", "--mode", "farthest"}, {"explain", "mongodb://h", "--mode", "primary", "--tags", "dc:east"},
		{"explain", "mongodb://h", "--tags", "dc:east"}, {"explain", "mongodb://h", "--mode", "nearest", "--tags", "dc"}, {"serve", "--nope"},
	} {
		var out, errOut bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		code := run(ctx, args, &out, &errOut)
		cancel()
		if code != 2 || strings.Count(errOut.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, out.String(), errOut.String())
		}
	}
}
