package expr

import (
	"math"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// MaxHeld is how many bytes of values one execution may hold: a server's limit for a stage or an array, 100 MB.
const MaxHeld = 100 << 20

// MaxSpilled is how many bytes the stages of one execution may hold that a server would write to a disk.
const MaxSpilled = 1 << 30

const (
	// elementCost is what an element of a list costs beside its value while a list of Go's is made of an array.
	elementCost = 48
	// smallValue is the largest value that is not worth a closer look.
	smallValue = 1 << 10
	// askEvery is after how many steps the meter asks whether the answer is still wanted, bytesPerStep what a step may build.
	askEvery     = 2048
	bytesPerStep = 256
)

// Meter bounds one execution, for little input can ask for very much: it counts the bytes of the values that are alive at a
// time, beside the documents that came in, and asks now and then whether anybody still waits. It belongs to one goroutine at
// a time. A nil Meter bounds nothing; the zero one only bytes.
//
// The bytes are counted as a stack: who computes a value takes a mark, and leaves at its end what was held at the mark and
// the value. Values that are shared are counted as often as they are held.
type Meter struct {
	Alive func() (left time.Duration, why error) // how much longer somebody waits, or why nobody does; nil: somebody always does
	Limit int64                                  // in bytes; 0: MaxHeld
	Disk  bool                                   // allowDiskUse: what a server would write to a disk is apart, and up to MaxSpilled
	held  int64
	disk  int64 // of MaxSpilled
	steps int64
	over  error // found where no error can be told: the next step tells it
}

// Most is how much may be held.
func (m *Meter) Most() int64 {
	if m == nil || m.Limit == 0 {
		return MaxHeld
	}
	return m.Limit
}

// Mark is what is held now.
func (m *Meter) Mark() int64 {
	if m == nil {
		return 0
	}
	return m.held
}

// Release goes back to what was held at a mark.
func (m *Meter) Release(mark int64) {
	if m != nil {
		m.held = mark
	}
}

// Hold notes n bytes more. what names who holds them, in the error (146) that there are too many.
func (m *Meter) Hold(what string, n int) error {
	if m == nil {
		return nil
	}
	if m.held+int64(n) > m.Most() {
		return m.Refuse(what, n)
	}
	m.held += int64(n)
	return m.Step(n)
}

// Spills says that stages may hold what a server would write to a disk.
func (m *Meter) Spills() bool { return m != nil && m.Disk }

// Spill notes n bytes more of that, or less, and says whether there is room.
func (m *Meter) Spill(n int) bool {
	if n > 0 && m.disk+int64(n) > MaxSpilled {
		return false
	}
	m.disk += int64(n)
	return true
}

// Refuse is the error that n bytes more are too many.
func (m *Meter) Refuse(what string, n int) error {
	return fail(mongoerr.CodeExceededMemoryLimit, "%s would use too much memory (%d bytes). Memory limit: %d bytes", what, m.Mark()+int64(n), m.Most())
}

// Adjust notes that something held has become larger or smaller.
func (m *Meter) Adjust(what string, by int) error {
	if m == nil || by <= 0 {
		m.Release(m.Mark() + int64(by))
		return nil
	}
	return m.Hold(what, by)
}

// Step notes one step that has built n bytes.
func (m *Meter) Step(n int) error {
	if m == nil {
		return nil
	}
	if m.over != nil {
		return m.over
	}
	if m.steps += 1 + int64(n)/bytesPerStep; m.steps < askEvery {
		return nil
	}
	m.steps = 0
	_, err := m.left()
	return err
}

// left asks how much longer somebody waits.
func (m *Meter) left() (time.Duration, error) {
	switch {
	case m == nil || m.Alive == nil:
		return math.MaxInt64, nil
	case m.over != nil:
		return 0, m.over
	}
	left, err := m.Alive()
	m.over = err
	return left, err
}

// Serve is what somebody else waits for from now on.
func (m *Meter) Serve(alive func() (time.Duration, error)) { m.Alive, m.over = alive, nil }

// Over is why an answer is not wanted any longer, if that was found where no error can be told.
func (m *Meter) Over() error {
	if m == nil {
		return nil
	}
	return m.over
}

// Match is what the expression says of a text, within the time that is left.
func (m *Meter) Match(re *value.Regex, s string) (ok bool, err error) {
	err = m.timed(re, s, func(left time.Duration) error {
		ok, err = re.MatchWithin(s, left)
		return err
	})
	return ok, err
}

// Find is where the expression is found in a text, within the time that is left.
func (m *Meter) Find(re *value.Regex, s string, from int) (bounds [][2]int, err error) {
	err = m.timed(re, s[min(from, len(s)):], func(left time.Duration) error {
		bounds, err = re.FindWithin(s, from, left)
		return err
	})
	return bounds, err
}

// timed gives a search the time that is left. If it takes that, the reason is why nobody waits any longer.
func (m *Meter) timed(re *value.Regex, s string, search func(left time.Duration) error) error {
	if err := m.Step(len(s)); err != nil {
		return err
	}
	left := time.Duration(math.MaxInt64)
	if re.Backtracks() {
		var err error
		if left, err = m.left(); err != nil {
			return err
		}
	}
	err := search(left)
	if err != nil {
		if _, why := m.left(); why != nil {
			return why
		}
	}
	return err
}

// settle ends a computation that began at mark: of all that was held since, v is left.
func (m *Meter) settle(mark int64, v bson.RawValue) (bson.RawValue, error) {
	if m == nil {
		return v, nil
	}
	m.held = mark
	return v, m.Hold("an expression", len(v.Value))
}

func (c *Ctx) meter() *Meter {
	if c == nil || c.Env == nil {
		return nil
	}
	return c.Env.Meter
}

// holdArguments notes what an operator may take for its arguments: their elements, and a result as large as all of them.
func (m *Meter) holdArguments(vals []bson.RawValue) error {
	if m == nil {
		return nil
	}
	for _, v := range vals {
		if len(v.Value) <= smallValue {
			continue
		}
		if err := m.Hold("an expression", len(v.Value)); err != nil {
			return err
		}
		if v.Type != bson.TypeArray {
			continue
		}
		if err := m.Hold("an expression", bson.RawArray(v.Value).Len()*elementCost); err != nil {
			return err
		}
	}
	return m.Step(0)
}

// repeated notes a value that an operator is about to build n times, each of so many bytes.
func (c *Ctx) repeated(op string, n int64, size int) error {
	if n > MaxHeld {
		n = MaxHeld + 1
	}
	m := c.meter()
	if m == nil {
		m = &Meter{}
	}
	return m.Hold(op, int(min(n*int64(size), MaxHeld+1)))
}
