package command

import (
	"crypto/sha256"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// madeDocuments are those of a first stage that the server itself answers, which is
// taken out; nil if the pipeline has none.
func (a *aggregate) madeDocuments(sn *store.Snapshot) (query.Docs, []bson.Raw, error) {
	name, arg := firstStage(a.stages)
	var docs []bson.Raw
	var err error
	switch name {
	case "$collStats":
		docs, err = a.collStats(sn.Collection(a.base), arg)
	case "$indexStats":
		docs, err = a.indexStats(sn.Collection(a.base), arg)
	case "$listLocalSessions":
		docs, err = a.localSessions()
	case "$listSessions":
		docs, err = a.storedSessions()
	case "$currentOp":
		docs, err = a.currentOp(arg)
	case "$listSearchIndexes":
		err = errNoSearch()
	default:
		return nil, a.stages, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return listOf(docs...), a.stages[1:], nil
}

// collStats answers {count: {}} and {storageStats: {}} of the stage $collStats.
func (a *aggregate) collStats(coll *store.Coll, arg bson.RawValue) ([]bson.Raw, error) {
	spec, ok := arg.DocumentOK()
	if !ok {
		return nil, mongoerr.Server(40166, "$collStats must take a nested object but found: %s", value.PrintElement("$collStats", arg))
	}
	if coll == nil {
		return nil, mongoerr.Server(mongoerr.CodeNamespaceNotFound, "Collection [%s] not found.", a.base)
	}
	d := bson.D{{Key: "ns", Value: a.base}, {Key: "localTime", Value: a.now}}
	for key, v := range spec.All() {
		if _, ok := v.DocumentOK(); !ok {
			return nil, wrongField("$collStats", key, v, "object")
		}
		switch key {
		case "count":
			d = append(d, bson.E{Key: "count", Value: countValue(coll.Count())})
		case "storageStats":
			scale, err := scaleOf("storageStats", v.Document().Lookup("scale"))
			if err != nil {
				return nil, err
			}
			d = append(d, bson.E{Key: "storageStats", Value: storageStats(coll, scale)})
		case "latencyStats", "queryExecStats":
		default:
			return nil, mongoerr.Server(40168, "unrecognized option to $collStats: %s", key)
		}
	}
	return []bson.Raw{document(d)}, nil
}

func (a *aggregate) indexStats(coll *store.Coll, arg bson.RawValue) ([]bson.Raw, error) {
	if d, ok := arg.DocumentOK(); !ok || !d.IsEmpty() {
		return nil, mongoerr.Server(28803, "The $indexStats stage specification must be an empty object")
	}
	var docs []bson.Raw
	if coll != nil {
		for _, ix := range coll.Indexes() {
			docs = append(docs, document(bson.D{{Key: "name", Value: ix.Spec().Name}, {Key: "key", Value: ix.Spec().Key},
				{Key: "accesses", Value: bson.D{{Key: "ops", Value: int64(0)}, {Key: "since", Value: a.now}}}, {Key: "spec", Value: ix.Spec().Doc}}))
		}
	}
	return docs, nil
}

// collectionless reports whether the pipeline runs on a database.
func (a *aggregate) collectionless() bool { return store.CollectionOf(a.ns) == "$cmd.aggregate" }

// localSessions lists the sessions that this member has seen. Users are not kept: all are shown, each without its owner.
func (a *aggregate) localSessions() ([]bson.Raw, error) {
	if !a.collectionless() {
		return nil, mongoerr.Server(mongoerr.CodeInvalidNamespace, "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection")
	}
	nobody := sha256.Sum256(nil) // the digest of a session without a user
	var docs []bson.Raw
	for id, last := range a.m.sessions.list() {
		key := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id[:]}}, {Key: "uid", Value: bson.Binary{Data: nobody[:]}}}
		docs = append(docs, document(bson.D{{Key: "_id", Value: key}, {Key: "lastUse", Value: last}}))
	}
	return docs, nil
}

// storedSessions are those of config.system.sessions: sessions are not stored here, so there are none.
func (a *aggregate) storedSessions() ([]bson.Raw, error) {
	if a.ns != "config.system.sessions" {
		return nil, mongoerr.Server(mongoerr.CodeInvalidNamespace, "$listSessions may only be run against config.system.sessions")
	}
	return nil, nil
}

// currentOp shows what the member's connections are busy with. There are no idle cursors or sessions among it.
func (a *aggregate) currentOp(arg bson.RawValue) ([]bson.Raw, error) {
	if !a.collectionless() || a.r.DB != "admin" {
		return nil, mongoerr.Server(mongoerr.CodeInvalidNamespace, "$currentOp must be run against the 'admin' database with {aggregate: 1}")
	}
	spec, ok := arg.DocumentOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "$currentOp options must be specified in an object, but found: %s", bsonName(arg.Type))
	}
	given := map[string]bool{}
	for key, v := range spec.All() {
		switch key {
		case "allUsers", "idleConnections", "idleCursors", "idleSessions", "localOps", "truncateOps", "targetAllNodes":
		default:
			return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "Unrecognized option '%s' in $currentOp stage.", key)
		}
		if given[key], ok = v.BooleanOK(); !ok {
			return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "The '%s' parameter of the $currentOp stage must be a boolean value, but found: %s", key, bsonName(v.Type))
		}
	}
	return a.m.ops(a.r, shown{given["idleConnections"], given["allUsers"], !given["truncateOps"]}), nil
}

// errNoSearch is what a server without Atlas Search says of its commands and stage.
func errNoSearch() error {
	return mongoerr.Server(31082, "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
		"Please connect to Atlas or an AtlasCLI local deployment to enable. For more information on how to connect, see https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs")
}
