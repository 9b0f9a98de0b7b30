package sextant

import (
	"context"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/readpref"
)

// Want describes an operation whose routing is asked about. The zero value is a read as this client makes it.
type Want struct {
	Write          bool               // a write; the rest is then of no account
	ReadPreference *readpref.ReadPref // of a read; nil is the client's
	Pin            *Pin               // of a read, in the place of ReadPreference; nil: none
	Selector       Selector           // of a read; nil: none
}

// want is what the operation needs, for the call op.
func (cl *Client) want(op string, w Want) (topology.Want, error) {
	if w.Write {
		return topology.Want{Write: true}, nil
	}
	want := topology.Want{ReadPref: cl.settings().override(w.ReadPreference, nil, nil).effectiveReadPref(), Selector: w.Selector}
	if w.Pin == nil {
		return want, nil
	}
	bad := w.Pin.check(cl)
	if w.ReadPreference != nil {
		bad = bothGiven
	}
	if bad != "" {
		return want, argument(op, "", "%s", bad)
	}
	want.ReadPref, want.Pinned = w.Pin.ReadPreference(), w.Pin.Server()
	return want, nil
}

// Hosts is what the client knows about the deployment and each of its members at this moment: the address by which the
// set knows it and the one that is dialled, its kind and since when (Member.Health, State and StateStr say it in the words
// of old), round trips, lag, tags, election, the last error and its stage, its last hello, the numbers of its pool. It does
// no I/O: right after Connect all members are Unknown (WaitReady waits until one can serve, Refresh asks all of them).
func (cl *Client) Hosts() event.Topology {
	if cl.empty() {
		return event.Topology{}
	}
	return cl.cluster.Topology()
}

// Refresh asks every member for its state now and returns when all have answered or failed, or ctx has ended. It is not
// needed for routing, which hears of changes as they happen.
func (cl *Client) Refresh(ctx context.Context) error {
	if ctx == nil {
		return argument("Refresh", "", "the context is nil")
	}
	if err := cl.ready("Refresh", ""); err != nil {
		return err
	}
	return cl.cluster.Refresh(ctx)
}

// Explain says for each member why an operation like this one would, or would not, go there at this moment, by which rule
// and with which numbers, and how likely each of those that may serve is to be taken. The verdict's first line is the answer
// in plain words; a failed selection carries the same verdict, and so do its log line and its event.
//
// A member that was never asked is waited for, as long as ctx lasts but for a second at most, so that Explain has something
// to say right after Connect; otherwise no I/O is done. That nobody serves is no error. An error is a nil context, one that
// ended while members were waited for, or a closed client; the verdict is given all the same.
func (cl *Client) Explain(ctx context.Context, w Want) (event.Verdict, error) {
	if ctx == nil {
		return event.Verdict{}, argument("Explain", "", "the context is nil")
	}
	if cl.empty() {
		return event.Verdict{}, cl.ready("Explain", "")
	}
	want, err := cl.want("Explain", w)
	if err != nil {
		return event.Verdict{}, err
	}
	if err := cl.ready("Explain", ""); err != nil {
		v := event.Verdict{Want: want.String(), Cause: ErrClientClosed}
		v.Sentence = "no member serves " + v.Want + ": " + ErrClientClosed.Error()
		return v, err
	}
	err = cl.cluster.FirstAnswers(ctx)
	return cl.cluster.Explain(want), err
}

// WaitReady waits until some member can serve an operation like this one and a connection to it is open, logged in if
// that is asked for: for programs that want to fail at their start when the deployment cannot be reached, or does not let
// them in. The error is that of a selection or of the connection. It takes no longer than the server selection timeout and
// one attempt to connect.
func (cl *Client) WaitReady(ctx context.Context, w Want) error {
	if ctx == nil {
		return argument("WaitReady", "", "the context is nil")
	}
	if err := cl.ready("WaitReady", ""); err != nil {
		return err
	}
	want, err := cl.want("WaitReady", w)
	if err != nil {
		return err
	}
	if w.Pin != nil && !w.Write {
		return cl.cluster.Ready(ctx, want, w.Pin.p)
	}
	return cl.cluster.Ready(ctx, want, nil)
}
