package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// Disk is what outlives a member's crash: its data, its vote and its configuration. A Disk in memory keeps all of it until
// the process ends; one with a file (OpenDisk) keeps what was synced, whatever ends.
type Disk struct {
	store   *store.Store
	oplog   int64          // how many entries the oplog keeps, 0: as usual
	journal *store.Journal // nil: in memory
	closing sync.Once

	mu     sync.Mutex // guards vote and config
	vote   repl.Vote
	config *Config  // the newest that the member has had since it was started; nil: the one it is started with
	stored bson.Raw // the configuration in the file, nil if none
}

// NewDisk is an empty disk in memory with an oplog of the usual size.
func NewDisk() *Disk { return NewDiskSized(0) }

// NewDiskSized is an empty disk in memory whose oplog keeps that many entries, or 100,000 if 0.
func NewDiskSized(oplogEntries int64) *Disk {
	return &Disk{oplog: oplogEntries, store: store.NewSized(oplogBounds(oplogEntries)), vote: repl.Vote{For: repl.None}}
}

// persistent says whether it has a file.
func (d *Disk) persistent() bool { return d.journal != nil }

// bounds are those of the oplog.
func (d *Disk) bounds() (entries, size int64) { return oplogBounds(d.oplog) }

func oplogBounds(entries int64) (int64, int64) {
	if entries == 0 {
		const usual, usualSize = 100_000, 64 << 20
		return usual, usualSize
	}
	const anySize = 1 << 40
	return entries, anySize
}

// The names of notes in a data file.
const (
	voteNote   = "vote"
	configNote = "config"
	placeNote  = "place"
)

// OpenDisk is the disk in the file at path, which is made if there is none. A file can be open once.
func OpenDisk(path string, oplogEntries int64) (*Disk, error) {
	entries, size := oplogBounds(oplogEntries)
	j, s, err := store.OpenJournal(path, entries, size)
	if err != nil {
		return nil, err
	}
	d := &Disk{oplog: oplogEntries, store: s, journal: j, vote: repl.Vote{For: repl.None}, stored: j.Note(configNote)}
	if v := j.Note(voteNote); v != nil {
		d.vote = repl.Vote{Term: intOf(v, "term"), For: int(intOf(v, "for"))}
	}
	return d, nil
}

// Close closes the disk's file, if it has one: as it is after a crash, else with everything in it. Only the first call counts.
func (d *Disk) Close(crash bool) (err error) {
	if d.journal == nil {
		return nil
	}
	d.closing.Do(func() {
		if crash {
			err = d.journal.Drop()
		} else {
			err = d.journal.Close()
		}
	})
	return err
}

// Wiped is a disk in memory without data or configuration. The vote stays: a member that forgot it could vote twice in a
// term.
func (d *Disk) Wiped(oplogEntries int64) *Disk {
	w := NewDiskSized(oplogEntries)
	w.vote = d.loadVote()
	return w
}

