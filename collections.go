package sextant

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// ListCollectionsOptions are the options of ListCollections and ListCollectionNames; zero fields are not sent.
type ListCollectionsOptions struct {
	ReadPreference        *readpref.ReadPref // not inherited; nil is the primary
	Pin                   *Pin               // go where it is, in the place of ReadPreference
	Selector              Selector           // nil: none
	AuthorizedCollections *bool              // only those the user may read
	BatchSize             int32
	Comment               any
	RawData               *bool
}

// CollectionInfo is what the server says of a collection or view.
type CollectionInfo struct {
	Name    string   `bson:"name"`
	Type    string   `bson:"type"` // "collection", "view" or "timeseries"
	Options bson.Raw `bson:"options"`
	Info    struct {
		ReadOnly bool        `bson:"readOnly"`
		UUID     bson.Binary `bson:"uuid"`
	} `bson:"info"`
	IDIndex bson.Raw `bson:"idIndex"` // nil for a view
}

// ListCollections lists the collections and views that match the filter (on name, type, options, info); bson.D{}
// matches all.
func (d *Database) ListCollections(ctx context.Context, filter any, opts ...ListCollectionsOptions) ([]CollectionInfo, error) {
	return d.listCollections(ctx, filter, false, opts)
}

// ListCollectionNames lists the names of the collections and views that match the filter; bson.D{} matches all.
func (d *Database) ListCollectionNames(ctx context.Context, filter any, opts ...ListCollectionsOptions) ([]string, error) {
	infos, err := d.listCollections(ctx, filter, true, opts)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(infos))
	for i := range infos {
		names[i] = infos[i].Name
	}
	return names, nil
}

func (d *Database) listCollections(ctx context.Context, filter any, nameOnly bool, opts []ListCollectionsOptions) ([]CollectionInfo, error) {
	o, err := one("listCollections", opts)
	if err != nil {
		return nil, err
	}
	c := d.at().encoded(&cmd{name: "listCollections", ns: d.at().ns(), b: bson.AppendInt32(nil, "listCollections", 1)})
	c.doc("filter", filter)
	c.flag("nameOnly", nameOnly)
	c.opt("authorizedCollections", o.AuthorizedCollections)
	c.cursor(o.BatchSize)
	c.any("comment", o.Comment)
	c.rawData = o.RawData
	b := &batches{h: d.at(), op: c.name, decoder: new(bson.Batch), batchSize: o.BatchSize}
	b.setComment(c, o.Comment)
	if err := b.open(ctx, c, d.at().list(c, route{o.ReadPreference, o.Pin, o.Selector})); err != nil {
		return nil, err
	}
	cur, infos := &Cursor[CollectionInfo]{b: b}, []CollectionInfo{}
	for info, err := range cur.Each(ctx) {
		if err == nil {
			err = nameFault(cur.Raw(), "cursor: collection "+index(len(infos)))
		}
		if err != nil {
			return nil, malformed(c.name, c.ns, b.server, err)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// CreateCollectionOptions are the options of CreateCollection; zero fields are not sent.
type CreateCollectionOptions struct {
	Capped                       bool
	ChangeStreamPreAndPostImages any // {enabled: true} (6.0)
	ClusteredIndex               any // {key: {_id: 1}, unique: true} (5.3)
	Collation                    *Collation
	Comment                      any
	ExpireAfter                  time.Duration // of documents in a time series or a clustered collection
	IndexOptionDefaults          any
	MaxDocuments                 int64 // of a capped collection
	SizeInBytes                  int64 // of a capped collection; required there
	StorageEngine                any
	TimeSeries                   any    // {timeField, metaField, granularity} (5.0)
	ValidationAction             string // "error" or "warn"
	ValidationLevel              string // "off", "strict" or "moderate"
	Validator                    any
}

// CreateCollection creates a collection. It is not needed for plain ones: the first insert creates them.
func (d *Database) CreateCollection(ctx context.Context, name string, opts ...CreateCollectionOptions) error {
	o, err := one("create", opts)
	if err != nil {
		return err
	}
	c := d.create(name)
	c.flag("capped", o.Capped)
	c.i64("size", o.SizeInBytes)
	c.i64("max", o.MaxDocuments)
	c.optDoc("storageEngine", o.StorageEngine)
	c.optDoc("validator", o.Validator)
	c.str("validationLevel", o.ValidationLevel)
	c.str("validationAction", o.ValidationAction)
	c.optDoc("indexOptionDefaults", o.IndexOptionDefaults)
	c.collation(o.Collation)
	c.optDoc("timeseries", o.TimeSeries)
	c.optDoc("clusteredIndex", o.ClusteredIndex)
	c.optDoc("changeStreamPreAndPostImages", o.ChangeStreamPreAndPostImages)
	c.i64("expireAfterSeconds", int64(o.ExpireAfter/time.Second))
	c.any("comment", o.Comment)
	return d.at().run(ctx, c, d.at().write(c, false))
}

// CreateViewOptions are the options of CreateView; zero fields are not sent.
type CreateViewOptions struct {
	Collation *Collation
	Comment   any
}

// CreateView creates a view: a name under which the pipeline over the collection viewOn is read.
func (d *Database) CreateView(ctx context.Context, name, viewOn string, pipeline any, opts ...CreateViewOptions) error {
	o, err := one("create", opts)
	if err != nil {
		return err
	}
	c := d.create(name)
	c.str("viewOn", viewOn)
	c.pipeline("pipeline", pipeline)
	c.collation(o.Collation)
	c.any("comment", o.Comment)
	return d.at().run(ctx, c, d.at().write(c, false))
}

func (d *Database) create(name string) *cmd {
	c := d.at().encoded(newCmd("create", d.at().db+"."+name, name))
	if err := checkCollection(d.at().db, name); err != nil {
		c.fail(err)
	}
	return c
}

// Drop deletes the collection. One that does not exist is no error.
func (c *Collection[T]) Drop(ctx context.Context, opts ...DropOptions) error {
	o, err := one("drop", opts)
	if err != nil {
		return err
	}
	cm := c.at().cmd("drop")
	cm.any("comment", o.Comment)
	err = c.at().run(ctx, cm, c.at().write(cm, false))
	if mongoerr.Code(err) == mongoerr.CodeNamespaceNotFound { // servers before 7.0 say so
		return nil
	}
	return err
}
