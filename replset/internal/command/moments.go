package command

import (
	"context"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// moments are the snapshots that reads of level snapshot have been given, so that more reads of the same moment find it.
// Not done: a moment that another member has named, or a client of its own accord, is served only if this member stands
// at it exactly; the data's history is not kept.
type moments struct {
	mu   sync.Mutex // guards list
	list []moment   // the oldest first
}

type moment struct {
	sn   *store.Snapshot
	last time.Time // when it was last asked for
}

const (
	maxMoments   = 64
	momentMaxAge = 5 * time.Minute // a server's minSnapshotHistoryWindowInSeconds
)

// keep remembers a snapshot that has been given out.
func (p *moments) keep(sn *store.Snapshot) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.list[:0]
	for _, e := range p.list {
		if now.Sub(e.last) < momentMaxAge && e.sn.OpTime() != sn.OpTime() {
			kept = append(kept, e)
		}
	}
	clear(p.list[len(kept):])
	if len(kept) >= maxMoments {
		kept = append(kept[:0], kept[len(kept)-maxMoments+1:]...)
	}
	p.list = append(kept, moment{sn, now})
}

func (p *moments) at(ts bson.Timestamp) *store.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.list {
		if p.list[i].sn.OpTime().TS == ts {
			p.list[i].last = time.Now()
			return p.list[i].sn
		}
	}
	return nil
}

// takesSnapshot are the commands that may read a moment outside a transaction.
var takesSnapshot = map[string]bool{"find": true, "aggregate": true, "distinct": true}

// readMoment serves a read of level snapshot (since version 5.0): what a majority has now, or had at atClusterTime.
func (m *Member) readMoment(r *Request) (*store.Snapshot, error) {
	if !takesSnapshot[r.Name] || !m.opt.Persona.snapshots() {
		return nil, mongoerr.Server(mongoerr.CodeInvalidOptions, "readConcern level snapshot is only valid in multi-statement transactions")
	}
	r.majority = true
	sn, err := m.moment(r.ctx, r.ReadConcern.AtClusterTime)
	if err != nil {
		return nil, err
	}
	m.moments.keep(sn)
	r.moment = sn.OpTime().TS
	return sn, nil
}

func (m *Member) moment(ctx context.Context, at bson.Timestamp) (*store.Snapshot, error) {
	if at.IsZero() {
		return m.committed(ctx)
	}
	if sn := m.moments.at(at); sn != nil {
		return sn, nil
	}
	if err := m.awaitTime(ctx, at, true); err != nil {
		return nil, err
	}
	sn, err := m.committed(ctx)
	if err == nil && sn.OpTime().TS != at {
		return nil, mongoerr.Server(mongoerr.CodeSnapshotUnavailable, "Read timestamp %v is not available: this member keeps only the moments that it has given out", at)
	}
	return sn, err
}

// tellMoment puts the moment of a read into its reply.
func (r *Request) tellMoment(doc bson.D) bson.D {
	if r.moment.IsZero() {
		return doc
	}
	at := bson.E{Key: "atClusterTime", Value: r.moment}
	for i, e := range doc {
		if c, ok := e.Value.(bson.D); ok && e.Key == "cursor" {
			doc[i].Value = append(c, at)
			return doc
		}
	}
	return append(doc, at)
}
