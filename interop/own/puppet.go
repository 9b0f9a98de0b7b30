// Package own is the driver of this house as a puppet, to be compared with strangers: it carries out the steps that it
// reads, a line of Extended JSON each, and answers with a line each. It knows the steps that load and ask.
package own

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

type step struct {
	Op, Collection, Field    string
	Documents, Pipeline      []bson.Raw
	Filter, Sort, Projection bson.D
	Keys                     bson.D
	Skip, Limit              int64
	BatchSize                int32 `bson:"batchSize"`
}

// Serve carries out what it reads until there is no more.
func Serve(uri string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	client, err := sextant.Connect(ctx, uri)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	if _, err := fmt.Fprintln(out, `{"ready":"sextant"}`); err != nil {
		return nil // nobody listens any more
	}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		answer, err := bson.MarshalExtJSON(obey(ctx, client, line), true, false)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", answer); err != nil {
			return nil
		}
	}
}

func obey(ctx context.Context, client *sextant.Client, line []byte) bson.D {
	var s step
	err := bson.UnmarshalExtJSON(line, false, &s)
	var v any
	if err == nil {
		v, err = do(ctx, sextant.CollectionOf[bson.Raw](client.Database("interop"), s.Collection), s)
	}
	if err != nil {
		return bson.D{{Key: "error", Value: bson.D{{Key: "code", Value: mongoerr.Code(err)}, {Key: "message", Value: err.Error()}}}}
	}
	return bson.D{{Key: "ok", Value: v}}
}

func do(ctx context.Context, c *sextant.Collection[bson.Raw], s step) (any, error) {
	if s.Filter == nil {
		s.Filter = bson.D{}
	}
	switch s.Op {
	case "insertMany":
		res, err := c.InsertMany(ctx, s.Documents)
		if err != nil {
			return nil, err
		}
		return len(res.InsertedIDs), nil
	case "createIndex":
		return c.CreateIndex(ctx, sextant.IndexModel{Keys: s.Keys})
	case "find":
		o := sextant.FindOptions{Skip: s.Skip, Limit: s.Limit, BatchSize: s.BatchSize}
		if s.Sort != nil {
			o.Sort = s.Sort
		}
		if s.Projection != nil {
			o.Projection = s.Projection
		}
		return all(ctx)(c.Find(ctx, s.Filter, o))
	case "aggregate":
		return all(ctx)(sextant.Aggregate[bson.Raw](ctx, c, s.Pipeline, sextant.AggregateOptions{BatchSize: s.BatchSize}))
	case "count":
		return c.CountDocuments(ctx, s.Filter)
	case "distinct":
		return sextant.Distinct[bson.RawValue](ctx, c, s.Field, s.Filter)
	}
	return nil, fmt.Errorf("no operation %q", s.Op)
}

func all(ctx context.Context) func(*sextant.Cursor[bson.Raw], error) (any, error) {
	return func(cur *sextant.Cursor[bson.Raw], err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return cur.All(ctx)
	}
}
