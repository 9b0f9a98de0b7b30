package replset

import (
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// enough is the number of stories within which every fault must show.
const enough = 200

// TestStoriesCatchASetThatMisbehaves breaks the set in every way that it can be broken, and tells stories until one of
// the promises in question is seen to be broken. What a story says of a fault that is none of its business does not count.
func TestStoriesCatchASetThatMisbehaves(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for fault, promises := range map[Fault][]string{
		LostWrite:        {keeps},   // acknowledges before a majority has it
		TwoVotes:         {oneHead}, // votes twice in a term
		ForgottenRetries: {once},    // forgets the retry history
		WrongMember:      {kinds},   // one member answers in another's name
		StaleTag:         {kinds},   // hello tells tags that the configuration does not give
	} {
		t.Run(fault.String(), func(t *testing.T) {
			for seed := uint64(1); seed <= enough; seed++ {
				o := tell(t, planOf(seed), fault)
				for _, v := range o.broken {
					if slices.Contains(promises, v.promise) {
						t.Logf("caught by story %d: %v", seed, v)
						return
					}
				}
			}
			t.Errorf("%d stories have not seen that %q is broken", enough, strings.Join(promises, ", "))
		})
	}
}
