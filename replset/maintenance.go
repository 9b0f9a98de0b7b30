package replset

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Maintenance takes member i out of service (RECOVERING: it goes on replicating and may not be read), or back, as the
// command replSetMaintenance does. The primary cannot be taken out of service. Doing twice what is done already is
// harmless; Kill ends it. A member that hangs obeys at once, while the command, sent to it, is carried out when it wakes,
// even if nobody waits for its answer any more.
func (s *Set) Maintenance(i int, on bool) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	r := m.current()
	if r == nil {
		return fmt.Errorf("replset: member %d is not running", i)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 10*time.Second, errors.New("the member does not answer"))
	defer cancel()
	for {
		times, err := r.InMaintenance(ctx)
		if err != nil {
			return fmt.Errorf("replset: maintenance of member %d: %w", i, err)
		}
		if on == (times > 0) && times < 2 {
			return nil
		}
		if err := r.Maintenance(ctx, on); err != nil {
			return fmt.Errorf("replset: maintenance of member %d: %w", i, err)
		}
		if on {
			return nil
		}
	}
}
