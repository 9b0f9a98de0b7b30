package query

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// TestStagesHoldMoreWhereTheyMayUseADisk: 6 MB of a collection where 4 may be held.
func TestStagesHoldMoreWhereTheyMayUseADisk(t *testing.T) {
	var docs []bson.Raw
	for i := range 60 {
		docs = append(docs, value.DocOf(value.Field{Key: "_id", Value: bson.Int32Value(int32(i))}, value.Field{Key: "t", Value: bson.StringValue(strings.Repeat("x", 100_000))}))
	}
	for name, c := range map[string]struct {
		pipeline          string
		with, without     int32
		textWith, textOut string
	}{
		"groups":      {pipeline: `[{"$group":{"_id":"$_id","all":{"$push":"$t"}}}]`, without: 292, textOut: "for $group, but didn't allow"},
		"a group":     {`[{"$group":{"_id":null,"all":{"$push":"$t"}}}]`, 146, 146, "$push used too much memory and cannot spill", "$push used too much"},
		"sort":        {pipeline: `[{"$sort":{"_id":-1}}]`, without: 292, textOut: "Sort exceeded memory limit of 4194304 bytes"},
		"sort of few": {pipeline: `[{"$sort":{"_id":-1}},{"$limit":35}]`},
		"buckets":     {pipeline: `[{"$bucketAuto":{"groupBy":"$_id","buckets":5}}]`, without: 292, textOut: "Sort exceeded"},
		"windows":     {pipeline: `[{"$setWindowFields":{"sortBy":{"_id":1},"output":{"n":{"$sum":1}}}}]`, without: 292, textOut: "Sort exceeded"},
	} {
		for disk, code := range map[bool]int32{true: c.with, false: c.without} {
			text := c.textOut
			if disk {
				text = c.textWith
			}
			o := testOptions
			o.Meter = smallMeter()
			o.Meter.Disk = disk
			v, err := bson.ParseExtJSON([]byte(c.pipeline), false)
			if err != nil {
				t.Fatal(err)
			}
			arr, _ := v.ArrayOK()
			p, err := ParsePipeline(arr, Env{Options: o, DB: "t", Coll: "c"})
			if err != nil {
				t.Fatal(err)
			}
			for _, err = range p.Run(docsOf(docs)) {
				if err != nil {
					break
				}
			}
			if mongoerr.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s, with a disk %v: %v, want code %d %q", name, disk, err, code, text)
			}
			if n := o.Meter.Mark(); n != 0 {
				t.Errorf("%s, with a disk %v: %d bytes are still held", name, disk, n)
			}
		}
	}
}
