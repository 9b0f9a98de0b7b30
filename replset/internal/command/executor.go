package command

import (
	"errors"
	"iter"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// failingAs puts the words of the command that ran before an error of a document, as servers do.
func failingAs(words string, docs iter.Seq2[bson.Raw, error]) iter.Seq2[bson.Raw, error] {
	if words == "" {
		return docs
	}
	return func(yield func(bson.Raw, error) bool) {
		for d, err := range docs {
			if e, ok := errors.AsType[*mongoerr.Error](err); ok {
				with := *e
				with.Message = words + " :: caused by :: " + e.Message
				err = &with
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// findWords and aggregateWords are what the version puts before such an error.
func (p *Persona) findWords(ns string) string {
	if p.wire < wire60 {
		return "Executor error during find command"
	}
	return "Executor error during find command: " + ns
}

func (p *Persona) aggregateWords() string {
	if p.wire < wire44 {
		return ""
	}
	return "PlanExecutor error during aggregation"
}

// keyInIndex makes what returnKey asks for of a document: its key in the index that was used (of an array the least), or
// nothing. Keys of a collation are the strings themselves here, not what a server compares.
func keyInIndex(ix *store.Index) func(bson.Raw) (bson.Raw, error) {
	return func(doc bson.Raw) (bson.Raw, error) {
		dst, start := bson.BeginDocument(nil)
		if ix != nil {
			fields := ix.Spec().Fields
			keys, _, err := query.IndexKeys(fields, doc)
			if err != nil {
				return nil, err
			}
			for i, f := range fields {
				dst = bson.AppendValue(dst, f.Path, keys[0][i])
			}
		}
		return bson.EndDocument(dst, start), nil
	}
}

// strictCommands are those of version 1 of the Stable API; with apiStrict no other runs.
var strictCommands = map[string]bool{
	"abortTransaction": true, "aggregate": true, "authenticate": true, "bulkWrite": true, "collMod": true, "commitTransaction": true,
	"count": true, "create": true, "createIndexes": true, "delete": true, "drop": true, "dropDatabase": true, "dropIndexes": true,
	"endSessions": true, "explain": true, "find": true, "findAndModify": true, "getMore": true, "hello": true, "insert": true,
	"killCursors": true, "listCollections": true, "listDatabases": true, "listIndexes": true, "ping": true, "refreshSessions": true,
	"saslContinue": true, "saslStart": true, "update": true,
}

// looseStages are the stages outside it.
var looseStages = map[string]bool{
	"$currentOp": true, "$indexStats": true, "$listLocalSessions": true, "$listSessions": true, "$listSearchIndexes": true, "$planCacheStats": true, "$search": true,
}

// checkStrict refuses what is outside the Stable API to who has asked for it alone.
func checkStrict(r *Request) error {
	if strict, _ := r.Field("apiStrict").BooleanOK(); !strict {
		return nil
	}
	if !strictCommands[r.Spec.Name] {
		return mongoerr.Server(323, "Provided apiStrict:true, but the command %s is not in API Version 1", r.Name)
	}
	stages, _ := r.Field("pipeline").ArrayOK()
	for _, v := range stages.All() {
		d, _ := v.DocumentOK()
		for name := range d.All() {
			if looseStages[name] {
				return mongoerr.Server(323, "stage %s is not allowed with 'apiStrict: true' in API Version 1", name)
			}
		}
	}
	return nil
}
