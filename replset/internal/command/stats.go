package command

import (
	"context"
	"math"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// Sizes are those of the documents in memory: storageSize is the same, indexSize is
// an estimate of 32 bytes a key.
const bytesPerKey = 32

func indexSizes(c *store.Coll, scale int64) (total int64, each bson.D) {
	for _, ix := range c.Indexes() {
		n := int64(ix.Len()) * bytesPerKey
		total += n
		each = append(each, bson.E{Key: ix.Spec().Name, Value: n / scale})
	}
	return total / scale, each
}

// scaleOf is the number that a command's sizes are to be divided by.
func scaleOf(path string, v bson.RawValue) (int64, error) {
	if value.Nullish(v) {
		return 1, nil
	}
	n, ok := truncated(v)
	switch {
	case !ok:
		return 0, mongoerr.Server(mongoerr.CodeTypeMismatch, "BSON field '%s.scale' is the wrong type '%s', expected types '[long, int, decimal, double]'", path, bsonName(v.Type))
	case n < 1 || n > math.MaxInt32:
		return 0, mongoerr.Server(51024, "BSON field 'scale' value must be >= 1, actual value '%d'", n)
	}
	return n, nil
}

// storageStats are sizes in units of scale bytes; that of the average document is in bytes.
func storageStats(c *store.Coll, scale int64) bson.D {
	d := bson.D{{Key: "size", Value: c.Size() / scale}, {Key: "count", Value: countValue(c.Count())}}
	if c.Count() > 0 {
		d = append(d, bson.E{Key: "avgObjSize", Value: countValue(c.Size() / c.Count())})
	}
	total, each := indexSizes(c, scale)
	d = append(d, bson.E{Key: "storageSize", Value: c.Size() / scale}, bson.E{Key: "freeStorageSize", Value: int64(0)},
		bson.E{Key: "capped", Value: c.Options().Capped})
	if c.Options().Capped {
		d = append(d, bson.E{Key: "max", Value: c.Options().Max}, bson.E{Key: "maxSize", Value: c.Options().Size / scale})
	}
	return append(d, bson.E{Key: "nindexes", Value: int32(len(c.Indexes()))}, bson.E{Key: "indexDetails", Value: bson.D{}},
		bson.E{Key: "indexBuilds", Value: bson.A{}}, bson.E{Key: "totalIndexSize", Value: total},
		bson.E{Key: "totalSize", Value: total + c.Size()/scale}, bson.E{Key: "indexSizes", Value: each}, bson.E{Key: "scaleFactor", Value: int32(scale)})
}

func runCollStats(_ context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	scale, err := scaleOf(r.Spec.Name, r.Field("scale"))
	if err != nil {
		return nil, err
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	coll := sn.Collection(ns)
	switch {
	case coll == nil:
		return bson.D{{Key: "ns", Value: ns}, {Key: "size", Value: int32(0)}, {Key: "count", Value: int32(0)}, {Key: "storageSize", Value: int32(0)},
			{Key: "nindexes", Value: int32(0)}, {Key: "totalIndexSize", Value: int32(0)}, {Key: "indexSizes", Value: bson.D{}}, {Key: "scaleFactor", Value: int32(scale)}}, nil
	case coll.Options().ViewOn != "":
		return nil, viewError(ns)
	}
	return append(bson.D{{Key: "ns", Value: ns}}, storageStats(coll, scale)...), nil
}

func runDBStats(_ context.Context, m *Member, r *Request) (bson.D, error) {
	scale, err := scaleOf(r.Spec.Name, r.Field("scale"))
	if err != nil {
		return nil, err
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	var colls, views, indexes, objects, size, indexSize int64
	for _, c := range sn.Collections(r.DB) {
		if c.Options().ViewOn != "" {
			views++
			continue
		}
		colls++
		objects, size, indexes = objects+c.Count(), size+c.Size(), indexes+int64(len(c.Indexes()))
		n, _ := indexSizes(c, 1)
		indexSize += n
	}
	avg := 0.0
	if objects > 0 {
		avg = float64(size) / float64(objects)
	}
	by := float64(scale)
	return bson.D{{Key: "db", Value: r.DB}, {Key: "collections", Value: countValue(colls)}, {Key: "views", Value: countValue(views)},
		{Key: "objects", Value: countValue(objects)}, {Key: "avgObjSize", Value: avg}, {Key: "dataSize", Value: float64(size) / by},
		{Key: "storageSize", Value: float64(size) / by}, {Key: "indexes", Value: countValue(indexes)}, {Key: "indexSize", Value: float64(indexSize) / by},
		{Key: "totalSize", Value: float64(size+indexSize) / by}, {Key: "scaleFactor", Value: int32(scale)},
		{Key: "fsUsedSize", Value: 0.0}, {Key: "fsTotalSize", Value: 0.0}}, nil
}

// runValidate walks every index of a collection and holds its keys to the documents.
func runValidate(_ context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	coll := m.Store.Latest().Collection(ns)
	switch {
	case coll == nil:
		return nil, mongoerr.Server(mongoerr.CodeNamespaceNotFound, "Collection '%s' does not exist to validate.", ns)
	case coll.Options().ViewOn != "":
		return nil, mongoerr.Server(mongoerr.CodeCommandNotSupportedOnView, "Cannot validate a view")
	}
	faults := coll.Validate()
	keys := bson.D{}
	for _, ix := range coll.Indexes() {
		keys = append(keys, bson.E{Key: ix.Spec().Name, Value: int64(ix.Len())})
	}
	return bson.D{{Key: "ns", Value: ns}, {Key: "nInvalidDocuments", Value: int64(0)}, {Key: "nrecords", Value: coll.Count()},
		{Key: "nIndexes", Value: int32(len(coll.Indexes()))}, {Key: "keysPerIndex", Value: keys}, {Key: "valid", Value: len(faults) == 0},
		{Key: "warnings", Value: bson.A{}}, {Key: "errors", Value: faults}}, nil
}

// unsupportedVerbosity is what explain refuses.
func unsupportedVerbosity(v bson.RawValue) error {
	return mongoerr.Server(mongoerr.CodeFailedToParse, "verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}: %s", value.Print(v))
}
