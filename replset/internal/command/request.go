package command

import (
	"context"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// Handler runs a command. What it returns is the reply without ok, $clusterTime, operationTime, writeConcernError and
// labels, which the dispatcher adds. An error becomes {ok: 0, errmsg, code, codeName}; make it with mongoerr.Server.
// ctx ends when the client hangs up, the member ends or maxTimeMS is over; return context.Cause(ctx) then.
type Handler func(ctx context.Context, m *Member, r *Request) (bson.D, error)

// Flags say how the dispatcher treats a command.
type Flags uint16

const (
	// Reads: a secondary answers only with a $readPreference other than primary, a member without data never.
	Reads Flags = 1 << iota
	// Writes: only a writable primary runs it; after the handler the dispatcher waits for the write concern.
	Writes
	// AdminOnly: only on the database admin.
	AdminOnly
	// BeforeAuth: allowed on a connection that has not authenticated.
	BeforeAuth
	// TakesTxnNumber: a retryable write.
	TakesTxnNumber
	// TakesReadConcern: readConcern other than local is accepted.
	TakesReadConcern
	// Awaits: maxTimeMS is no limit for the whole command.
	Awaits
	// OnExternal: about users, so that the database $external, which holds nothing else, is one for it.
	OnExternal
)

// Spec describes a command.
type Spec struct {
	Name    string
	Aliases []string // other spellings that clients send
	Flags   Flags
	Handler Handler
	Fields  string // the arguments of its own, where the dispatcher refuses others, as checkFields reads it; "": the handler sees to it, or nobody
	Since   int32  // the wire version since which it does; 0: that of 5.0
	Listed  bool   // versions before that refuse others too, in words of their own
}

// help is what a command answers that is asked for help in place of being run.
func (s *Spec) help() string {
	return "help for: " + s.Name + " https://www.mongodb.com/docs/manual/reference/command/" + s.Name + "/"
}

// Request is one command as it arrived. It belongs to the goroutine that runs it.
type Request struct {
	Name string // as sent
	DB   string
	Body bson.Raw              // valid BSON
	Docs map[string][]bson.Raw // document sequences sent beside the body, valid BSON
	Conn *Conn
	Spec *Spec

	ReadPreference string // $readPreference's mode, "" if none was sent
	ReadConcern    ReadConcern
	WriteConcern   WriteConcern
	LSID           bson.Raw // nil without a session
	TxnNumber      int64    // -1 if none was sent
	MaxTimeMS      int64    // 0: no limit

	ctx      context.Context
	invalid  *mongoerr.Error // what is wrong with the whole
	refused  *mongoerr.Error // what is wrong with a hello's client metadata
	told     *topology       // what a hello has just answered
	served   *Member         // who ran it, if it was not the member that has the connection
	wrote    store.OpTime    // of the newest write of this command
	wroteIn  int64           // the term of it
	cut      bool            // a fail point wants the connection closed in place of a reply
	moment   bson.Timestamp  // of a read of level snapshot: the reply tells it
	majority bool            // the reply shows majority-committed data: operationTime is the commit point's
}

// ReadConcern is the readConcern of a command.
type ReadConcern struct {
	Level            string // "local" if none was sent
	AfterClusterTime bson.Timestamp
	AtClusterTime    bson.Timestamp
}

// Context ends when the client hangs up, the member ends or maxTimeMS is over.
func (r *Request) Context() context.Context { return r.ctx }

// Field returns a field of the body, the zero RawValue if it is not there.
func (r *Request) Field(name string) bson.RawValue { return r.Body.Lookup(name) }

// Collection is the name that is the command's own value, as in {find: "people"}.
func (r *Request) Collection() (string, error) {
	for _, v := range r.Body.All() {
		name, ok := v.StringValueOK()
		if !ok {
			return "", mongoerr.Server(mongoerr.CodeInvalidNamespace, "collection name has invalid type %s", bsonName(v.Type))
		}
		if name == "" {
			return "", mongoerr.Server(mongoerr.CodeInvalidNamespace, "Invalid namespace specified '%s.'", r.DB)
		}
		return name, nil
	}
	return "", mongoerr.Server(mongoerr.CodeBadValue, "the command has no fields")
}

// Namespace is "db.collection" of a command whose own value is a collection.
func (r *Request) Namespace() (string, error) {
	coll, err := r.Collection()
	if err != nil {
		return "", err
	}
	return r.DB + "." + coll, nil
}

// Documents returns the documents of a field, whether they came as an array in the body or as a sequence beside it.
// ok is false when neither is there.
func (r *Request) Documents(field string) (docs []bson.Raw, ok bool, err error) {
	if docs, ok := r.Docs[field]; ok {
		return docs, true, nil
	}
	v := r.Field(field)
	if v.IsZero() {
		return nil, false, nil
	}
	arr, isArray := v.ArrayOK()
	if !isArray {
		return nil, true, mongoerr.Server(mongoerr.CodeTypeMismatch,
			"BSON field '%s.%s' is the wrong type '%s', expected type 'array'", r.Name, field, bsonName(v.Type))
	}
	for i, e := range arr.All() {
		doc, isDoc := e.DocumentOK()
		if !isDoc {
			return nil, true, mongoerr.Server(mongoerr.CodeTypeMismatch,
				"BSON field '%s.%s.%d' is the wrong type '%s', expected type 'object'", r.Name, field, i, bsonName(e.Type))
		}
		docs = append(docs, doc)
	}
	return docs, true, nil
}

// SecondaryOK reports whether the client allows a secondary to answer.
func (r *Request) SecondaryOK() bool {
	return r.ReadPreference != "" && r.ReadPreference != "primary"
}
