package topology

import (
	"slices"
	"time"
)

// rttWindow is how many samples the least round trip is taken from.
const rttWindow = 10

// rttSamples averages round trips. The zero value has no sample.
type rttSamples struct {
	average time.Duration
	recent  [rttWindow]time.Duration
	count   int
}

// with is the samples and one more: an exponentially weighted average with alpha 0.2, the first sample being its start
// (server selection, "Calculation of Average Round Trip Times").
func (r rttSamples) with(sample time.Duration) rttSamples {
	if r.count == 0 {
		r.average = sample
	} else {
		r.average = (sample + 4*r.average) / 5
	}
	r.recent[r.count%rttWindow] = sample
	r.count++
	return r
}

// least is the shortest of the last ten round trips, 0 until there are two.
func (r rttSamples) least() time.Duration {
	if r.count < 2 {
		return 0
	}
	return slices.Min(r.recent[:min(r.count, rttWindow)])
}
