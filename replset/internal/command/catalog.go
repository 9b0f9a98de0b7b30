package command

import (
	"context"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

var catalogCommands = []Spec{
	{Name: "create", Flags: Writes, Handler: runCreate, Fields: "capped autoIndexId idIndex size max storageEngine validator validationLevel validationAction " +
		"indexOptionDefaults viewOn pipeline collation recordPreImages changeStreamPreAndPostImages timeseries clusteredIndex expireAfterSeconds encryptedFields temp flags recordIdsReplicated"},
	{Name: "drop", Flags: Writes, Handler: runDrop, Fields: "collectionUUID"},
	{Name: "dropDatabase", Flags: Writes, Handler: runDropDatabase, Fields: "=:safeLong"},
	{Name: "renameCollection", Flags: Writes | AdminOnly, Handler: runRename, Fields: "to dropTarget stayTemp"},
	{Name: "collMod", Flags: Writes, Handler: runCollMod, Fields: "index validator validationLevel validationAction viewOn pipeline recordPreImages " +
		"changeStreamPreAndPostImages expireAfterSeconds timeseries isTimeseriesNamespace dryRun cappedSize cappedMax"},
	{Name: "listCollections", Flags: Reads, Handler: runListCollections, Fields: "cursor filter nameOnly authorizedCollections includePendingDrops"},
	{Name: "listDatabases", Flags: Reads | AdminOnly, Handler: runListDatabases, Fields: "nameOnly:safeBool authorizedDatabases:bool filter:object", Since: wire42},
	{Name: "createIndexes", Flags: Writes, Handler: runCreateIndexes,
		Fields: "v indexes ignoreUnknownIndexOptions commitQuorum returnOnStart isTimeseriesNamespace collectionUUID"},
	{Name: "dropIndexes", Aliases: []string{"deleteIndexes"}, Flags: Writes, Handler: runDropIndexes, Fields: "index collectionUUID isTimeseriesNamespace"},
	{Name: "listIndexes", Flags: Reads, Handler: runListIndexes, Fields: "cursor includeBuildUUIDs includeIndexBuildInfo isTimeseriesNamespace"},
	{Name: "dbStats", Aliases: []string{"dbstats"}, Handler: runDBStats, Fields: "scale freeStorage:safeBool", Since: wire70},
	{Name: "collStats", Aliases: []string{"collstats"}, Flags: Reads, Handler: runCollStats, Fields: "scale verbose:safeBool waitForLock:safeBool numericOnly:safeBool validationLevel", Since: wire70},
	{Name: "validate", Handler: runValidate},
	{Name: "createSearchIndexes", Flags: Writes, Handler: noSearch},
	{Name: "updateSearchIndex", Flags: Writes, Handler: noSearch},
	{Name: "dropSearchIndex", Flags: Writes, Handler: noSearch},
	{Name: "listSearchIndexes", Handler: noSearch},
}

func noSearch(context.Context, *Member, *Request) (bson.D, error) { return nil, errNoSearch() }

// runCreate makes a collection or a view. Not supported: time series, clustered
// collections.
func runCreate(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	if err := checkWritable(ns); err != nil {
		return nil, err
	}
	c := &createArgs{db: r.DB}
	if err := r.eachField(c.read); err != nil {
		return nil, err
	}
	if err := c.check(r); err != nil {
		return nil, err
	}
	_, err = m.Write(ctx, r, func(tx *store.Tx) error {
		if c.viewOn != "" {
			return createView(tx, ns, c)
		}
		return tx.Create(ns, store.ReadCollOptions(c.options()))
	})
	return c.reply, err
}

// createArgs are the options of create, made canonical.
type createArgs struct {
	db        string
	capped    bool
	size, max int64
	hasSize   bool
	viewOn    string
	pipeline  bool
	hasMax    bool
	rest      []byte // the other options as given
	reply     bson.D
}

func badOption(format string, args ...any) error {
	return mongoerr.Server(mongoerr.CodeBadValue, format, args...)
}

func (c *createArgs) read(key string, v bson.RawValue) error {
	switch key {
	case "capped":
		c.capped = value.Truthy(v)
	case "size":
		return c.readSize(v)
	case "max":
		n, ok := truncated(v)
		if !ok {
			return badOption("max has to be a number")
		}
		c.max, c.hasMax = n, true
	case "idIndex", "flags", "encryptedFields", "recordIdsReplicated":
	case "autoIndexId":
		c.reply = bson.D{{Key: "note", Value: "the autoIndexId option is deprecated and will be removed in a future release"}}
		c.rest = bson.AppendValue(c.rest, key, v)
	case "collation":
		return c.readCollation(v)
	case "viewOn":
		return c.readViewOn(v)
	case "pipeline":
		if v.Type != bson.TypeArray {
			return badOption("'pipeline' has to be an array.")
		}
		c.pipeline = true
		c.rest = bson.AppendValue(c.rest, key, v)
	default:
		return c.readOther(key, v)
	}
	return nil
}

func (c *createArgs) readSize(v bson.RawValue) error {
	n, ok := truncated(v)
	if !ok {
		return badOption("size has to be a number")
	}
	if n < 0 {
		return badOption("size has to be >= 0")
	}
	if n > 0 {
		n = max(256, (n+255)/256*256) // the server rounds up
	}
	c.size, c.hasSize = n, true
	return nil
}

func (c *createArgs) readCollation(v bson.RawValue) error {
	d, ok := v.DocumentOK()
	if !ok {
		return badOption("'collation' has to be a document.")
	}
	if d.IsEmpty() {
		return badOption("'collation' cannot be an empty document.")
	}
	full, err := value.FullCollation(d)
	if err == nil && full != nil {
		c.rest = bson.AppendDocument(c.rest, "collation", full)
	}
	return err
}

func (c *createArgs) readViewOn(v bson.RawValue) error {
	s, ok := v.StringValueOK()
	if !ok {
		return badOption("'viewOn' has to be a string.")
	}
	if s == "" {
		return badOption("'viewOn' cannot be empty.'")
	}
	c.viewOn = s
	c.rest = bson.AppendString(c.rest, "viewOn", s)
	return nil
}

func (c *createArgs) readOther(key string, v bson.RawValue) error {
	switch key {
	case "validator", "storageEngine", "indexOptionDefaults":
		d, ok := v.DocumentOK()
		if !ok {
			return badOption("'%s' has to be a document.", key)
		}
		if key == "validator" {
			if err := checkValidator(d); err != nil || d.IsEmpty() {
				return err
			}
		}
	case "validationLevel":
		if err := oneOfOption(key, "validation level", v, "off", "strict", "moderate"); err != nil {
			return err
		}
	case "validationAction":
		if err := oneOfOption(key, "validation action", v, "error", "warn"); err != nil {
			return err
		}
	case "temp", "changeStreamPreAndPostImages":
	case "clusteredIndex":
		spec, err := clusteredIndex(v)
		if err == nil {
			c.rest = bson.AppendDocument(c.rest, key, spec)
		}
		return err
	case "timeseries", "expireAfterSeconds":
		return mongoerr.Server(mongoerr.CodeCommandNotSupported, "the collection option '%s' is not supported", key)
	default:
		dst, start := bson.BeginDocument(nil)
		opts := bson.EndDocument(bson.AppendValue(dst, key, v), start)
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "The field '%s' is not a valid collection option. Options: %s", key, value.PrintDoc(opts))
	}
	c.rest = bson.AppendValue(c.rest, key, v)
	return nil
}

