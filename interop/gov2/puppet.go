// Package gov2 is the official Go driver v2 as a puppet: it carries out the steps that it reads, a line of Extended JSON
// each, and answers with a line each. The steps are told in ../scenario_test.go, the same to every client.
package gov2

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/tag"
	"go.mongodb.org/mongo-driver/v2/version"
)

type step struct {
	Op, Collection, DB, Field, Name string
	Command, Document, Keys         bson.D
	Documents, Pipeline             []bson.D
	Filter                          bson.D
	Update, Replacement             bson.D
	Sort, Projection                bson.D
	Skip, Limit                     int64
	BatchSize                       int32 `bson:"batchSize"`
	Ordered                         *bool
	Upsert                          bool
	ArrayFilters                    []any `bson:"arrayFilters"`
	Models                          []map[string]step
	Options                         struct {
		Name   string
		Unique bool
	}
	ReadPreference *struct {
		Mode string
		Tags []map[string]string
	} `bson:"readPreference"`
}

// puppet holds the strings.
type puppet struct {
	client *mongo.Client
	mu     sync.Mutex        // guards kinds
	kinds  map[string]string // what each member is
}

// Serve carries out what it reads until there is no more.
func Serve(uri string, in io.Reader, out io.Writer) error {
	p := &puppet{}
	monitor := &event.ServerMonitor{TopologyDescriptionChanged: p.see}
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitor(monitor))
	if err != nil {
		return err
	}
	p.client = client
	ctx := context.Background()
	defer client.Disconnect(ctx)
	if _, err := fmt.Fprintf(out, "{\"ready\":\"official Go driver %s\"}\n", version.Driver); err != nil {
		return nil // nobody listens any more
	}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		answer, err := bson.MarshalExtJSON(p.answer(ctx, line), true, false)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", answer); err != nil {
			return nil
		}
	}
}

func (p *puppet) see(e *event.TopologyDescriptionChangedEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kinds = map[string]string{}
	for _, s := range e.NewDescription.Servers {
		p.kinds[s.Addr.String()] = s.Kind
	}
}

func (p *puppet) answer(ctx context.Context, line []byte) bson.D {
	var s step
	err := bson.UnmarshalExtJSON(line, false, &s)
	var v any
	if err == nil {
		v, err = p.do(ctx, s)
	}
	if err != nil {
		return bson.D{{Key: "error", Value: failure(err)}}
	}
	return bson.D{{Key: "ok", Value: v}}
}

// partly is the failure of a bulk write, of which some was done.
type partly struct {
	error
	inserted int64
}

func (p partly) Unwrap() error { return p.error }

func failure(err error) bson.D {
	d := bson.D{{Key: "message", Value: err.Error()}}
	if p, ok := errors.AsType[partly](err); ok {
		d = append(d, bson.E{Key: "inserted", Value: p.inserted})
	}
	if e, ok := errors.AsType[mongo.BulkWriteException](err); ok && len(e.WriteErrors) > 0 {
		failed := bson.A{}
		for _, w := range e.WriteErrors {
			failed = append(failed, w.Index)
		}
		return append(d, bson.E{Key: "code", Value: e.WriteErrors[0].Code}, bson.E{Key: "failed", Value: failed})
	}
	if e, ok := errors.AsType[mongo.ServerError](err); ok && len(e.ErrorCodes()) > 0 {
		d = append(d, bson.E{Key: "code", Value: e.ErrorCodes()[0]})
	}
	return d
}

// preference is the step's read preference, the primary if it has none.
func (s step) preference() (*readpref.ReadPref, error) {
	if s.ReadPreference == nil {
		return readpref.Primary(), nil
	}
	mode, err := readpref.ModeFromString(s.ReadPreference.Mode)
	if err != nil || s.ReadPreference.Tags == nil {
		rp, _ := readpref.New(mode)
		return rp, err
	}
	return readpref.New(mode, readpref.WithTagSets(tag.NewTagSetsFromMaps(s.ReadPreference.Tags)...))
}

func (p *puppet) do(ctx context.Context, s step) (any, error) {
	rp, err := s.preference()
	if err != nil {
		return nil, err
	}
	switch s.Op {
	case "members":
		return p.members(ctx)
	case "command":
		return p.client.Database(s.DB).RunCommand(ctx, s.Command, options.RunCmd().SetReadPreference(rp)).Raw()
	}
	c := p.client.Database("interop").Collection(s.Collection, options.Collection().SetReadPreference(rp))
	if s.Filter == nil {
		s.Filter = bson.D{}
	}
	for _, family := range []func(context.Context, *mongo.Collection, step) (any, error){read, write, index} {
		if v, err := family(ctx, c, s); err != errOther {
			return v, err
		}
	}
	return nil, fmt.Errorf("no operation %q", s.Op)
}

// errOther says that an operation is of another family.
var errOther = errors.New("of another family")

func (p *puppet) members(ctx context.Context) (any, error) {
	if err := p.client.Ping(ctx, readpref.Primary()); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var primary any
	others := []string{}
	for addr, kind := range p.kinds {
		switch kind {
		case "RSPrimary":
			primary = addr
		case "RSSecondary":
			others = append(others, addr)
		}
	}
	slices.Sort(others)
	return bson.D{{Key: "primary", Value: primary}, {Key: "secondaries", Value: others}}, nil
}

