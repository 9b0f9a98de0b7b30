package replset

import (
	"fmt"
	"sync"

	"github.com/sextantdb/sextant/mongoerr"
)

// accounts are what the actors were told: what must be there at the end, and what may.
type accounts struct {
	mu      sync.Mutex // guards all below
	docs    map[string]fate
	weak    map[string]bool // with w:1, acknowledged: there, or rolled back
	batches [][]string      // of ordered inserts
	counts  [writers]count
	tick    int32 // the greatest value of the causal reader's counter that it was told
	acked   int
	unknown int
	reads   map[string]int // by mode
	said    []violation    // what an answer alone gives away
}

// fate of a document with a majority write concern.
type fate uint8

const (
	tried   fate = iota // may be there
	kept                // must be there
	removed             // must not be there
)

// count is what a writer knows of its counter.
type count struct {
	low, high int32 // acknowledged and attempted increments
	acked     map[int32]bool
	shown     int32 // the greatest value that a majority read has shown
}

func newAccounts() *accounts {
	l := &accounts{docs: map[string]fate{}, weak: map[string]bool{}, reads: map[string]int{}}
	for g := range l.counts {
		l.counts[g].acked = map[int32]bool{}
	}
	return l
}

func (l *accounts) score(err error) {
	if err == nil {
		l.acked++
	} else {
		l.unknown++
	}
}

// inserted books an insert with a majority write concern. Each _id is used once: a duplicate is a repetition.
func (l *accounts) inserted(err error, ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.score(err)
	for _, id := range ids {
		if err == nil {
			l.docs[id] = kept
		} else {
			l.docs[id] = tried
		}
	}
	if len(ids) > 1 {
		l.batches = append(l.batches, ids)
	}
	if mongoerr.IsDuplicateKey(err) {
		l.said = append(l.said, violation{once, fmt.Sprintf("the insert of %v found itself: %v", ids, err)})
	}
}

// dared books an insert with w:1.
func (l *accounts) dared(id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.weak[id] = true
	}
}

// deleting books that a document may be gone from now on.
func (l *accounts) deleting(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.docs[id] = tried
}

func (l *accounts) deleted(id string, n int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.score(err)
	if err != nil {
		return
	}
	l.docs[id] = removed
	if n != 1 {
		l.said = append(l.said, violation{keeps, fmt.Sprintf("the deletion of %s, which was acknowledged, found %d", id, n)})
	}
}

// counting opens an increment and says its number.
func (l *accounts) counting(g int) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[g].high++
	return l.counts[g].high
}

// counted books an increment. after is the counter's value after it, where that is known, else -1.
func (l *accounts) counted(g int, op, after int32, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.score(err)
	if err != nil {
		return
	}
	c := &l.counts[g]
	c.low++
	c.acked[op] = true
	switch {
	case after < 0:
	case after < c.low:
		l.said = append(l.said, violation{keeps, fmt.Sprintf("counter %d is %d after %d acknowledged increments", g, after, c.low)})
	case after > c.high:
		l.said = append(l.said, violation{once, fmt.Sprintf("counter %d is %d after %d attempted increments", g, after, c.high)})
	}
}

// shown books what a majority read has shown of a counter.
func (l *accounts) shown(g int, n int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[g].shown = max(l.counts[g].shown, n)
}

// told books a value of the causal counter that its reader was told, and says what it had been told before.
func (l *accounts) told(n int32) (before int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.tick
	l.tick = max(before, n)
	return before
}

func (l *accounts) read(mode string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads[mode]++
}