func oneOfOption(key, name string, v bson.RawValue, list ...string) error {
	s, ok := v.StringValueOK()
	if !ok {
		return badOption("'%s' has to be a string.", key)
	}
	if !oneOf(s, list...) {
		return badOption("invalid %s: %s", name, s)
	}
	return nil
}

// checkValidator refuses what does not parse and what a validator cannot have.
func checkValidator(d bson.Raw) error {
	for key := range d.All() {
		if key == "$text" || key == "$where" {
			return badOption("%s is not allowed in this context", key)
		}
	}
	_, err := query.ParseFilter(d, query.Options{})
	return err
}

func (c *createArgs) check(r *Request) error {
	switch {
	case c.viewOn != "" && c.capped:
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "options 'capped' and 'viewOn' cannot be given together")
	case c.viewOn == "" && c.pipeline:
		return badOption("'pipeline' requires 'viewOn' to also be specified")
	case c.capped && !c.hasSize:
		return mongoerr.Server(14832, "specify size:<n> when capped is true")
	}
	return nil
}

// options are all options in the order in which listCollections shows them.
func (c *createArgs) options() bson.Raw {
	dst, start := bson.BeginDocument(nil)
	if c.capped {
		dst = bson.AppendBoolean(dst, "capped", true)
		dst = appendNumber(dst, "size", c.size)
		if c.hasMax && c.max > 0 {
			dst = appendNumber(dst, "max", c.max)
		}
	}
	dst = append(dst, c.rest...)
	return bson.EndDocument(dst, start)
}

