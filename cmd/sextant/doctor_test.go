package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/replset"
)

func TestDoctorsExitCodeAndJSONTellTheVerdict(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3})
	check := func(uri string, exit int, verdict string, findings int) {
		t.Helper()
		code, out, errOut := command(t, "doctor", uri, "--json", "--timeout", "5s")
		var got struct {
			Verdict  string
			Findings []struct{ Stage, Server, Cause, Cure string }
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v in %s%s", err, out, errOut)
		}
		if code != exit || got.Verdict != verdict || got.Findings == nil || len(got.Findings) != findings {
			t.Errorf("exit %d, %s", code, out)
		}
		for _, f := range got.Findings {
			if f.Stage == "" || f.Cause == "" || f.Cure == "" {
				t.Errorf("%+v", f)
			}
		}
	}
	check(set.URI(), 0, "healthy", 0)
	check("mongodb://127.0.0.1:1", 2, "unreachable", 1)
	check("mongodb://", 2, "unreachable", 1)
	if err := set.Kill(2); err != nil {
		t.Fatal(err)
	}
	check(set.URI(), 1, "degraded", 1)
	code, out, _ := command(t, "doctor", set.URI())
	if code != 1 || !strings.Contains(out, "\nverdict: degraded\n") || !strings.Contains(out, "cure:  start the server") || strings.Count(out, "\n") > 40 {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestDoctorRefusesATimeoutThatIsNone(t *testing.T) {
	if code, _, errOut := command(t, "doctor", "mongodb://localhost", "--timeout", "0s"); code != 2 || !strings.Contains(errOut, "--timeout") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}
