package cluster

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/readpref"
)

// candidates remembers who may serve the wants that a Description does not hold ready: read preferences with tags or a
// max staleness, windows of a call's own. It belongs to one view, so that it is right for as long as the view is the
// present one: staleness is reckoned from the times of the Description's own replies, never from the time of asking.
// A program has few such wants; beyond the first few the rules run every time. The zero value is ready for use by any
// number of goroutines: a full or contended memory only means that something is computed again.
type candidates struct {
	list atomic.Pointer[[]remembered] // never changed once it is stored
}

// remembered is a want, as far as it counts, and who may serve it.
type remembered struct {
	pref      *readpref.ReadPref
	threshold time.Duration // -1: the topology's
	outMerge  bool
	servers   []*Server
}

const mostRemembered = 16

// memorable says whether a want is worth to be remembered. A selector is a func, which nobody can compare; the rest is of
// one call, or plain.
func memorable(w *topology.Want) bool {
	return !w.Write && w.Address == "" && w.Pinned == "" && w.Selector == nil && len(w.Deprioritized) == 0 &&
		(!w.ReadPref.IsPlain() || w.LocalThreshold != nil || w.OutMerge)
}

func (m *remembered) is(w *topology.Want, threshold time.Duration) bool {
	return m.threshold == threshold && m.outMerge == w.OutMerge && samePref(m.pref, w.ReadPref)
}

// samePref compares what read preferences say: many programs make one anew for each call.
func samePref(a, b *readpref.ReadPref) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.Mode() != b.Mode() {
		return false
	}
	sa, _ := a.MaxStaleness()
	sb, _ := b.MaxStaleness()
	return sa == sb && slices.EqualFunc(a.TagSets(), b.TagSets(), func(x, y readpref.TagSet) bool { return slices.Equal(x, y) })
}

// recall is who may serve a memorable want.
func (v *view) recall(w *topology.Want) []*Server {
	threshold := time.Duration(-1)
	if w.LocalThreshold != nil {
		threshold = *w.LocalThreshold
	}
	old := v.memory.list.Load()
	if old != nil {
		for i := range *old {
			if m := &(*old)[i]; m.is(w, threshold) {
				return m.servers
			}
		}
	}
	found := v.desc.Candidates(*w, time.Time{})
	servers := make([]*Server, len(found))
	for i, s := range found {
		servers[i] = v.servers[s.Addr]
	}
	var list []remembered
	if old != nil {
		list = *old
	}
	if len(list) < mostRemembered && w.ReadPref.Validate() == nil {
		list = append(slices.Clip(list), remembered{w.ReadPref, threshold, w.OutMerge, servers})
		v.memory.list.CompareAndSwap(old, &list)
	}
	return servers
}