// appendNumber appends an int where it fits, else a long.
func appendNumber(dst []byte, key string, n int64) []byte {
	if n == int64(int32(n)) {
		return bson.AppendInt32(dst, key, int32(n))
	}
	return bson.AppendInt64(dst, key, n)
}

// createView makes a view, whose chain of sources must have an end.
func createView(tx *store.Tx, ns string, c *createArgs) error {
	chain := ns + " => "
	for at := c.viewOn; ; {
		full := c.db + "." + at
		if full == ns {
			return mongoerr.Server(5, "View cycle detected: %s%s => %s", chain, ns, ns)
		}
		coll := tx.Collection(full)
		if coll == nil || coll.Options().ViewOn == "" {
			break
		}
		chain += full + " => "
		at = coll.Options().ViewOn
	}
	opts := store.ReadCollOptions(c.options())
	stages, err := pipelineField(bson.ArrayValue(opts.Pipeline))
	if opts.Pipeline != nil && err != nil {
		return err
	}
	if _, err := query.ParsePipeline(arrayOf(stages), query.Env{}); err != nil {
		return err
	}
	return tx.Create(ns, opts)
}

// runDrop drops a collection. That there is none was an error until version 7.0 (SERVER-43894).
func runDrop(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	ns, err := r.Namespace()
	if err != nil {
		return nil, err
	}
	if ns == store.OplogNS {
		return nil, mongoerr.Server(m.opt.Persona.since(wire50, mongoerr.CodeIllegalOperation, 5255000), "can't drop live oplog while replicating")
	}
	var reply bson.D
	_, err = m.Write(ctx, r, func(tx *store.Tx) error {
		coll := tx.Collection(ns)
		switch {
		case coll == nil && m.opt.Persona.wire >= wire70:
			return nil
		case coll == nil:
			return mongoerr.Server(mongoerr.CodeNamespaceNotFound, "ns not found")
		}
		reply = bson.D{{Key: "ns", Value: ns}}
		if coll.Options().ViewOn == "" {
			reply = append(reply, bson.E{Key: "nIndexesWas", Value: int32(len(coll.Indexes()))})
		}
		return tx.Drop(ns)
	})
	return reply, err
}

func runDropDatabase(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	typed := m.opt.Persona.wire >= wire50 // has a generated parser
	if n, ok := r.Field(r.Name).AsInt64OK(); !ok || n != 1 {
		if typed {
			return nil, mongoerr.Server(5255100, "Have to pass 1 as 'drop' parameter")
		}
		return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "have to pass 1 as db parameter")
	}
	switch r.DB {
	case "admin", "config":
		return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "Dropping the '%s' database is prohibited.", r.DB)
	case "local":
		return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "Cannot drop 'local' database while replication is active")
	}
	var reply bson.D
	_, err := m.Write(ctx, r, func(tx *store.Tx) error {
		if !typed && len(tx.Snapshot().Collections(r.DB)) > 0 {
			reply = bson.D{{Key: "dropped", Value: r.DB}}
		}
		return tx.DropDatabase(r.DB)
	})
	return reply, err
}

// runRename moves a collection, also to another database.
func runRename(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	from, ok := r.Field(r.Name).StringValueOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "'renameCollection' must be of type String")
	}
	to, ok := r.Field("to").StringValueOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "'to' must be of type String")
	}
	for _, n := range []struct{ kind, ns string }{{"source", from}, {"target", to}} {
		if db, coll, _ := strings.Cut(n.ns, "."); db == "" || coll == "" {
			return nil, mongoerr.Server(mongoerr.CodeInvalidNamespace, "Invalid %s namespace: %s", n.kind, n.ns)
		}
		if err := checkWritable(n.ns); err != nil {
			e := serverError(ctx, err)
			return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "error with %s namespace: %s", n.kind, e.Message)
		}
	}
	_, err := m.Write(ctx, r, func(tx *store.Tx) error {
		if c := tx.Collection(from); c != nil && c.Options().ViewOn != "" {
			return mongoerr.Server(mongoerr.CodeCommandNotSupportedOnView, "cannot rename view: %s", from)
		}
		if from == to {
			return mongoerr.Server(mongoerr.CodeNamespaceExists, "target namespace exists")
		}
		return tx.Rename(from, to, value.Truthy(r.Field("dropTarget")))
	})
	return bson.D{}, err
}

