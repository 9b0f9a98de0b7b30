package sextant

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// IndexModel describes an index to be created. Keys is an ordered document such as bson.D{{"name", 1}, {"age", -1}};
// zero fields are not sent.
type IndexModel struct {
	Keys                    any
	Name                    string // by default made of the keys: "name_1_age_-1"
	Collation               *Collation
	DefaultLanguage         string        // of a text index
	ExpireAfter             time.Duration // after the time in the field; use ExpireNow for at once
	ExpireNow               bool
	Hidden                  *bool // kept up to date but not used (4.4)
	LanguageOverride        string
	PartialFilterExpression any
	Sparse                  *bool
	StorageEngine           any
	Unique                  *bool
	Weights                 any
	WildcardProjection      any
	Bits, Version           int32
	Max, Min                *float64
	SphereVersion           int32
	TextVersion             int32
}

// CreateIndexesOptions are the options of CreateIndex and CreateIndexes; zero fields are not sent.
type CreateIndexesOptions struct {
	Comment      any
	CommitQuorum any // a number or "votingMembers", "majority" (4.4)
	MaxTime      time.Duration
	RawData      *bool
}

// CreateIndex creates an index and returns its name. One that exists with the same options is no error.
func (c *Collection[T]) CreateIndex(ctx context.Context, model IndexModel, opts ...CreateIndexesOptions) (string, error) {
	names, err := c.CreateIndexes(ctx, []IndexModel{model}, opts...)
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// CreateIndexes creates several indexes in one pass over the collection and returns their names.
func (c *Collection[T]) CreateIndexes(ctx context.Context, models []IndexModel, opts ...CreateIndexesOptions) ([]string, error) {
	o, err := one("createIndexes", opts)
	if err != nil {
		return nil, err
	}
	cm := c.at().cmd("createIndexes")
	if len(models) == 0 {
		cm.fail(argument(cm.name, cm.ns, "the list of indexes is empty"))
	}
	names := make([]string, len(models))
	var list int
	cm.b, list = bson.BeginArrayElement(cm.b, "indexes")
	for i := range models {
		var start int
		cm.b, start = bson.BeginDocumentElement(cm.b, index(i))
		names[i] = models[i].append(cm)
		cm.b = bson.EndDocument(cm.b, start)
	}
	cm.b = bson.EndDocument(cm.b, list)
	op := c.at().write(cm, false)
	if o.CommitQuorum != nil {
		cm.any("commitQuorum", o.CommitQuorum)
		cm.demand(op, "the option commitQuorum", wire44)
	}
	cm.any("comment", o.Comment)
	cm.millis("maxTimeMS", o.MaxTime)
	cm.rawData = o.RawData
	if err := c.at().run(ctx, cm, op); err != nil {
		return nil, err
	}
	return names, nil
}

// append appends the index's elements and returns its name.
func (m *IndexModel) append(c *cmd) string {
	at := len(c.b)
	if isNil(m.Keys) {
		c.fail(nilDocument(c.name, c.ns, "the index's Keys"))
	}
	c.ordered("key", m.Keys)
	name := m.Name
	if name == "" && c.err == nil {
		name = indexName(bson.Raw(c.b[at+1+len("key")+1:]))
	}
	c.str("name", name)
	c.collation(m.Collation)
	c.str("default_language", m.DefaultLanguage)
	switch {
	case m.ExpireAfter < 0:
		c.fail(argument(c.name, c.ns, "ExpireAfter is negative (%v)", m.ExpireAfter))
	case m.ExpireAfter > 0 || m.ExpireNow:
		c.b = bson.AppendInt64(c.b, "expireAfterSeconds", int64(m.ExpireAfter/time.Second))
	}
	c.opt("hidden", m.Hidden)
	c.str("language_override", m.LanguageOverride)
	c.optDoc("partialFilterExpression", m.PartialFilterExpression)
	c.opt("sparse", m.Sparse)
	c.optDoc("storageEngine", m.StorageEngine)
	c.opt("unique", m.Unique)
	c.ordered("weights", m.Weights)
	c.optDoc("wildcardProjection", m.WildcardProjection)
	c.i32("bits", m.Bits)
	c.i32("v", m.Version)
	if m.Max != nil {
		c.b = bson.AppendDouble(c.b, "max", *m.Max)
	}
	if m.Min != nil {
		c.b = bson.AppendDouble(c.b, "min", *m.Min)
	}
	c.i32("2dsphereIndexVersion", m.SphereVersion)
	c.i32("textIndexVersion", m.TextVersion)
	return name
}

// indexName makes the name that all drivers give to an index with these keys.
func indexName(keys bson.Raw) string {
	var parts []string
	for k, v := range keys.All() {
		s, ok := v.StringValueOK()
		if n, isInt := v.AsInt64OK(); !ok && isInt {
			s = fmt.Sprint(n)
		} else if f, isFloat := v.AsFloat64OK(); !ok && isFloat {
			s = fmt.Sprint(f)
		}
		parts = append(parts, k+"_"+s)
	}
	return strings.Join(parts, "_")
}

// ListIndexesOptions are the options of ListIndexes; zero fields are not sent.
type ListIndexesOptions struct {
	ReadPreference *readpref.ReadPref // not inherited; nil is the primary
	Pin            *Pin               // go where it is, in the place of ReadPreference
	Selector       Selector           // nil: none
	BatchSize      int32
	Comment        any
	RawData        *bool
}

// IndexInfo is what the server says of an index. What has no field here is in Raw.
type IndexInfo struct {
	Name               string
	Keys               bson.D
	Unique             bool
	Sparse             bool
	Hidden             bool
	ExpireAfterSeconds *int64
	Raw                bson.Raw
}

// indexFields is the part of an index's document that IndexInfo shows.
type indexFields struct {
	Name               string `bson:"name"`
	Key                bson.D `bson:"key"`
	Unique             bool   `bson:"unique"`
	Sparse             bool   `bson:"sparse"`
	Hidden             bool   `bson:"hidden"`
	ExpireAfterSeconds *int64 `bson:"expireAfterSeconds"`
}

// ListIndexes lists the indexes of the collection; a collection that does not exist has none.
func (c *Collection[T]) ListIndexes(ctx context.Context, opts ...ListIndexesOptions) ([]IndexInfo, error) {
	o, err := one("listIndexes", opts)
	if err != nil {
		return nil, err
	}
	cm := c.at().cmd("listIndexes")
	cm.cursor(o.BatchSize)
	cm.any("comment", o.Comment)
	cm.rawData = o.RawData
	b := &batches{h: c.at(), op: cm.name, decoder: new(bson.Batch), batchSize: o.BatchSize}
	b.setComment(cm, o.Comment)
	err = b.open(ctx, cm, c.at().list(cm, route{o.ReadPreference, o.Pin, o.Selector}))
	if mongoerr.Code(err) == mongoerr.CodeNamespaceNotFound {
		return []IndexInfo{}, nil
	}
	if err != nil {
		return nil, err
	}
	raws, err := (&Cursor[bson.Raw]{b: b}).All(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]IndexInfo, len(raws))
	for i, raw := range raws {
		if err := indexFault(raw, i); err != nil {
			return nil, malformed(cm.name, cm.ns, b.server, err)
		}
		var f indexFields
		if err := bson.Unmarshal(raw, &f); err != nil {
			return nil, decodeError(cm.name, cm.ns, b.server, err)
		}
		infos[i] = IndexInfo{f.Name, f.Key, f.Unique, f.Sparse, f.Hidden, f.ExpireAfterSeconds, raw}
	}
	return infos, nil
}