func read(ctx context.Context, c *mongo.Collection, s step) (any, error) {
	switch s.Op {
	case "find":
		o := options.Find().SetSkip(s.Skip).SetLimit(s.Limit)
		if s.BatchSize != 0 { // an empty first batch is all that Cursor.All would read
			o.SetBatchSize(s.BatchSize)
		}
		if s.Sort != nil {
			o.SetSort(s.Sort)
		}
		if s.Projection != nil {
			o.SetProjection(s.Projection)
		}
		return all(ctx)(c.Find(ctx, s.Filter, o))
	case "aggregate":
		o := options.Aggregate()
		if s.BatchSize != 0 {
			o.SetBatchSize(s.BatchSize)
		}
		return all(ctx)(c.Aggregate(ctx, s.Pipeline, o))
	case "count":
		return c.CountDocuments(ctx, s.Filter)
	case "distinct":
		var values bson.A
		err := c.Distinct(ctx, s.Field, s.Filter).Decode(&values)
		return values, err
	}
	return nil, errOther
}

func all(ctx context.Context) func(*mongo.Cursor, error) (any, error) {
	return func(cur *mongo.Cursor, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		docs := []bson.Raw{}
		err = cur.All(ctx, &docs)
		return docs, err
	}
}

func write(ctx context.Context, c *mongo.Collection, s step) (any, error) {
	switch s.Op {
	case "insertOne":
		res, err := c.InsertOne(ctx, s.Document)
		if err != nil {
			return nil, err
		}
		return res.InsertedID, nil
	case "insertMany":
		res, err := c.InsertMany(ctx, s.Documents)
		if err != nil {
			return nil, err
		}
		return len(res.InsertedIDs), nil
	case "updateOne":
		return updated(c.UpdateOne(ctx, s.Filter, s.Update, options.UpdateOne().SetUpsert(s.Upsert).SetArrayFilters(s.ArrayFilters)))
	case "updateMany":
		return updated(c.UpdateMany(ctx, s.Filter, s.Update, options.UpdateMany().SetUpsert(s.Upsert).SetArrayFilters(s.ArrayFilters)))
	case "replaceOne":
		return updated(c.ReplaceOne(ctx, s.Filter, s.Replacement, options.Replace().SetUpsert(s.Upsert)))
	case "deleteOne":
		return deleted(c.DeleteOne(ctx, s.Filter))
	case "deleteMany":
		return deleted(c.DeleteMany(ctx, s.Filter))
	case "findOneAndUpdate":
		raw, err := c.FindOneAndUpdate(ctx, s.Filter, s.Update, options.FindOneAndUpdate().SetUpsert(s.Upsert).SetReturnDocument(options.After)).Raw()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil, nil
		}
		return raw, err
	case "bulk":
		return bulk(ctx, c, s)
	}
	return nil, errOther
}

func updated(res *mongo.UpdateResult, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "matched", Value: res.MatchedCount}, {Key: "modified", Value: res.ModifiedCount}, {Key: "upserted", Value: res.UpsertedID}}, nil
}

func deleted(res *mongo.DeleteResult, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return res.DeletedCount, nil
}

func model(kind string, m step) (mongo.WriteModel, error) {
	switch kind {
	case "insertOne":
		return mongo.NewInsertOneModel().SetDocument(m.Document), nil
	case "updateOne":
		return mongo.NewUpdateOneModel().SetFilter(m.Filter).SetUpdate(m.Update).SetUpsert(m.Upsert), nil
	case "updateMany":
		return mongo.NewUpdateManyModel().SetFilter(m.Filter).SetUpdate(m.Update).SetUpsert(m.Upsert), nil
	case "replaceOne":
		return mongo.NewReplaceOneModel().SetFilter(m.Filter).SetReplacement(m.Replacement).SetUpsert(m.Upsert), nil
	case "deleteOne":
		return mongo.NewDeleteOneModel().SetFilter(m.Filter), nil
	case "deleteMany":
		return mongo.NewDeleteManyModel().SetFilter(m.Filter), nil
	}
	return nil, fmt.Errorf("no model %q", kind)
}

func bulk(ctx context.Context, c *mongo.Collection, s step) (any, error) {
	var models []mongo.WriteModel
	for _, told := range s.Models {
		for kind, m := range told {
			one, err := model(kind, m)
			if err != nil {
				return nil, err
			}
			models = append(models, one)
		}
	}
	res, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(s.Ordered == nil || *s.Ordered))
	if err != nil {
		return nil, partly{err, res.InsertedCount}
	}
	return bson.D{{Key: "inserted", Value: res.InsertedCount}, {Key: "matched", Value: res.MatchedCount}, {Key: "modified", Value: res.ModifiedCount},
		{Key: "deleted", Value: res.DeletedCount}, {Key: "upserted", Value: res.UpsertedCount}}, nil
}

func index(ctx context.Context, c *mongo.Collection, s step) (any, error) {
	switch s.Op {
	case "createIndex":
		o := options.Index().SetUnique(s.Options.Unique)
		if s.Options.Name != "" {
			o.SetName(s.Options.Name)
		}
		return c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: s.Keys, Options: o})
	case "listIndexes":
		specs, err := c.Indexes().ListSpecifications(ctx)
		names := []string{}
		for _, spec := range specs {
			names = append(names, spec.Name)
		}
		slices.Sort(names)
		return names, err
	case "dropIndex":
		return nil, c.Indexes().DropOne(ctx, s.Name)
	case "drop":
		return nil, c.Drop(ctx)
	}
	return nil, errOther
}