// WipeDisk takes the data and the configuration out of the file at path, which must not be open, and leaves the vote and
// the place.
func WipeDisk(path string) error {
	old, err := OpenDisk(path, 0)
	if err != nil {
		return err
	}
	vote, place := old.loadVote(), old.Place()
	if err := old.Close(true); err != nil {
		return err
	}
	half := path + ".wiped"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	empty, err := OpenDisk(half, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(empty.saveVote(vote), empty.SavePlace(place)); err != nil {
		return errors.Join(err, empty.Close(true))
	}
	if err := empty.Close(false); err != nil {
		return err
	}
	return os.Rename(half, path)
}

// Place is where a member was last, for a start from its folder.
type Place struct {
	Host    string // the address that it was known by
	Name    string // as it was asked for; "" for the set's own
	Port    int    // as it was asked for; 0 for any
	Members int    // how many members the set was started with at first
}

// SavePlace keeps the place in the disk's file, if it has one.
func (d *Disk) SavePlace(p Place) error {
	if d.journal == nil || p == (Place{}) || p == d.Place() {
		return nil
	}
	return d.journal.SetNote(placeNote, document(bson.D{{Key: "host", Value: p.Host}, {Key: "name", Value: p.Name},
		{Key: "port", Value: int32(p.Port)}, {Key: "members", Value: int32(p.Members)}}))
}

// Place is the place in the disk's file; zero if there is none.
func (d *Disk) Place() (p Place) {
	if d.journal == nil {
		return p
	}
	note := d.journal.Note(placeNote)
	p.Host, _ = note.Lookup("host").StringValueOK()
	p.Name, _ = note.Lookup("name").StringValueOK()
	p.Port, p.Members = int(intOf(note, "port")), int(intOf(note, "members"))
	return p
}

// saveVote keeps a vote; when it returns, the vote outlives whatever the disk outlives.
func (d *Disk) saveVote(v repl.Vote) error {
	d.mu.Lock()
	d.vote = v
	d.mu.Unlock()
	if d.journal == nil {
		return nil
	}
	return d.journal.SetNote(voteNote, document(bson.D{{Key: "term", Value: v.Term}, {Key: "for", Value: int32(v.For)}}))
}

// SaveConfig keeps a configuration.
func (d *Disk) SaveConfig(c *Config) error {
	d.mu.Lock()
	d.config = c
	d.mu.Unlock()
	if d.journal == nil {
		return nil
	}
	doc := document(configDocument(c))
	if bytes.Equal(doc, d.journal.Note(configNote)) {
		return nil // a sync less at every start
	}
	return d.journal.SetNote(configNote, doc)
}

// Stored is the configuration in the disk's file as it was opened; nil if there is none. What it
// does not mention is as in like.
func (d *Disk) Stored(like *Config) (*Config, error) {
	if d.stored == nil {
		return nil, nil
	}
	cfg, err := readConfig(d.stored, like)
	if err != nil {
		return nil, fmt.Errorf("the configuration in %s: %w", d.journal.Path(), err)
	}
	return cfg, nil
}

// Blank reports whether the disk has neither data nor a configuration, and never had since it was opened: it may have a
// vote, and a place.
func (d *Disk) Blank() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.config == nil && d.stored == nil && d.store.Latest().OpTime().IsZero()
}

// newer is the configuration on the disk if it is newer than c, else c.
func (d *Disk) newer(c *Config) *Config {
	d.mu.Lock()
	mine := d.config
	d.mu.Unlock()
	if mine == nil {
		mine, _ = d.Stored(c)
	}
	if mine != nil && mine.SetName == c.SetName && c.ID().Less(mine.ID()) {
		return mine
	}
	return c
}

func (d *Disk) loadVote() repl.Vote {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.vote
}

// Applied is the disk's newest oplog entry.
func (d *Disk) Applied() store.OpTime { return d.store.Latest().OpTime() }

// Documents are the documents of a collection, in natural order.
func (d *Disk) Documents(ns string) []bson.Raw {
	var out []bson.Raw
	if c := d.store.Latest().Collection(ns); c != nil {
		for _, doc := range c.Records(0) {
			out = append(out, doc)
		}
	}
	return out
}

// positions are the newest entry and the newest that would outlive a crash. In memory these are the same: there is
// nothing to wait for.
func (d *Disk) positions() (applied, durable store.OpTime) {
	applied = d.Applied()
	if d.journal == nil {
		return applied, applied
	}
	durable = d.journal.Durable()
	if applied.Less(durable) {
		durable = applied
	}
	return applied, durable
}

// applied is what the owner has to hear about the store.
func (m *Member) applied() repl.Applied {
	applied, durable := m.disk.positions()
	return repl.Applied{OpTime: repl.OpTime(applied), Durable: repl.OpTime(durable)}
}

// rolled is what the owner has to hear after the store has gone back, or was replaced.
func (m *Member) rolled() repl.Rolled {
	applied, durable := m.disk.positions()
	return repl.Rolled{To: repl.OpTime(applied), Durable: repl.OpTime(durable)}
}

// keep is the goroutine that brings what is written into the data file. While it syncs, more is written: the next sync
// takes all of that, so that any number of waiting writes share one.
func (m *Member) keep() {
	defer m.wg.Done()
	defer m.guard("keeping the data file")
	for {
		changed := m.Store.Changed()
		if err := m.disk.journal.Sync(); err != nil {
			m.fail("its data file fails", err)
			return
		}
		m.wrote()
		select {
		case <-changed:
		case <-m.ctx.Done():
			return
		}
	}
}

// fail ends a member that cannot keep its promises any more, as a crash would: what it has not synced it has not confirmed.
func (m *Member) fail(why string, err error) {
	if !m.closing() {
		m.log.Error("the member ends: "+why, "member", m.self, "error", err)
	}
	m.stop(true)
}

// awaitDurable waits until everything which is written now would outlive a crash.
func (m *Member) awaitDurable(ctx context.Context) error {
	op := repl.OpTime(m.disk.Applied())
	for {
		p := m.progress.Load()
		if !p.Durable.Less(op) {
			return nil
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
