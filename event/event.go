// Package event holds what a client tells its user: the values that describe a deployment (Topology, Member,
// Verdict) and what happened to it (commands, pools, heartbeats, topology changes, selections).
//
// Every value is a snapshot that nobody changes afterwards; slices, maps and documents inside are shared and must not
// be written to. Callbacks of a Monitor must be safe for concurrent use and should be quick: command callbacks run on
// the goroutine of the caller, the others on one publisher whose queue is bounded.
package event

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// Kind is the state of a member as its last hello told it (SDAM, ServerType).
type Kind uint8

// Kinds of members. PossiblePrimary is Unknown in all but name: another member takes it for the primary.
const (
	Unknown Kind = iota
	Standalone
	Mongos
	RSPrimary
	RSSecondary
	RSArbiter
	RSOther // hidden, starting up or recovering
	RSGhost // of a replica set that is not initiated, or that it was removed from
	PossiblePrimary
	LoadBalancer
)

var kindNames = [...]string{"Unknown", "Standalone", "Mongos", "RSPrimary", "RSSecondary", "RSArbiter", "RSOther",
	"RSGhost", "PossiblePrimary", "LoadBalancer"}

// String is the specification's name: "RSPrimary".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// Known says whether the member has answered a hello.
func (k Kind) Known() bool { return k != Unknown && k != PossiblePrimary }

// DataBearing says whether such a member can hold or pass on application data.
func (k Kind) DataBearing() bool {
	switch k {
	case Standalone, Mongos, RSPrimary, RSSecondary, LoadBalancer:
		return true
	}
	return false
}

// TopologyKind is the shape of a deployment (SDAM, TopologyType).
type TopologyKind uint8

// Kinds of topologies.
const (
	TopologyUnknown TopologyKind = iota
	Single
	ReplicaSetNoPrimary
	ReplicaSetWithPrimary
	Sharded
	LoadBalanced
)

var topologyKindNames = [...]string{"Unknown", "Single", "ReplicaSetNoPrimary", "ReplicaSetWithPrimary", "Sharded", "LoadBalanced"}

// String is the specification's name: "ReplicaSetWithPrimary".
func (k TopologyKind) String() string {
	if int(k) < len(topologyKindNames) {
		return topologyKindNames[k]
	}
	return fmt.Sprintf("TopologyKind(%d)", k)
}

// IsReplicaSet says whether the deployment is known to be a replica set.
func (k TopologyKind) IsReplicaSet() bool {
	return k == ReplicaSetNoPrimary || k == ReplicaSetWithPrimary
}

// PoolStats counts the connections of one member's pool.
type PoolStats struct {
	InUse, Idle, Pending int    // checked out; free; being opened
	Draining             int    // waiting for the late reply to a call that was given up
	Waiting              int    // operations that wait for a connection
	Total                int    // InUse + Idle + Pending + Draining
	Generation           uint64 // how often the pool was cleared
	Services             int    // behind a load balancer: the services that connections lead to; else 0
	HeldByCursors        int    // of InUse: kept by cursors (behind a load balancer only)
	HeldByTransactions   int    // of InUse: kept by transactions (behind a load balancer only)
}

// Member is what the client knows about one server. Durations are 0, times zero and texts empty while unknown.
type Member struct {
	Address string // as the topology names it, lower case: a seed as it was given, or as the set advertises the member
	Dialled string // where it is looked for: Address, unless Config.AddressMap says otherwise
	Me      string // as the member names itself
	Kind    Kind
	SetName string
	Tags    map[string]string
	Primary string // whom the member takes for the primary

	RTT, MinRTT time.Duration // moving average of round trips; least of the last ten (0 until there are two)
	LastWrite   time.Time     // the member's newest write, by its own clock
	Lag         time.Duration // how far a secondary is behind (specification "max staleness")
	LagKnown    bool

	Hosts, Passives, Arbiters []string
	Hidden                    bool
	ElectionID                bson.ObjectID // zero if none
	SetVersion                int64         // 0 if none
	MinWire, MaxWire          int32
	SessionTimeoutMinutes     int64 // -1 if the member has no sessions

	Quarantine        string    // why Client.Quarantine left it out; empty if it did not
	LastUpdate, Since time.Time // last hello or failure; when it came into this Kind
	LastError         error     // why it is Unknown, or the last failure of its pool
	LastErrorStage    string    // "dial", "auth" ...
	Hello             bson.Raw  // the last hello reply whole, also while the member is Unknown; nil if there was none
	Pool              PoolStats // filled in by the client, zero inside topology events
}

// String is one line: "db1:27017 RSSecondary 2 ms".
func (m Member) String() string {
	s := mongoerr.OneLine(m.Address) + " " + m.Kind.String()
	if m.RTT > 0 {
		s += " " + FormatDuration(m.RTT)
	}
	if m.LastError != nil && !m.Kind.Known() {
		s += " (" + firstLine(m.LastError.Error()) + ")"
	}
	return s
}

// Topology is what the client knows about the whole deployment.
type Topology struct {
	Kind                  TopologyKind
	SetName               string // "" unless it is a replica set
	Members               []Member
	Seeds                 []string
	CompatError           string // why no operation is possible: a member speaks no wire version that the client speaks
	SessionTimeoutMinutes int64  // -1 if sessions are not possible, or behind a load balancer, where they always are
}

// Member finds a member by its address.
func (t Topology) Member(address string) (Member, bool) {
	i := slices.IndexFunc(t.Members, func(m Member) bool { return m.Address == address })
	if i < 0 {
		return Member{}, false
	}
	return t.Members[i], true
}

// String is one line: "ReplicaSetWithPrimary rs0: a:1 RSPrimary 2 ms, b:2 RSSecondary 5 ms".
func (t Topology) String() string {
	words := make([]string, len(t.Members))
	for i, m := range t.Members {
		words[i] = m.String()
	}
	s := t.Kind.String()
	if t.SetName != "" {
		s += " " + mongoerr.OneLine(t.SetName)
	}
	return s + ": " + strings.Join(words, ", ")
}

// FormatDuration writes a duration as people say it: "2 ms", "1.5 ms", "350 us", "2 s".
func FormatDuration(d time.Duration) string {
	trim := func(f float64, unit string) string {
		s := fmt.Sprintf("%.1f", f)
		return strings.TrimSuffix(s, ".0") + " " + unit
	}
	abs := d.Abs()
	switch {
	case abs >= 10*time.Second || abs >= time.Second && d%time.Second == 0:
		return trim(d.Seconds(), "s")
	case abs >= time.Millisecond || abs == 0:
		return trim(float64(d)/float64(time.Millisecond), "ms")
	}
	return trim(float64(d)/float64(time.Microsecond), "us")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return mongoerr.OneLine(line)
}
