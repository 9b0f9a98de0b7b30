package query

import (
	"bytes"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// parsePipeline parses an update that is a pipeline of $set, $unset, $project, $replaceRoot.
func (u *Update) parsePipeline(stages bson.RawArray, arrayFilters []bson.Raw) error {
	if len(arrayFilters) > 0 {
		return fail(mongoerr.CodeFailedToParse, "arrayFilters may not be specified for pipeline-style updates")
	}
	ee, vars, err := u.opts.exprEnv()
	if err != nil {
		return err
	}
	pp := &pipelineParser{env: &Env{Options: u.opts}, ee: ee, scope: vars, update: true}
	u.pipeline, err = pp.parse(stages)
	return err
}

func (u *Update) applyPipeline(doc bson.Raw, insert bool) (bson.Raw, bool, error) {
	out, err := collect(u.pipeline.Run(docsOf([]bson.Raw{doc})))
	if err != nil {
		return nil, false, err
	}
	if len(out) != 1 {
		return nil, false, fail(mongoerr.CodeInternalError, "an update pipeline gave %d documents", len(out))
	}
	old, id := value.Get(doc, "_id"), value.Get(out[0], "_id")
	switch {
	case id.Type == 0 && old.Type != 0:
		out[0] = setFirst(out[0], old)
	case old.Type != 0 && value.Compare(old, id) != 0:
		return nil, false, fail(mongoerr.CodeImmutableField, "Performing an update on the path '_id' would modify the immutable field '_id'")
	}
	if err := u.opts.checkStored(out[0]); err != nil {
		return nil, false, err
	}
	if bytes.Equal(out[0], doc) && !insert {
		return doc, false, nil
	}
	return out[0], true, nil
}
