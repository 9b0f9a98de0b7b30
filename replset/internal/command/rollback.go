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

// keepAside hands what is about to be taken back to whoever keeps it.
func (f *following) keepAside(to store.OpTime) error {
	lost := f.m.Store.Latest().LostAfter(to)
	if len(lost) == 0 || f.m.opt.KeepAside == nil {
		return nil
	}
	if err := f.m.opt.KeepAside(lost); err != nil {
		return fmt.Errorf("keep what a rollback takes back: %w", err)
	}
	return nil
}
