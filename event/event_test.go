package event

import (
	"errors"
	"testing"
	"time"
)

func TestVerdictPrintsSentenceThenMembers(t *testing.T) {
	v := Verdict{Sentence: "1 member serves a read", Members: []MemberVerdict{
		{Address: "a:1", Kind: RSPrimary, Rule: "is RSPrimary, secondary wanted"},
		{Address: "b:2", Kind: RSSecondary, Eligible: true, Rule: "2 ms <= 2 ms + 15 ms"},
	}}
	want := "1 member serves a read\n  - a:1 RSPrimary: is RSPrimary, secondary wanted\n  + b:2 RSSecondary: 2 ms <= 2 ms + 15 ms"
	if v.String() != want {
		t.Errorf("got\n%s\nwant\n%s", v, want)
	}
	if e := v.Eligible(); len(e) != 1 || e[0] != "b:2" {
		t.Errorf("eligible %v", e)
	}
}

func TestTopologyPrintsOneLine(t *testing.T) {
	top := Topology{Kind: ReplicaSetWithPrimary, SetName: "rs0", Members: []Member{
		{Address: "a:1", Kind: RSPrimary, RTT: 2 * time.Millisecond},
		{Address: "b:2", LastError: errors.New("connection refused\nmore")},
	}}
	if got, want := top.String(), "ReplicaSetWithPrimary rs0: a:1 RSPrimary 2 ms, b:2 Unknown (connection refused)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, ok := top.Member("c:3"); ok {
		t.Error("found a member that is not there")
	}
}

func TestFormatDurationUsesPeoplesUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 2 * time.Millisecond: "2 ms", 1500 * time.Microsecond: "1.5 ms", 350 * time.Microsecond: "350 us",
		90 * time.Second: "90 s", 2 * time.Second: "2 s", 1999 * time.Millisecond: "1999 ms", -3 * time.Millisecond: "-3 ms",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestKindsHaveTheSpecificationsNames(t *testing.T) {
	if RSGhost.String() != "RSGhost" || LoadBalancer.String() != "LoadBalancer" || Kind(99).String() != "Kind(99)" {
		t.Error(RSGhost, LoadBalancer, Kind(99))
	}
	if LoadBalanced.String() != "LoadBalanced" || TopologyUnknown.String() != "Unknown" {
		t.Error(LoadBalanced, TopologyUnknown)
	}
}