func runListCollections(_ context.Context, m *Member, r *Request) (bson.D, error) {
	a, err := parseList(r)
	if err != nil {
		return nil, err
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	var docs []bson.Raw
	for _, c := range sn.Collections(r.DB) {
		doc := describe(c, a.nameOnly)
		if r.Conn.pin != nil {
			doc = withNext(doc, c.Next())
		}
		if a.filter == nil || a.filter.Match(describe(c, false)) {
			docs = append(docs, doc)
		}
	}
	cur := &cursor{ns: r.DB + ".$cmd.listCollections", src: &listSource{docs}}
	return m.openList(r, cur, len(docs), a.batchSize)
}

// withNext tells a member that copies where the collection's numbering of records goes on.
func withNext(doc bson.Raw, next store.RecordID) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		dst = bson.AppendValue(dst, key, v)
	}
	dst = bson.AppendInt64(dst, "nextRecord", int64(next))
	return bson.EndDocument(dst, start)
}

// openList answers with a cursor over a list whose length is known.
func (m *Member) openList(r *Request, c *cursor, n int, batchSize int64) (bson.D, error) {
	return m.open(r, c, batchSize, false, func(given int) bool { return given == n })
}

// describe is a collection as listCollections shows it.
func describe(c *store.Coll, nameOnly bool) bson.Raw {
	kind, view := "collection", c.Options().ViewOn != ""
	if view {
		kind = "view"
	}
	d := bson.D{{Key: "name", Value: c.Name()}, {Key: "type", Value: kind}}
	if nameOnly {
		return document(d)
	}
	info := bson.D{{Key: "readOnly", Value: view}}
	if uuid := c.UUID(); uuid != [16]byte{} {
		info = append(info, bson.E{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: uuid[:]}})
	}
	d = append(d, bson.E{Key: "options", Value: c.Options().Document()}, bson.E{Key: "info", Value: info})
	if ix := c.Indexes(); len(ix) > 0 && ix[0].IsID() && clustered(c) == nil {
		d = append(d, bson.E{Key: "idIndex", Value: ix[0].Spec().Doc})
	}
	return document(d)
}

// listArgs are what the list commands share.
type listArgs struct {
	filter    *query.Filter
	nameOnly  bool
	batchSize int64
}

func parseList(r *Request) (*listArgs, error) {
	a := &listArgs{batchSize: 1 << 62}
	err := r.eachField(func(key string, v bson.RawValue) error {
		switch key {
		case "filter":
			d, ok := v.DocumentOK()
			if !ok {
				return badOption(`"filter" must be an object`)
			}
			f, err := query.ParseFilter(d, query.Options{Now: time.Now()})
			a.filter = f
			return err
		case "nameOnly":
			a.nameOnly = value.Truthy(v)
		case "cursor":
			n, err := cursorOption(v)
			if n >= 0 {
				a.batchSize = n
			}
			return err
		}
		return nil
	})
	return a, err
}

func runListDatabases(_ context.Context, m *Member, r *Request) (bson.D, error) {
	if v := r.Field("filter"); !v.IsZero() && v.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "Field 'filter' must be of type Object in: %s", value.PrintDoc(r.Body))
	}
	a, err := parseList(r)
	if err != nil {
		return nil, err
	}
	sn, err := m.Read(r)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	list := []bson.Raw{}
	for _, db := range sn.Databases() {
		size := int64(0)
		for _, c := range sn.Collections(db) {
			size += c.Size()
		}
		d := bson.D{{Key: "name", Value: db}, {Key: "sizeOnDisk", Value: size}, {Key: "empty", Value: false}}
		if a.filter != nil && !a.filter.Match(document(d)) {
			continue
		}
		total += size
		if a.nameOnly {
			d = d[:1]
		}
		list = append(list, document(d))
	}
	reply := bson.D{{Key: "databases", Value: list}}
	if !a.nameOnly {
		reply = append(reply, bson.E{Key: "totalSize", Value: total}, bson.E{Key: "totalSizeMb", Value: total >> 20})
	}
	return reply, nil
}
