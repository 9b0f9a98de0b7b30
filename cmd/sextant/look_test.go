package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/replset"
)

// command runs one command line to its end.
func command(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	code = run(ctx, args, &o, &e)
	return code, o.String(), e.String()
}

func TestHostsListsEveryMember(t *testing.T) {
	set := replset.Run(t, replset.Options{Config: []replset.MemberOptions{{}, {Tags: map[string]string{"dc": "east"}}, {Arbiter: true}}})
	code, out, errOut := command(t, "hosts", set.URI(), "--json")
	if code != 0 {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	var got struct {
		Set     string
		Members []hostJSON
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	kinds := map[string]int{}
	for _, m := range got.Members {
		kinds[m.Kind]++
		if m.Address == set.Member(1).Addr() && m.Tags["dc"] != "east" {
			t.Errorf("tags of %s: %v", m.Address, m.Tags)
		}
		if m.RTT == nil || *m.RTT <= 0 || m.LastError != nil {
			t.Errorf("%s: round trip %v, last error %v", m.Address, m.RTT, m.LastError)
		}
	}
	if got.Set != "rs0" || kinds["RSPrimary"] != 1 || kinds["RSSecondary"] != 1 || kinds["RSArbiter"] != 1 {
		t.Errorf("set %q, kinds %v", got.Set, kinds)
	}
	if _, out, _ := command(t, "hosts", set.URI()); strings.Count(out, "\n") != 5 || !strings.HasPrefix(out, "set rs0, ReplicaSetWithPrimary\n") {
		t.Errorf("as text:\n%s", out)
	}
}

func TestHostsSaysWhyNobodyCanBeReached(t *testing.T) {
	code, out, _ := command(t, "hosts", "mongodb://127.0.0.1:1/?replicaSet=rs0", "--timeout", "1s", "--json")
	var got struct{ Members []hostJSON }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if code != 1 || len(got.Members) != 1 || got.Members[0].LastError == nil || !strings.Contains(*got.Members[0].LastError, "refused") {
		t.Errorf("exit %d, %s", code, out)
	}
}

func TestExplainSaysWhichRuleKeptEachMemberOut(t *testing.T) {
	set := replset.Run(t, replset.Options{Config: []replset.MemberOptions{
		{Priority: new(2.0), Tags: map[string]string{"dc": "east"}}, {Tags: map[string]string{"dc": "west"}}}})
	code, out, errOut := command(t, "explain", set.URI(), "--mode", "secondary", "--tags", "dc:west", "--json")
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errOut)
	}
	var got verdictJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Members {
		if m.Eligible != (m.Address == set.Member(1).Addr()) || m.Rule == "" {
			t.Errorf("%+v", m)
		}
	}
	code, out, _ = command(t, "explain", set.URI(), "--mode", "secondary", "--tags", "dc:north")
	if first, _, _ := strings.Cut(out, "\n"); code != 1 || !strings.Contains(first, "north") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestServePrintsTheURIFirstAndRunsUntilInterrupted(t *testing.T) {
	uri, end := serving(t, "--members", "1", "--port", "0", "--auth", "joe:secret")
	if code, out, _ := command(t, "hosts", uri); code != 0 || !strings.Contains(out, "RSPrimary") {
		t.Errorf("hosts %d: %s", code, out)
	}
	end()
}
