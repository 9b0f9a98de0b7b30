package command

import (
	"errors"
	"fmt"

	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// errRefused ends a rollback that would break a promise. Only an operator can help.
var errRefused = errors.New("refused")

// rollBack reverts this member's data to the newest entry that the source has too. What a majority had is never taken
// back; what is taken back is kept aside first. A member whose data does not reach back that far copies all of the
// source's.
//
// The member is in ROLLBACK meanwhile, and no longer: were it to wait in it for a source that has died, it could not
// stand for election, and of three members there might be no other that may.
func (f *following) rollBack(lc *linkConn) error {
	m := f.m
	if !m.told(f.ctx, repl.RollingBack{}) || m.state.Load().Role == repl.RolePrimary {
		return errors.New("no time to roll back")
	}
	defer func() { f.insist(m.rolled()) }()
	committed := m.Store.Committed()
	to, found, err := f.common(lc)
	switch {
	case err != nil:
		return err
	case !found:
		if err := f.keepAside(committed); err != nil {
			return err
		}
		m.log.Warn("rollback needs a copy: the oplogs have nothing in common", "member", m.self, "from", f.host)
		return f.initialSync()
	case to.Less(committed):
		m.log.Error("refusing to roll back what is committed", "member", m.self, "to", to.String(), "committed", committed.String())
		return fmt.Errorf("%w: rolling back to %v would undo the committed %v", errRefused, to, committed)
	}
	from := m.Store.Latest().OpTime()
	if err := f.keepAside(to); err != nil {
		return err
	}
	if err := m.Store.TruncateAfter(to); err != nil {
		m.log.Warn("rollback needs a copy", "member", m.self, "error", err)
		return f.initialSync()
	}
	m.log.Info("rolled back", "member", m.self, "from", from.String(), "to", to.String(), "source", f.host)
	return errors.New("rolled back: pulling begins anew")
}

// keepAside hands what is about to be taken back to whoever keeps it, once, however often the rollback must begin anew.
//
// Where it cannot be kept, the member ends, as when its data file fails: these are the last copies of those documents, and
// they are still in that file. Going on would lose them, and trying again and again would not bring the room on the disk.
func (f *following) keepAside(to store.OpTime) error {
	m := f.m
	sn := m.Store.Latest()
	if kept := (lostRange{sn.OpTime(), to}); m.opt.KeepAside == nil || m.kept == kept {
		return nil
	} else if lost := sn.LostAfter(to); len(lost) > 0 {
		if err := m.opt.KeepAside(lost); err != nil {
			m.fail("what a rollback takes back cannot be kept aside", err)
			return fmt.Errorf("keep what a rollback takes back: %w", err)
		}
		m.kept = kept
	}
	return nil
}

// lostRange is what a rollback takes back: the entries after to, up to from.
type lostRange struct{ from, to store.OpTime }
