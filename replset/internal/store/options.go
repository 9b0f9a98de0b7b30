package store

import (
	"bytes"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// CollOptions are a collection's options. The command that creates it checks them;
// here they are only read.
type CollOptions struct {
	Doc       bson.Raw // all of them as given, for listCollections and the oplog
	Capped    bool
	Size      int64  // bytes of a capped collection
	Max       int64  // documents of a capped collection, 0: no bound
	ViewOn    string // not empty: a view on that collection
	Pipeline  bson.RawArray
	Validator bson.Raw
	WarnOnly  bool   // validationAction is "warn"
	Level     string // validationLevel: "" is "strict"
	NoIDIndex bool
	Collation bson.Raw // with every default; nil compares strings by bytes
}

// notOptions are the fields of a create command or entry that are not options.
var notOptions = map[string]bool{"create": true, "idIndex": true, "writeConcern": true, "comment": true, "lsid": true}

// ReadCollOptions reads options from a create command, an oplog entry or an options
// document. What does not belong to the options is left out; wrong types are ignored.
func ReadCollOptions(doc bson.Raw) CollOptions {
	doc = bytes.Clone(doc)
	var o CollOptions
	dst, start := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		if notOptions[key] || key[:min(1, len(key))] == "$" {
			continue
		}
		dst = bson.AppendValue(dst, key, v)
		o.read(key, v)
	}
	o.Doc = bson.EndDocument(dst, start)
	return o
}

func (o *CollOptions) read(key string, v bson.RawValue) {
	switch key {
	case "capped":
		o.Capped = value.Truthy(v)
	case "size":
		o.Size, _ = v.AsInt64OK()
	case "max":
		o.Max, _ = v.AsInt64OK()
	case "viewOn":
		o.ViewOn, _ = v.StringValueOK()
	case "pipeline":
		o.Pipeline, _ = v.ArrayOK()
	case "validator":
		o.Validator, _ = v.DocumentOK()
	case "validationLevel":
		o.Level, _ = v.StringValueOK()
	case "validationAction":
		action, _ := v.StringValueOK()
		o.WarnOnly = action == "warn"
	case "collation":
		d, _ := v.DocumentOK()
		o.Collation, _ = value.FullCollation(d)
	case "autoIndexId":
		b, ok := v.BooleanOK()
		o.NoIDIndex = ok && !b
	}
}

// Document is the options as given, never nil.
func (o CollOptions) Document() bson.Raw {
	if o.Doc == nil {
		return emptyDocument()
	}
	return o.Doc
}

// compile parses the validator.
func (c *Coll) compile() error {
	c.validator = nil
	if c.opts.Validator == nil || c.opts.Validator.IsEmpty() {
		return nil
	}
	f, err := query.ParseFilter(c.opts.Validator, query.Options{Collation: c.opts.Collation})
	c.validator = f
	return err
}

// validate holds a document to the collection's validator.
func (c *Coll) validate(tx *Tx, doc bson.Raw) error {
	if c.validator == nil || tx.bypass || c.opts.WarnOnly || c.opts.Level == "off" || c.validator.Match(doc) {
		return nil
	}
	e := mongoerr.Server(mongoerr.CodeDocumentValidationFailure, "Document failed validation")
	e.Cause = invalid(c.opts.Validator, doc)
	return e
}

// validateChange is validate for a document that was there before: one that was not valid then may stay so where the level
// is moderate.
func (c *Coll) validateChange(tx *Tx, before, after bson.Raw) error {
	if c.validator != nil && c.opts.Level == "moderate" && !c.validator.Match(before) {
		return nil
	}
	return c.validate(tx, after)
}

// Invalid is the cause of a document that its collection's validator refuses. It says which document and what the
// validator is; unlike a server's, not which part of it was not met.
type Invalid struct{ Info bson.Raw }

func (v *Invalid) Error() string { return "the document does not satisfy the validator" }

func invalid(validator, doc bson.Raw) *Invalid {
	rule, start := bson.BeginDocument(nil)
	for key := range validator.All() {
		if key[:min(1, len(key))] != "$" {
			key = "$and"
		}
		rule = bson.AppendString(rule, "operatorName", key)
		break
	}
	rule = bson.AppendDocument(rule, "specifiedAs", validator)
	rule = bson.EndDocument(rule, start)
	dst, start := bson.BeginDocument(nil)
	if id := doc.Lookup("_id"); !id.IsZero() {
		dst = bson.AppendValue(dst, "failingDocumentId", id)
	}
	dst = bson.AppendDocument(dst, "details", rule)
	return &Invalid{Info: bson.EndDocument(dst, start)}
}
