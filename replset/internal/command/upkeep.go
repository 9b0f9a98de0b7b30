package command

import (
	"context"
	"crypto/md5" // #nosec: dbHash of MongoDB is defined over it
	"encoding/hex"
	"slices"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// What people ask of a server to keep it in shape. Where there is nothing to be done here, that is the answer.
var upkeepCommands = []Spec{
	{Name: "compact", Handler: compact, Fields: "force:bool freeSpaceTargetMB dryRun:bool", Since: wire80},
	{Name: "dbHash", Aliases: []string{"dbhash"}, Handler: dbHash},
	{Name: "planCacheClear", Flags: Reads, Handler: planCacheClear},
	{Name: "reIndex", Handler: reIndex},
}

// existing is the collection of the command.
func (m *Member) existing(r *Request) (*store.Coll, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	coll := m.Store.Latest().Collection(ns)
	switch {
	case coll == nil:
		return nil, mongoerr.Server(mongoerr.CodeNamespaceNotFound, "collection does not exist")
	case coll.Options().ViewOn != "":
		return nil, mongoerr.Server(mongoerr.CodeCommandNotSupportedOnView, "can't %s a view", r.Spec.Name)
	}
	return coll, nil
}

// compact has nothing to free: memory of what was deleted is the collector's.
func compact(_ context.Context, m *Member, r *Request) (bson.D, error) {
	if _, err := m.existing(r); err != nil {
		return nil, err
	}
	return bson.D{{Key: "bytesFreed", Value: int64(0)}}, nil
}

// planCacheClear has nothing to clear: plans are made anew for each query.
func planCacheClear(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	_, err := r.Namespace()
	return nil, err
}

func reIndex(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	if _, err := r.Namespace(); err != nil {
		return nil, err
	}
	return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "reIndex is only allowed on a standalone mongod instance.")
}

// dbHash is one sum over the documents of each collection in the order of their _id, and one over all: members that have
// the same data give the same.
func dbHash(_ context.Context, m *Member, r *Request) (bson.D, error) {
	begun := time.Now()
	wanted, err := collectionsField(r)
	if err != nil {
		return nil, err
	}
	sums, capped, uuids := bson.D{}, bson.A{}, bson.D{}
	whole := md5.New()
	for _, c := range m.Store.Latest().Collections(r.DB) {
		name := store.CollectionOf(c.NS())
		if c.Options().ViewOn != "" || wanted != nil && !slices.Contains(wanted, name) {
			continue
		}
		uuid := c.UUID()
		uuids = append(uuids, bson.E{Key: name, Value: bson.Binary{Subtype: 4, Data: uuid[:]}})
		if c.Options().Capped {
			capped = append(capped, name)
		}
		sum := hashOf(c)
		_, _ = whole.Write([]byte(sum))
		sums = append(sums, bson.E{Key: name, Value: sum})
	}
	return bson.D{{Key: "host", Value: m.Addr()}, {Key: "collections", Value: sums}, {Key: "capped", Value: capped}, {Key: "uuids", Value: uuids},
		{Key: "md5", Value: hex.EncodeToString(whole.Sum(nil))}, {Key: "timeMillis", Value: int32(time.Since(begun).Milliseconds())}}, nil
}

// collectionsField are the collections that are asked for; nil: all.
func collectionsField(r *Request) ([]string, error) {
	v := r.Field("collections")
	if v.IsZero() {
		return nil, nil
	}
	list, ok := v.ArrayOK()
	if !ok {
		return nil, wrongField("dbHash", "collections", v, "array")
	}
	names := []string{}
	for _, e := range list.All() {
		name, ok := e.StringValueOK()
		if !ok {
			return nil, wrongField("dbHash", "collections", e, "string")
		}
		names = append(names, name)
	}
	return names, nil
}

func hashOf(c *store.Coll) string {
	type record struct {
		id  bson.RawValue
		doc bson.Raw
	}
	var all []record
	for _, doc := range c.Records(0) {
		all = append(all, record{doc.Lookup("_id"), doc})
	}
	if !c.Options().Capped { // those have an order of their own
		slices.SortFunc(all, func(a, b record) int { return value.Compare(a.id, b.id) })
	}
	sum := md5.New()
	for _, rec := range all {
		_, _ = sum.Write(rec.doc)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
