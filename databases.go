package sextant

import (
	"context"
	"fmt"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// ListDatabasesOptions are the options of ListDatabases and ListDatabaseNames; zero fields are not sent.
type ListDatabasesOptions struct {
	ReadPreference      *readpref.ReadPref // not inherited; nil is the primary
	Pin                 *Pin               // go where it is, in the place of ReadPreference
	Selector            Selector           // nil: none
	AuthorizedDatabases *bool              // only those the user may read
	Comment             any
}

// DatabaseInfo is what the server says of a database.
type DatabaseInfo struct {
	Name       string `bson:"name"`
	SizeOnDisk int64  `bson:"sizeOnDisk"` // bytes
	Empty      bool   `bson:"empty"`
}

// ListDatabasesResult is the server's list.
type ListDatabasesResult struct {
	Databases []DatabaseInfo
	TotalSize int64 // bytes
}

// ListDatabases lists the databases that match the filter (on name, sizeOnDisk, empty); bson.D{} matches all.
func (cl *Client) ListDatabases(ctx context.Context, filter any, opts ...ListDatabasesOptions) (*ListDatabasesResult, error) {
	return cl.listDatabases(ctx, filter, false, opts)
}

// ListDatabaseNames lists the names of the databases that match the filter; bson.D{} matches all.
func (cl *Client) ListDatabaseNames(ctx context.Context, filter any, opts ...ListDatabasesOptions) ([]string, error) {
	res, err := cl.listDatabases(ctx, filter, true, opts)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(res.Databases))
	for i, d := range res.Databases {
		names[i] = d.Name
	}
	return names, nil
}

func (cl *Client) listDatabases(ctx context.Context, filter any, nameOnly bool, opts []ListDatabasesOptions) (*ListDatabasesResult, error) {
	o, err := one("listDatabases", opts)
	if err != nil {
		return nil, err
	}
	h := handle{client: cl, db: "admin", set: settings{bson: cl.settings().bson}}
	c := h.encoded(&cmd{name: "listDatabases", ns: "admin", b: bson.AppendInt32(nil, "listDatabases", 1)})
	c.doc("filter", filter)
	c.flag("nameOnly", nameOnly)
	c.opt("authorizedDatabases", o.AuthorizedDatabases)
	c.any("comment", o.Comment)
	op := h.list(c, route{o.ReadPreference, o.Pin, o.Selector})
	res := &ListDatabasesResult{Databases: []DatabaseInfo{}}
	op.Decode = func(reply bson.Raw, r operation.Result) error {
		err := res.decode(reply)
		if _, odd := err.(*mongoerr.MalformedReply); odd || err == nil {
			return err
		}
		return decodeError(c.name, c.ns, r.Server, err)
	}
	if err := h.run(ctx, c, op); err != nil {
		return nil, err
	}
	return res, nil
}

func (r *ListDatabasesResult) decode(reply bson.Raw) error {
	arr, err := list(reply, "databases")
	if err != nil {
		return err
	}
	for i, v := range arr.All() {
		path := "databases." + index(i)
		doc, ok := v.DocumentOK()
		if !ok {
			return mongoerr.Malformed(path, v, "a document")
		}
		if err := nameFault(doc, path); err != nil {
			return err
		}
		if doc.Lookup("sizeOnDisk").Type != 0 { // not with the names alone
			if _, err := count(doc, "sizeOnDisk", path+".sizeOnDisk"); err != nil {
				return err
			}
		}
		var d DatabaseInfo
		if err := v.Unmarshal(&d); err != nil {
			return fmt.Errorf("database %d: %w", i, err)
		}
		r.Databases = append(r.Databases, d)
	}
	if reply.Lookup("totalSize").Type != 0 {
		r.TotalSize, err = count(reply, "totalSize", "totalSize")
	}
	return err
}

// list is the Op of a listing. Listings go to the primary unless the call says otherwise (specifications "enumerate
// databases", "enumerate collections", "enumerate indexes"): what is inherited was meant for documents.
func (h *handle) list(c *cmd, r route) *operation.Op {
	op := &operation.Op{Name: c.name, DB: h.db, Coll: h.coll, Kind: operation.Read, Append: c.append, Retryable: true}
	h.direct(c, op, r)
	return op
}

// DropOptions are the options of the Drop methods; zero fields are not sent.
type DropOptions struct {
	Comment any
}

// Drop deletes the database with all its collections. One that does not exist is no error.
func (d *Database) Drop(ctx context.Context, opts ...DropOptions) error {
	o, err := one("dropDatabase", opts)
	if err != nil {
		return err
	}
	c := d.at().encoded(&cmd{name: "dropDatabase", ns: d.at().ns(), b: bson.AppendInt32(nil, "dropDatabase", 1)})
	c.any("comment", o.Comment)
	return d.at().run(ctx, c, d.at().write(c, false))
}
