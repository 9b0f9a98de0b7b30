package sextant

import (
	"errors"
	"fmt"

	"github.com/sextantdb/sextant/mongoerr"
)

// The sentinels that are met most, under the name of this package too. All failures are of package mongoerr:
// ask with its predicates, or with errors.As for a *mongoerr.Error.
var (
	// ErrNoDocuments is returned by FindOne and the FindOneAnd methods when no document matches.
	ErrNoDocuments = mongoerr.ErrNoDocuments
	// ErrClientClosed is the cause when a client, or anything made from it, is used after Close.
	ErrClientClosed = mongoerr.ErrClientClosed
	// ErrNilDocument is the cause when a document, a filter, an update or a pipeline is nil. To match everything
	// pass bson.D{}.
	ErrNilDocument = mongoerr.ErrNilDocument
)

// argument is the error for a call that is wrong before anything is sent.
func argument(op, ns, format string, args ...any) *mongoerr.Error {
	return &mongoerr.Error{Op: op, NS: ns, Stage: mongoerr.StageConfig, Message: fmt.Sprintf(format, args...)}
}

// encodeError wraps a failure to turn a Go value into BSON; what says which value of the call it was.
func encodeError(op, ns, what string, err error) error {
	return &mongoerr.Error{Op: op, NS: ns, Stage: mongoerr.StageEncode, Message: what + " cannot be encoded: " + err.Error(), Cause: err}
}

// decodeError wraps a failure to turn a reply's BSON into the caller's type.
func decodeError(op, ns, server string, err error) error {
	return &mongoerr.Error{Op: op, NS: ns, Server: server, Stage: mongoerr.StageDecode, Message: "the reply cannot be decoded: " + err.Error(), Cause: err}
}

// words is what an error says, without naming the stage again.
func words(err error) string {
	if e, ok := errors.AsType[*mongoerr.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return err.Error()
}

// configError is the error for a configuration that cannot be used, whatever the servers say.
func configError(format string, args ...any) error {
	return &mongoerr.Error{Stage: mongoerr.StageConfig, Message: fmt.Sprintf(format, args...)}
}
