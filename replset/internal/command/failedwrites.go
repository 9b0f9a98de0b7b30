package command

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// What a reply tells of failed writes is bounded: 100,000 duplicate keys with their texts would be a document that nobody can
// read. A server leaves out the texts after maxErrorTexts bytes of them, though never those of the first fullErrors.
const (
	maxErrorTexts = 1 << 20
	fullErrors    = 2
	bareFailure   = 46 // bytes in the reply of an entry that has an index and a code alone
	bareUpsert    = 28 // bytes in the reply of an entry about an upsert, without the value of its _id
)

// failedWrite is one write that failed.
type failedWrite struct {
	index   int32
	code    int32
	message string
	details bson.D // that servers tell beside, such as the key that is there already
}

// failedWrites are the failed writes of a command.
type failedWrites struct {
	list  []failedWrite
	texts int // bytes of their messages
}

func (f *failedWrites) add(one failedWrite) {
	if f.texts >= maxErrorTexts && len(f.list) >= fullErrors {
		one.message = ""
	}
	f.texts += len(one.message)
	f.list = append(f.list, one)
}

// documents are writeErrors of at most room bytes: what is too long of messages and details is left out, no index and no code.
func (f *failedWrites) documents(room int) []bson.D {
	room -= bareFailure * len(f.list)
	out := make([]bson.D, len(f.list))
	for i := range f.list {
		one := &f.list[i]
		message, details := one.within(&room)
		out[i] = append(bson.D{{Key: "index", Value: one.index}, {Key: "code", Value: one.code}, {Key: "errmsg", Value: message}}, details...)
	}
	return out
}

// within is what there is room for, and takes it.
func (f *failedWrite) within(room *int) (message string, details bson.D) {
	if len(f.message) <= *room {
		message = f.message
		*room -= len(message)
	}
	if size := len(document(f.details)); size <= *room {
		details = f.details
		*room -= size
	}
	return message, details
}

// replyLimit is the largest document that answers the request. Members read each other's in any size that a message has:
// an entry of the oplog may hold more than a document.
func (r *Request) replyLimit() int {
	if r.Conn.internal {
		return wire.MaxMessage - 1<<10
	}
	return maxReplied
}

// replyTooLarge is answered in place of a reply that nobody could read. The name is not as sent: that may be what is too long.
func replyTooLarge(r *Request, size int) *mongoerr.Error {
	name := "an unknown command"
	if r.Spec != nil {
		name = r.Spec.Name
	}
	return mongoerr.Server(mongoerr.CodeBSONObjectTooLarge, "the reply of %s is too large: BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(%dMB)",
		name, size, size, r.replyLimit(), store.MaxDocumentSize>>20)
}
