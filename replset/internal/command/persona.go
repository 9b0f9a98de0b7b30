package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// Persona is the server version that a member claims to be, and what follows from it for clients. Commands that the
// version did not have yet are not refused.
type Persona struct {
	Version string // "8.0.0"
	wire    int32  // maxWireVersion
}

// The first wire version of each series.
const (
	wire42 = 8
	wire44 = 9
	wire50 = 13
	wire60 = 17
	wire70 = 21
	wire80 = 25
)

// personas are one release of each series that drivers are to speak to, the newest first: late ones of the old, for the late
// ones know hello.
var personas = []Persona{
	{"8.0.0", wire80}, {"7.0.16", wire70}, {"6.0.20", wire60}, {"5.0.31", wire50}, {"4.4.29", wire44}, {"4.2.24", wire42}, {"4.0.28", 7},
}

// PersonaOf is the persona of a series such as "4.0"; "" is the newest.
func PersonaOf(series string) (*Persona, error) {
	if series == "" {
		return &personas[0], nil
	}
	for i := range personas {
		if p := &personas[i]; p.Series() == series {
			return p, nil
		}
	}
	return nil, fmt.Errorf("there is no server version %q here; there are %s", series, strings.Join(Versions(), ", "))
}

// Versions are the series that there are personas of, the newest first.
func Versions() []string {
	out := make([]string, len(personas))
	for i := range personas {
		out[i] = personas[i].Series()
	}
	return out
}

// Series is the version without its last number.
func (p *Persona) Series() string { return p.Version[:strings.LastIndexByte(p.Version, '.')] }

// since is a code that has changed in a version.
func (p *Persona) since(wire, old, now int32) int32 {
	if p.wire >= wire {
		return now
	}
	return old
}

func (p *Persona) versionArray() bson.A {
	var a, b, c int32
	_, _ = fmt.Sscanf(p.Version, "%d.%d.%d", &a, &b, &c)
	return bson.A{a, b, c, int32(0)}
}

// streams says whether hello tells a topologyVersion, waits for a newer one and tells unasked (since 4.4: server
// monitoring specification, "Streaming Protocol"). Replies with state change errors tell it too.
func (p *Persona) streams() bool { return p.wire >= wire44 }

// labels says whether the server itself labels errors of retryable writes (since 4.4: retryable writes specification).
func (p *Persona) labels() bool { return p.wire >= wire44 }

// majorityByDefault says whether a write without a write concern waits for a majority (since 5.0).
func (p *Persona) majorityByDefault() bool { return p.wire >= wire50 }

// snapshots says whether reads of level snapshot are served: outside transactions they are since 5.0, and in them, where
// older versions have them alone, nothing is.
func (p *Persona) snapshots() bool { return p.wire >= wire50 }

// Balances says whether services may be behind a load balancer (since 5.0: load balancers specification).
func (p *Persona) Balances() bool { return p.wire >= wire50 }

// drops says whether a change of state closes the connections of clients. Up to 4.0 the end of being primary does; since
// 4.2 a primary that steps down keeps them and interrupts what runs (manual, replSetStepDown, "Client Connections"). Going
// into ROLLBACK or out of the configuration closes them in every version. RECOVERING and becoming primary never do.
// Sources: recordings of a 4.0 server; of the server's ReplicationCoordinatorImpl, what it does after a change of state.
func (p *Persona) drops(was, is repl.Role) bool {
	switch {
	case was == is:
		return false
	case is == repl.RoleRollback || is == repl.RoleRemoved:
		return true
	}
	return was == repl.RolePrimary && p.wire < wire42
}

// oldWords are what versions before 5.0 said.
var oldWords = strings.NewReplacer("not primary and secondaryOk=false", "not master and slaveOk=false", "not primary", "not master")

// oldNames are names of codes before 4.4.
var oldNames = map[int32]string{
	mongoerr.CodeNotWritablePrimary: "NotMaster", mongoerr.CodeNotPrimaryNoSecondaryOk: "NotMasterNoSlaveOk",
	mongoerr.CodeNotPrimaryOrSecondary: "NotMasterOrSecondary", mongoerr.CodeNotARetryableWriteCommand: "Location50768",
}

// words are an error's message and name as the version has them.
func (p *Persona) words(e *mongoerr.Error) (message, name string) {
	message, name = e.Message, codeName(e.Code, e.CodeName)
	if dup := duplicate(e); dup != nil && p.wire < wire42 {
		message = dup.Old
	} else if dup != nil && p.wire < wire44 {
		message = dup.Plain
	}
	old, renamed := oldNames[e.Code]
	if renamed && p.wire < wire50 {
		message = oldWords.Replace(message)
	}
	if renamed && p.wire < wire44 {
		name = old
	}
	return message, name
}

// duplicate is the key that an error 11000 is about, nil for other errors.
func duplicate(e *mongoerr.Error) *store.DuplicateKey {
	d, _ := errors.AsType[*store.DuplicateKey](e.Cause)
	return d
}

// details are what is told of an error beside its code and message: since 4.2 the key that is there already.
func (p *Persona) details(e *mongoerr.Error) bson.D {
	if v, ok := errors.AsType[*store.Invalid](e.Cause); ok && p.wire >= wire50 {
		return bson.D{{Key: "errInfo", Value: v.Info}}
	}
	dup := duplicate(e)
	if dup == nil || p.wire < wire42 {
		return nil
	}
	if p.wire < wire44 {
		return bson.D{{Key: "keyPattern", Value: dup.Pattern}, {Key: "keyValue", Value: dup.Value}}
	}
	d := bson.D{{Key: "keyPattern", Value: dup.Pattern}, {Key: "keyValue", Value: dup.Encoded}}
	if dup.Hex != nil {
		d = append(d, bson.E{Key: "hexEncoded", Value: dup.Hex})
	}
	if dup.Collation != nil {
		d = append(d, bson.E{Key: "collation", Value: dup.Collation})
	}
	return d
}

// dropClients closes the connections of clients that have introduced themselves by a hello; others a server leaves.
func (m *Member) dropClients() {
	m.mu.Lock()
	var out []*Conn
	for c := range m.conns {
		if c.hailed.Load() {
			out = append(out, c)
		}
	}
	m.mu.Unlock()
	for _, c := range out {
		shut(raw(c.nc))
		c.cancel(errHungUp)
	}
}

// interrupted is what a write is answered that was under way when the member ceased to be primary.
func interrupted() *mongoerr.Error {
	return mongoerr.Server(mongoerr.CodeInterruptedDueToReplStateChange, "operation was interrupted")
}
