package sextant

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/readpref"
)

// Want describes an operation whose routing is asked about. The zero value is a read as this client makes it.
type Want struct {
	Write          bool               // a write; ReadPreference is then of no account
	ReadPreference *readpref.ReadPref // of a read; nil is the client's
}

func (cl *Client) want(w Want) topology.Want {
	if w.Write {
		return topology.Want{Write: true}
	}
	return topology.Want{ReadPref: cl.set.override(w.ReadPreference, nil, nil).effectiveReadPref()}
}

// Hosts is what the client knows about the deployment and each of its members at this moment: kind, round-trip time,
// lag, tags, the last error and its stage, the numbers of its pool. It does no I/O: right after Connect all members
// are Unknown (WaitReady waits until one can serve, Refresh asks all of them).
func (cl *Client) Hosts() event.Topology { return cl.cluster.Topology() }

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

// Explain says for each member why an operation like this one would, or would not, go there at this moment. It does no
// I/O. The verdict's first line is the answer in plain words; a failed selection carries the same verdict.
func (cl *Client) Explain(w Want) event.Verdict {
	v := cl.cluster.Description().Explain(cl.want(w), time.Now())
	if cl.closed.Load() {
		v.Members, v.Cause = nil, ErrClientClosed
		v.Sentence = "no member serves " + v.Want + ": " + ErrClientClosed.Error()
	}
	return v
}

// WaitReady waits until some member can serve an operation like this one: for programs that want to fail at their start
// when the deployment cannot be reached. The error is that of a selection.
func (cl *Client) WaitReady(ctx context.Context, w Want) error {
	if ctx == nil {
		return argument("WaitReady", "", "the context is nil")
	}
	if err := cl.ready("WaitReady", ""); err != nil {
		return err
	}
	_, err := cl.cluster.Select(ctx, cl.want(w))
	return err
}
