package command

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// runCollMod changes a collection's validator, a view's definition, or an index's
// expireAfterSeconds and hidden.
func runCollMod(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	var reply bson.D
	_, err = m.Write(ctx, r, func(tx *store.Tx) error {
		coll := tx.Collection(ns)
		if coll == nil {
			return mongoerr.Server(mongoerr.CodeNamespaceNotFound, "ns does not exist")
		}
		c := &collMod{coll: coll}
		if err := r.eachField(c.read); err != nil {
			return err
		}
		reply = c.reply
		if c.changes == nil && c.index == nil {
			return nil
		}
		dst, start := bson.BeginDocument(nil)
		return tx.CollMod(ns, bson.EndDocument(append(dst, c.defaults()...), start), c.index)
	})
	return reply, err
}

// collMod is what one such command changes.
type collMod struct {
	coll    *store.Coll
	changes []byte
	has     map[string]bool
	index   bson.Raw
	reply   bson.D
}

func (c *collMod) set(key string, v bson.RawValue) {
	if c.has == nil {
		c.has = map[string]bool{}
	}
	c.has[key] = true
	c.changes = bson.AppendValue(c.changes, key, v)
}

// defaults adds the options that a change of validation makes explicit.
func (c *collMod) defaults() []byte {
	out := c.changes
	if c.has["validationLevel"] || c.has["validationAction"] || c.has["validator"] {
		opts := c.coll.Options().Document()
		if !c.has["validationLevel"] && opts.Lookup("validationLevel").IsZero() {
			out = append(bson.AppendString(nil, "validationLevel", "strict"), out...)
		}
		if !c.has["validationAction"] && opts.Lookup("validationAction").IsZero() {
			out = bson.AppendString(out, "validationAction", "error")
		}
	}
	return out
}

func (c *collMod) read(key string, v bson.RawValue) error {
	if c.coll.Options().ViewOn != "" && key != "viewOn" && key != "pipeline" {
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "option not supported on a view: %s", key)
	}
	switch key {
	case "validator":
		d, ok := v.DocumentOK()
		if !ok {
			return mongoerr.Server(10065, "invalid parameter: expected an object (%s)", key)
		}
		if err := checkValidator(d); err != nil {
			return err
		}
	case "validationLevel", "validationAction":
		if v.Type != bson.TypeString {
			return mongoerr.Server(13111, "wrong type for field (%s) %s != string", key, value.TypeName(v.Type))
		}
		list, name := []string{"off", "strict", "moderate"}, "validation level"
		if key == "validationAction" {
			list, name = []string{"error", "warn"}, "validation action"
		}
		if err := oneOfOption(key, name, v, list...); err != nil {
			return err
		}
	case "viewOn", "pipeline":
		if c.coll.Options().ViewOn == "" {
			return mongoerr.Server(mongoerr.CodeInvalidOptions, "'%s' option only supported on a view", key)
		}
	case "index":
		d, ok := v.DocumentOK()
		if !ok {
			return mongoerr.Server(10065, "invalid parameter: expected an object (index)")
		}
		return c.readIndex(d)
	case "changeStreamPreAndPostImages":
	default:
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "unknown option to collMod: %s", key)
	}
	c.set(key, v)
	return nil
}

func invalidIndex(text string) error { return mongoerr.Server(mongoerr.CodeInvalidOptions, "%s", text) }

func (c *collMod) readIndex(d bson.Raw) error {
	ix, err := c.findIndex(d)
	if err != nil {
		return err
	}
	ttl, hidden := d.Lookup("expireAfterSeconds"), d.Lookup("hidden")
	old := ix.Spec().Doc
	switch {
	case ttl.IsZero() && hidden.IsZero():
		return invalidIndex("no expireAfterSeconds field")
	case !ttl.IsZero() && !ttl.IsNumber():
		return invalidIndex("expireAfterSeconds field must be a number")
	case !ttl.IsZero() && old.Lookup("expireAfterSeconds").IsZero():
		return invalidIndex("no expireAfterSeconds field to update")
	}
	c.index = old
	if !ttl.IsZero() {
		n, _ := truncated(ttl)
		c.reply = append(c.reply, bson.E{Key: "expireAfterSeconds_old", Value: old.Lookup("expireAfterSeconds")},
			bson.E{Key: "expireAfterSeconds_new", Value: ttl})
		c.index = withField(c.index, "expireAfterSeconds", bson.Int64Value(n))
	}
	if !hidden.IsZero() {
		c.reply = append(c.reply, bson.E{Key: "hidden_old", Value: ix.Spec().Hidden}, bson.E{Key: "hidden_new", Value: value.Truthy(hidden)})
		c.index = withField(c.index, "hidden", bson.BooleanValue(value.Truthy(hidden)))
	}
	return nil
}

func (c *collMod) findIndex(d bson.Raw) (*store.Index, error) {
	name, key := d.Lookup("name"), d.Lookup("keyPattern")
	switch {
	case name.IsZero() && key.IsZero():
		return nil, invalidIndex("Must specify either index name or key pattern.")
	case !name.IsZero() && !key.IsZero():
		return nil, invalidIndex("Cannot specify both key pattern and name.")
	}
	s, _ := name.StringValueOK()
	for _, ix := range c.coll.Indexes() {
		if name.IsZero() && query.Compare(bson.DocumentValue(ix.Spec().Key), key) == 0 || !name.IsZero() && ix.Spec().Name == s {
			return ix, nil
		}
	}
	if name.IsZero() {
		return nil, mongoerr.Server(mongoerr.CodeIndexNotFound, "cannot find index %s for ns %s", value.Print(key), c.coll.NS())
	}
	return nil, mongoerr.Server(mongoerr.CodeIndexNotFound, "cannot find index %s for ns %s", s, c.coll.NS())
}

// withField is doc with a field set, in its place or at the end.
func withField(doc bson.Raw, key string, v bson.RawValue) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	found := false
	for k, old := range doc.All() {
		if k == key {
			old, found = v, true
		}
		dst = bson.AppendValue(dst, k, old)
	}
	if !found {
		dst = bson.AppendValue(dst, key, v)
	}
	return bson.EndDocument(dst, start)
}
