package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/event"
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
	began := time.Now()
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
		if m.RTT == nil || *m.RTT <= 0 || m.LastError != nil || m.Quarantine != nil {
			t.Errorf("%s: round trip %v, last error %v, quarantine %v", m.Address, m.RTT, m.LastError, m.Quarantine)
		}
		if m.Dialled != m.Address || m.Since == nil || m.Since.Before(began.Add(-time.Millisecond)) || m.State != strings.ToUpper(strings.TrimPrefix(m.Kind, "RS")) {
			t.Errorf("%s: dialled %s, %s since %v", m.Address, m.Dialled, m.State, m.Since)
		}
	}
	if got.Set != "rs0" || kinds["RSPrimary"] != 1 || kinds["RSSecondary"] != 1 || kinds["RSArbiter"] != 1 {
		t.Errorf("set %q, kinds %v", got.Set, kinds)
	}
	if _, out, _ := command(t, "hosts", set.URI()); strings.Count(out, "\n") != 5 || !strings.HasPrefix(out, "set rs0, ReplicaSetWithPrimary\n") {
		t.Errorf("as text:\n%s", out)
	}
}

// A client that sets some addresses aside and dials others prints them so: the command has no options for that.
func TestTableOfHostsShowsWhereMembersAreDialledAndWhyNotUsed(t *testing.T) {
	since := time.Date(2026, 11, 30, 13, 4, 5, 0, time.Local)
	top := event.Topology{SetName: "rs0", Kind: event.ReplicaSetNoPrimary, Members: []event.Member{
		{Address: "db1:27017", Dialled: "10.0.0.1:27017", Kind: event.RSSecondary, Since: since, RTT: 1500 * time.Microsecond, Quarantine: "its disk fails"},
		{Address: "db2:27017", Dialled: "db2:27017", Kind: event.Unknown, LastError: errors.New("nobody\nthere")},
	}}
	var out bytes.Buffer
	if err := printHosts(&out, top, false); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"set rs0, ReplicaSetNoPrimary",
		"address    dialled         kind         state      since     round trip  lag  tags  quarantine      last error",
		"db1:27017  10.0.0.1:27017  RSSecondary  SECONDARY  13:04:05  1.5 ms      -    -     its disk fails  -",
		"db2:27017  db2:27017       Unknown      DOWN       -         -           -    -     -               nobody",
	}
	if got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s", out.String())
	}
}

func TestHostsSaysWhyNobodyCanBeReached(t *testing.T) {
	code, out, _ := command(t, "hosts", "mongodb://127.0.0.1:1/?replicaSet=rs0", "--timeout", "1s", "--json")
	var got struct{ Members []hostJSON }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if code != 1 || len(got.Members) != 1 || got.Members[0].State != "DOWN" || got.Members[0].LastError == nil || !strings.Contains(*got.Members[0].LastError, "refused") {
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
