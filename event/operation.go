package event

import (
	"fmt"
	"strings"
	"time"
)

// OperationReport is what became of one operation: one command with all attempts at it.
type OperationReport struct {
	Name        string // the command: "find"
	Namespace   string // "db.collection", or "db"
	OperationID int64  // as in the command events
	Server      string // the member that answered, or at which the last attempt failed; empty if none was found
	Attempts    []Attempt
	Began       time.Time
	Duration    time.Duration // of all, pauses between attempts and the decoding of the reply included
	Err         error         // as the caller gets it; nil: it succeeded
}

// Attempt is one attempt at an operation. The last one may have succeeded.
type Attempt struct {
	Server       string // empty: no member was found
	ConnectionID int64  // the client's number of the connection; 0: there was none

	Selection time.Duration // until the member was chosen
	CheckOut  time.Duration // until a connection was at hand
	Wire      time.Duration // from the first byte sent to the last one read

	Sent bool  // the member may have seen the command
	Err  error // why the attempt ended; nil: it succeeded
}

// Selection is the time that all attempts took to choose a member.
func (r *OperationReport) Selection() time.Duration {
	return r.sum(func(a *Attempt) time.Duration { return a.Selection })
}

// CheckOut is the time that all attempts took to get a connection.
func (r *OperationReport) CheckOut() time.Duration {
	return r.sum(func(a *Attempt) time.Duration { return a.CheckOut })
}

// Wire is the time that all attempts took from the first byte sent to the last one read: the network's and the member's.
func (r *OperationReport) Wire() time.Duration {
	return r.sum(func(a *Attempt) time.Duration { return a.Wire })
}

func (r *OperationReport) sum(part func(*Attempt) time.Duration) (d time.Duration) {
	for i := range r.Attempts {
		d += part(&r.Attempts[i])
	}
	return d
}

// String is one line on the whole, and one more for each attempt that failed: "find shop.people: db1:27017 answered after
// 3 ms (selection 0 ms, check-out 1 ms, wire 2 ms), 1 attempt".
func (r *OperationReport) String() string {
	var b strings.Builder
	outcome := r.Server + " answered"
	if r.Err != nil {
		outcome = "failed"
	}
	attempts := "1 attempt"
	if n := len(r.Attempts); n != 1 {
		attempts = fmt.Sprintf("%d attempts", n)
	}
	fmt.Fprintf(&b, "%s %s: %s after %s (selection %s, check-out %s, wire %s), %s", r.Name, r.Namespace, outcome,
		FormatDuration(r.Duration), FormatDuration(r.Selection()), FormatDuration(r.CheckOut()), FormatDuration(r.Wire()), attempts)
	for i, a := range r.Attempts {
		if a.Err != nil {
			fmt.Fprintf(&b, "\n  attempt %d, %s: %s", i+1, a.where(), firstLine(a.Err.Error()))
		}
	}
	return b.String()
}

func (a *Attempt) where() string {
	switch {
	case a.Server == "":
		return "no member"
	case a.Sent:
		return a.Server
	}
	return a.Server + ", nothing sent"
}
