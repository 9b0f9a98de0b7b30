package command

import (
	"errors"
	"fmt"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// copyBatch is how many documents or entries are asked for at a time; the source ends a batch at 16 MiB too.
const copyBatch = 1000

// errCopied ends a pull that has replaced this member's data.
var errCopied = errors.New("copied all data: pulling begins anew")

// initialSync replaces this member's data with a copy of the source's. All that is copied is of one moment, so that the
// oplog from there on leads exactly to what the source has; it is applied to the copy until that has what the source had
// when the copying ended. Until then the copy is nowhere to be seen, the member is in STARTUP2, and whatever goes wrong
// costs the attempt alone.
func (f *following) initialSync() error {
	m := f.m
	if !m.told(f.ctx, repl.Copying{}) || m.state.Load().Role == repl.RolePrimary {
		return errors.New("no time to copy")
	}
	m.log.Info("copying all data", "member", m.self, "from", f.host)
	fresh, err := f.copyAll()
	if err != nil {
		m.log.Info("the copy failed and begins anew", "member", m.self, "from", f.host, "error", err)
		if !m.Store.Latest().OpTime().IsZero() {
			f.insist(m.rolled())
		}
		return err
	}
	m.Store.Adopt(fresh)
	m.Store.SetCommitted(store.OpTime(m.progress.Load().Commit)) // what was known of the commit point stays true
	op := m.Store.Latest().OpTime()
	m.clock.advance(op.TS)
	f.insist(m.rolled())
	m.log.Info("copied all data", "member", m.self, "from", f.host, "to", op.String())
	return errCopied
}

// copyAll makes the copy and brings it up to the source.
func (f *following) copyAll() (*store.Store, error) {
	lc, err := f.link.pinned(f.ctx)
	if err != nil {
		return nil, err
	}
	defer func() { lc.drop() }()
	c := store.NewCopy(f.m.disk.bounds())
	if err := f.copyOplog(lc, c); err != nil {
		return nil, err
	}
	reply, err := f.demand(lc, "admin", bson.D{{Key: "listDatabases", Value: int32(1)}, {Key: "nameOnly", Value: true}})
	if err != nil {
		return nil, err
	}
	dbs, _ := reply.Lookup("databases").ArrayOK()
	for _, v := range dbs.All() {
		d, _ := v.DocumentOK()
		if name, _ := d.Lookup("name").StringValueOK(); name != "local" {
			if err := f.copyDatabase(lc, c, name); err != nil {
				return nil, fmt.Errorf("database %s: %w", name, err)
			}
		}
	}
	fresh, err := c.Done()
	if err != nil {
		return nil, err
	}
	return fresh, f.catchUp(fresh)
}

func (f *following) copyOplog(lc *linkConn, c *store.Copy) error {
	return f.each(lc, "local", bson.D{{Key: "find", Value: "oplog.rs"}, {Key: "batchSize", Value: int32(copyBatch)}}, c.Entries)
}

func (f *following) copyDatabase(lc *linkConn, c *store.Copy, db string) error {
	var colls []bson.Raw
	list := bson.D{{Key: "listCollections", Value: int32(1)}, {Key: "cursor", Value: bson.D{}}}
	if err := f.each(lc, db, list, func(docs []bson.Raw) error { colls = append(colls, docs...); return nil }); err != nil {
		return err
	}
	for _, doc := range colls {
		name, _ := doc.Lookup("name").StringValueOK()
		if err := f.copyCollection(lc, c, db, name, doc); err != nil {
			return fmt.Errorf("collection %s: %w", name, err)
		}
	}
	return nil
}

func (f *following) copyCollection(lc *linkConn, c *store.Copy, db, name string, about bson.Raw) error {
	options, _ := about.Lookup("options").DocumentOK()
	opts := store.ReadCollOptions(options)
	var uuid [16]byte
	if _, data, ok := about.Lookup("info", "uuid").BinaryOK(); ok {
		copy(uuid[:], data)
	}
	ns := db + "." + name
	next := store.RecordID(intOf(about, "nextRecord"))
	if opts.ViewOn != "" {
		return c.Collection(ns, opts, uuid, nil, next)
	}
	var indexes []store.IndexSpec
	list := bson.D{{Key: "listIndexes", Value: name}, {Key: "cursor", Value: bson.D{}}}
	err := f.each(lc, db, list, func(docs []bson.Raw) error {
		for _, doc := range docs {
			spec, err := store.ReadIndexSpec(doc)
			if err != nil {
				return err
			}
			indexes = append(indexes, spec)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.Collection(ns, opts, uuid, indexes, next); err != nil {
		return err
	}
	find := bson.D{{Key: "find", Value: name}, {Key: "batchSize", Value: int32(copyBatch)}, {Key: "showRecordId", Value: true}, {Key: "noCursorTimeout", Value: true}}
	return f.each(lc, db, find, func(docs []bson.Raw) error {
		for _, doc := range docs {
			rid, own, ok := takeRecordID(doc)
			if !ok {
				return errors.New("a document came without its record id")
			}
			if err := c.Record(ns, rid, own); err != nil {
				return err
			}
		}
		return nil
	})
}

// takeRecordID parts a document from the $recordId behind it.
func takeRecordID(doc bson.Raw) (rid store.RecordID, own bson.Raw, ok bool) {
	const field = len("\x12$recordId\x00") + 8
	at := len(doc) - 1 - field
	if at < 4 {
		return 0, nil, false
	}
	tail := bson.Raw(append([]byte{byte(4 + field + 1), 0, 0, 0}, doc[at:]...))
	n, ok := tail.Lookup("$recordId").AsInt64OK()
	if !ok {
		return 0, nil, false
	}
	dst, start := bson.BeginDocument(make([]byte, 0, at+1))
	return store.RecordID(n), bson.EndDocument(append(dst, doc[4:at]...), start), true
}

// each runs a command that answers with a cursor, and gives fn one batch after the other: no more than one is in memory.
func (f *following) each(lc *linkConn, db string, cmd bson.D, fn func([]bson.Raw) error) error {
	reply, err := f.demand(lc, db, cmd)
	if err != nil {
		return err
	}
	for field := "firstBatch"; ; field = "nextBatch" {
		docs, id, err := f.batch(reply, field)
		if err != nil {
			return err
		}
		if err := fn(docs); err != nil {
			return err
		}
		if id == 0 {
			return nil
		}
		ns, _ := reply.Lookup("cursor", "ns").StringValueOK()
		if reply, err = f.demand(lc, db, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: store.CollectionOf(ns)}, {Key: "batchSize", Value: int32(copyBatch)}}); err != nil {
			return err
		}
	}
}

// catchUp applies to a copy what the source has logged since, until the copy has what the source has now.
func (f *following) catchUp(fresh *store.Store) error {
	lc, err := f.link.connect(f.ctx)
	if err != nil {
		return err
	}
	defer lc.drop()
	newest, err := f.oplog(lc, bson.D{}, -1, 1)
	if err != nil || len(newest) == 0 {
		return errors.Join(errors.New("the source has no oplog any more"), err)
	}
	until, last := store.EntryOpTime(newest[0]), fresh.Latest().OpTime()
	entries, cursor, err := f.open(lc, last)
	if err != nil {
		return err
	}
	if len(entries) == 0 || store.EntryOpTime(entries[0]) != last {
		return mongoerr.Server(mongoerr.CodeOplogStartMissing, "the source's oplog has moved on, or was rolled back, during the copy")
	}
	for fresh.Latest().OpTime().Less(until) {
		if _, err := fresh.ApplyOplog(entries); err != nil {
			return err
		}
		if !fresh.Latest().OpTime().Less(until) {
			return nil
		}
		if entries, cursor, err = f.more(lc, cursor); err != nil {
			return err
		}
	}
	return nil
}
