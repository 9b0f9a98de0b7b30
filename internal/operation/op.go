// Package operation runs one command: it selects a member, checks a connection out, encodes the command straight into
// the connection's buffer, sends it, reads the reply, names what went wrong, tells the cluster, and tries once more
// where the specifications allow it.
//
// An Executor owns no goroutine: everything happens on the caller's. It is safe for concurrent use; an Op is used by
// one Run at a time. retry.go and batch.go are pure.
package operation

import (
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/session"
	"github.com/sextantdb/sextant/readpref"
)

// Kind says where a command may go.
type Kind uint8

// Kinds of operations.
const (
	Read    Kind = iota // follows the read preference
	Write               // goes to a member that takes writes
	Command             // runCommand: follows an explicit read preference, is never retried
)

// Target is what the connection that carries a command was told by its member.
type Target struct {
	Addr           string
	Kind           event.Kind
	TopologyKind   event.TopologyKind
	MaxWire        int32
	MaxBSON        int32 // bytes of a document
	MaxMessage     int32 // bytes of a message
	MaxBatch       int32 // writes of one command
	SessionTimeout time.Duration
}

// Op is one operation. Name, DB and Append are required.
type Op struct {
	Name     string // the command, which is the first key of the body: "find"
	DB, Coll string // the database, and the collection where there is one (for errors only)
	Kind     Kind

	// Append appends the elements of the command, without a document's length and end; the first is {Name: ...}. Run
	// adds $db, lsid, txnNumber, $clusterTime, readConcern, writeConcern and $readPreference. It is called once for each
	// attempt. An error that is no *mongoerr.Error becomes one of the stage encode.
	Append func(dst []byte, t Target) ([]byte, error)
	// Sequence appends whole kind 1 sections behind the body (wire.AppendSequenceStart). Nil: none.
	Sequence func(dst []byte, t Target) ([]byte, error)

	// Statements is how many writes insert, update and delete were sent with; Sequence may set it. What the reply says of
	// writes is held against it. 0: the command is none of these, or nobody knows.
	Statements int

	ReadPref     *readpref.ReadPref // nil: primary
	ReadConcern  *concern.Read      // nil: not sent
	WriteConcern *concern.Write     // nil: not sent; unacknowledged: the call returns when the command is sent
	OutMerge     bool               // an aggregate that writes with $out or $merge

	// Retryable says that the command may be sent twice, if the client's RetryReads or RetryWrites allows it. A write
	// then carries a transaction number, so that the server does it once.
	Retryable bool
	// Repeatable, if there is one, is asked before a Retryable write is sent for the first time, once it is known to whom:
	// what is sent depends on the member's limits. If it is false, the write is sent once and without a transaction number.
	Repeatable func(t Target) bool

	Line     *Line                               // go over this connection and no other; nil: any
	Pin      *cluster.Pin                        // go where it is; ReadPref is then that of the pin; nil: none
	Address  string                              // this member or none (getMore, killCursors)
	Selector func([]event.Member) []event.Member // picks among suitable members, before the latency window; nil: all
	Session  *session.Session                    // nil: a session is taken for this call
	outside  bool                                // of any session: the command that ends sessions

	// Decode reads the reply, whose bytes are valid during the call only. It is not called for errors and unacknowledged
	// writes. A *mongoerr.MalformedReply becomes the error that says so.
	Decode func(reply bson.Raw, r Result) error
}

// Result is what Decode is told beside the reply.
type Result struct {
	Server             string // address of the member that answered
	Kind               event.Kind
	ConnectionID       int64 // the pool's number of the connection
	ServerConnectionID int64
	Attempts           int // 1, or 2 after a retry
	Target             Target
	// Session is the session of the call, nil if the member has no sessions. A cursor that goes on after the call says
	// Session.Keep, passes it in the Op of each getMore, and gives it to Executor.Release at its end.
	Session       *session.Session
	OperationTime bson.Timestamp // zero if the member told none
	// Line is the connection if what goes on after the call must go on over it, else nil. A cursor that does holds it, passes
	// it in the Op of each getMore, and releases it at its end.
	Line *Line
}

// NS is "db.coll", or "db".
func (op *Op) NS() string {
	if op.Coll == "" {
		return op.DB
	}
	return op.DB + "." + op.Coll
}

func (op *Op) acknowledged() bool { return op.WriteConcern.Acknowledged() }
