package topology

import (
	"slices"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// Want is what an operation needs of a member. The zero value is a read from the primary.
type Want struct {
	Write          bool               // needs a member that takes writes; ReadPref is ignored
	ReadPref       *readpref.ReadPref // nil is the primary
	Address        string             // this member or nothing, if it is known at all: getMore, killCursors
	LocalThreshold *time.Duration     // nil is the topology's
	Pinned         string             // this member for as long as it is suitable, however slow; "": none
	Deprioritized  []string           // members that failed in this call's earlier attempts: only if nobody else serves
	OutMerge       bool               // a read that ends in a write ($out, $merge): members before 5.0 do that on the primary alone

	// Selector is the caller's own rule. It gets the suitable members before the latency window and returns those that
	// it lets stay. It may run more than once. What it panics with is the error of the selection.
	Selector func([]event.Member) []event.Member
}

// String is the want in words: `a read with mode secondary, tags [{dc: "east"}]`.
func (w Want) String() string {
	switch {
	case w.Address != "":
		return "a command for " + w.Address
	case w.Write:
		return "a write"
	}
	return "a read with " + w.ReadPref.String()
}

// wireOutMergeOnSecondaries is MongoDB 5.0, whose secondaries run $out and $merge.
const wireOutMergeOnSecondaries = 13

// mode is the read preference mode that counts in a replica set.
func (d *Description) mode(w *Want) readpref.Mode {
	if w.Write {
		return readpref.PrimaryMode
	}
	if w.OutMerge {
		for _, s := range d.Servers {
			if s.Kind.Known() && s.MaxWire < wireOutMergeOnSecondaries {
				return readpref.PrimaryMode
			}
		}
	}
	return w.ReadPref.Mode()
}

// The plain wants, whose candidates every Description holds ready: a write, and a read of each mode.
const (
	plainWrite = 0
	plainRead  = 1 // plus the mode
	plainWants = 6
)

func (w *Want) plain() (int, bool) {
	switch {
	case w.Address != "" || w.Pinned != "" || w.Selector != nil || w.LocalThreshold != nil || w.OutMerge || len(w.Deprioritized) > 0:
		return 0, false
	case w.Write:
		return plainWrite, true
	case !w.ReadPref.IsPlain() || w.ReadPref.Validate() != nil:
		return 0, false
	}
	return plainRead + int(w.ReadPref.Mode()), true
}

var plainPrefs = [...]*readpref.ReadPref{readpref.Primary(), readpref.PrimaryPreferred(), readpref.Secondary(),
	readpref.SecondaryPreferred(), readpref.Nearest()}

func (d *Description) fillPlain() {
	d.plain[plainWrite] = d.pick(&Want{Write: true})
	for i, p := range plainPrefs {
		d.plain[plainRead+i] = d.pick(&Want{ReadPref: p})
	}
}

// Candidates returns the members that may serve, after suitability, the caller's selector and the latency window; none
// if nobody may. Do not change the slice: for a write and the plain modes it is made once a description.
func (d *Description) Candidates(w Want, _ time.Time) []*Server {
	found, _ := d.Choose(w)
	return found
}

// Ready are the candidates of a plain want, which is a write or a read of a mode and nothing more; false for any other.
func (d *Description) Ready(w *Want) ([]*Server, bool) {
	i, ok := w.plain()
	if !ok {
		return nil, false
	}
	return d.plain[i], true
}

// Choose is Candidates with the error of a selector that panicked.
func (d *Description) Choose(w Want) ([]*Server, error) {
	if found, ok := d.Ready(&w); ok {
		return found, nil
	}
	other := w // what w is copied to goes to the heap, w itself does not
	t := trial{d: d, w: &other}
	found := t.servers()
	return found, t.fault
}

func (d *Description) pick(w *Want) []*Server {
	t := trial{d: d, w: w}
	return t.servers()
}

func (t *trial) servers() []*Server {
	d := t.d
	found := t.run()
	if len(found) == 0 {
		return nil
	}
	out := make([]*Server, len(found))
	for i, n := range found {
		out[i] = d.Servers[n]
	}
	return out
}

// Suits says whether the server is of a kind that serves the want, whoever serves it better. Tags, staleness and round
// trips do not count: they come and go.
func (d *Description) Suits(w Want, addr string) bool {
	s := d.Server(addr)
	if s == nil || d.quarantined(addr) {
		return false
	}
	if !d.Kind.IsReplicaSet() {
		return s.Kind.Known()
	}
	switch d.mode(&w) {
	case readpref.PrimaryMode:
		return s.Kind == event.RSPrimary
	case readpref.SecondaryMode:
		return s.Kind == event.RSSecondary
	}
	return isMemberWithData(s.Kind)
}

// Invalid says why the want can never be served, or nothing can be: an ill-formed read preference, a max staleness
// below what the heartbeat allows, or a member whose wire version is not spoken. Waiting does not help.
func (d *Description) Invalid(w Want) error {
	if d.CompatErr != nil {
		return d.CompatErr
	}
	if w.Write {
		return nil
	}
	if err := w.ReadPref.Validate(); err != nil {
		return err
	}
	limit, set := w.ReadPref.MaxStaleness()
	if !set || !d.Kind.IsReplicaSet() {
		return nil
	}
	if least := max(SmallestMaxStaleness, d.cfg.HeartbeatInterval+IdleWritePeriod); limit < least {
		return mongoerr.New(mongoerr.StageConfig,
			"read preference: max staleness %s is below %s, the least that can be told (90 s, and the heartbeat interval %s plus 10 s)",
			event.FormatDuration(limit), event.FormatDuration(least), event.FormatDuration(d.cfg.HeartbeatInterval))
	}
	return nil
}

// Hopeless says whether no event can ever make the want come true: it is Invalid, or every seed was refused and none
// is left to hear news from.
func (d *Description) Hopeless(w Want) bool {
	return d.Invalid(w) != nil || len(d.Servers) == 0 && !d.cfg.SRV
}

func isDeprioritized(w *Want, addr string) bool { return slices.Contains(w.Deprioritized, addr) }