// indexFault says what an index's document lacks.
func indexFault(raw bson.Raw, i int) error {
	path := "cursor: index " + index(i)
	if v := raw.Lookup("key"); v.Type != bson.TypeEmbeddedDocument {
		return mongoerr.Malformed(path+".key", v, "a document")
	}
	return nameFault(raw, path)
}

// DropIndexesOptions are the options of DropIndex and DropIndexes; zero fields are not sent.
type DropIndexesOptions struct {
	Comment any
	MaxTime time.Duration
	RawData *bool
}

// DropIndex drops the index of this name. The name "*", which would mean all of them, is an error.
func (c *Collection[T]) DropIndex(ctx context.Context, name string, opts ...DropIndexesOptions) error {
	if name == "*" || name == "" {
		return argument("dropIndexes", c.at().ns(), "DropIndex drops one index, and %q names none: for all use DropIndexes", name)
	}
	return c.at().dropIndexes(ctx, name, opts)
}

// DropIndexes drops all indexes but the one of _id.
func (c *Collection[T]) DropIndexes(ctx context.Context, opts ...DropIndexesOptions) error {
	return c.at().dropIndexes(ctx, "*", opts)
}

func (h *handle) dropIndexes(ctx context.Context, name string, opts []DropIndexesOptions) error {
	o, err := one("dropIndexes", opts)
	if err != nil {
		return err
	}
	c := h.cmd("dropIndexes")
	c.str("index", name)
	c.any("comment", o.Comment)
	c.millis("maxTimeMS", o.MaxTime)
	c.rawData = o.RawData
	return h.run(ctx, c, h.write(c, false))
}
