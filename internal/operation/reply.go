package operation

import (
	"math"
	"strconv"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// What a server says is judged here, and by Op.Decode for the fields that single commands have, by one rule: a field that is
// read must be what the command's replies have there, or the reply is a *mongoerr.MalformedReply, which is neither a success
// nor a refusal and is not retried. What is not read is not judged, and what servers are known to leave out may be missing:
// nModified and upserted, the code or the text of a failed write (not both), n beside writeErrors.
//
// The connection stays open and the member stays as it was: the reply's frame was whole and answered this very request, so
// that the next one is read where it begins. What breaks a connection is a reply that is no BSON.

// verdict says what is wrong with a reply, nil if it tells of success. The error keeps a copy of the reply.
func verdict(body bson.Raw, op *Op) *mongoerr.Error {
	okay, parts, reason := okIn(body)
	if okay == yes {
		if f := writesFault(body, op); f != nil {
			return broken(f, body, op)
		}
		if !parts {
			return nil
		}
	}
	wrong := last(body, "ok")
	if okay == neither && !reason {
		return broken(mongoerr.Malformed("ok", wrong, "1 or 0"), body, op)
	}
	e := mongoerr.FromReply(body.Clone())
	if e == nil { // an empty list of failures
		return nil
	}
	f := refusalFault(body, okay)
	if okay == neither {
		f = mongoerr.Malformed("ok", wrong, "1 or 0")
	}
	if f != nil {
		e.Cause = f
	}
	return e
}

// broken is the error of a reply that is neither a success nor a refusal.
func broken(f *mongoerr.MalformedReply, body bson.Raw, op *Op) *mongoerr.Error {
	unknown := ""
	switch {
	case op.Kind == Write || op.OutMerge:
		unknown = "the write was done"
	case op.Kind == Command:
		unknown = "the command was carried out"
	}
	e := f.Failure(unknown)
	e.Response = body.Clone()
	return e
}

// okIn reads ok, and whether failures of writes are told, or a reason for a refusal.
func okIn(body bson.Raw) (okay answer, parts, reason bool) {
	for key, v := range body.All() {
		switch key {
		case "ok":
			okay = answerOf(v)
		case "writeErrors", "writeConcernError":
			parts = true
		case "code":
			n, isNumber := v.AsInt64OK()
			reason = reason || isNumber && n != 0
		case "errmsg", "$err":
			_, isText := v.StringValueOK()
			reason = reason || isText
		}
	}
	return okay, parts, reason
}

// answer is what a reply's ok says.
type answer uint8

const (
	neither answer = iota // it is missing, or no answer to the question
	yes
	no
)

func answerOf(v bson.RawValue) answer {
	if b, ok := v.BooleanOK(); ok {
		if b {
			return yes
		}
		return no
	}
	switch f, ok := v.AsFloat64OK(); {
	case ok && f == 1:
		return yes
	case ok && f == 0:
		return no
	}
	return neither
}

// last is the value of a key, the last one if it is there more than once, as mongoerr.FromReply has it.
func last(body bson.Raw, key string) (found bson.RawValue) {
	for k, v := range body.All() {
		if k == key {
			found = v
		}
	}
	return found
}

// refusalFault looks at the details of a refusal: they decide on retries and on what is believed of the member. With ok: 1
// what failed are writes, and has been looked at; a code then is none of the command's.
func refusalFault(body bson.Raw, okay answer) (f *mongoerr.MalformedReply) {
	if okay == yes {
		return labelsFault(last(body, "errorLabels"))
	}
	for key, v := range body.All() {
		var fault *mongoerr.MalformedReply
		switch key {
		case "code":
			fault = codeFault(key, v)
		case "codeName", "errmsg":
			if _, ok := v.StringValueOK(); !ok {
				fault = mongoerr.Malformed(key, v, "a string")
			}
		case "errorLabels":
			fault = labelsFault(v)
		case "writeErrors":
			fault = writeErrorsFault(v, 0)
		case "writeConcernError":
			fault = concernFault(v)
		}
		if f == nil {
			f = fault
		}
	}
	return f
}

func codeFault(field string, v bson.RawValue) *mongoerr.MalformedReply {
	if n, ok := v.AsInt64OK(); !ok || n != int64(int32(n)) {
		return mongoerr.Malformed(field, v, "a 32-bit integer")
	}
	return nil
}

func labelsFault(v bson.RawValue) *mongoerr.MalformedReply {
	if v.Type == 0 {
		return nil
	}
	labels, ok := v.ArrayOK()
	if !ok {
		return mongoerr.Malformed("errorLabels", v, "an array of strings")
	}
	for i, l := range labels.All() {
		if _, ok := l.StringValueOK(); !ok {
			return mongoerr.Malformed("errorLabels."+strconv.Itoa(i), l, "a string")
		}
	}
	return nil
}

// writesFault looks at what a reply with ok: 1 says of writes. Failures are looked for in every reply; counts in those to
// the commands that are made of statements.
func writesFault(body bson.Raw, op *Op) (f *mongoerr.MalformedReply) {
	failed, unmet := false, false
	for key, v := range body.All() {
		var fault *mongoerr.MalformedReply
		switch key {
		case "writeErrors":
			fault = writeErrorsFault(v, op.Statements)
			list, _ := v.ArrayOK()
			failed = list.Len() > 0
		case "writeConcernError":
			fault, unmet = concernFault(v), true
		}
		if f == nil {
			f = fault
		}
	}
	if f != nil || op.Statements == 0 {
		return f
	}
	return countsFault(body, op, failed, unmet)
}

// writeErrorsFault looks at the failures of single writes, of which there were so many; 0: nobody knows.
func writeErrorsFault(v bson.RawValue, statements int) *mongoerr.MalformedReply {
	list, ok := v.ArrayOK()
	if !ok {
		return mongoerr.Malformed("writeErrors", v, "an array of documents")
	}
	seen := map[int64]bool{}
	for i, item := range list.All() {
		path := "writeErrors." + strconv.Itoa(i)
		doc, ok := item.DocumentOK()
		if !ok {
			return mongoerr.Malformed(path, item, "a document")
		}
		at := last(doc, "index")
		n, f := indexFault(path+".index", at, statements)
		if f != nil {
			return f
		}
		if seen[n] {
			return mongoerr.Malformed(path+".index", at, "the index of another write")
		}
		seen[n] = true
		if f := reasonFault(path, doc); f != nil {
			return f
		}
	}
	return nil
}

func indexFault(field string, v bson.RawValue, statements int) (int64, *mongoerr.MalformedReply) {
	n, ok := v.AsInt64OK()
	switch {
	case statements > 0 && (!ok || n < 0 || n >= int64(statements)):
		return 0, mongoerr.Malformed(field, v, "the index of a write that was sent, 0 to %d,", statements-1)
	case !ok || n < 0 || n > math.MaxInt32:
		return 0, mongoerr.Malformed(field, v, "an index from 0 on")
	}
	return n, nil
}

// reasonFault demands a reason: a code, or a text, or both.
func reasonFault(path string, doc bson.Raw) *mongoerr.MalformedReply {
	code := last(doc, "code")
	if code.Type != 0 {
		return codeFault(path+".code", code)
	}
	if _, ok := last(doc, "errmsg").StringValueOK(); !ok {
		return mongoerr.Malformed(path+".code", code, "a 32-bit integer")
	}
	return nil
}

func concernFault(v bson.RawValue) *mongoerr.MalformedReply {
	doc, ok := v.DocumentOK()
	if !ok {
		return mongoerr.Malformed("writeConcernError", v, "a document")
	}
	return reasonFault("writeConcernError", doc)
}

// countsFault looks at the counts of insert, update and delete.
func countsFault(body bson.Raw, op *Op, failed, unmet bool) *mongoerr.MalformedReply {
	v := body.Lookup("n")
	n, ok := v.AsInt64OK()
	switch {
	case v.Type == 0 && (failed || unmet): // there is an error, and perhaps nothing to count
	case !ok || n < 0:
		return mongoerr.Malformed("n", v, "a count from 0 on")
	case op.Name == "insert" && n > int64(op.Statements):
		return mongoerr.Malformed("n", v, "a count up to %d, the documents sent,", op.Statements)
	case op.Name == "insert" && n < int64(op.Statements) && !failed && !unmet:
		return mongoerr.Malformed("n", v, "%d, the documents sent, since no failure is told,", op.Statements)
	}
	if v := body.Lookup("nModified"); v.Type != 0 {
		if m, ok := v.AsInt64OK(); !ok || m < 0 || m > n {
			return mongoerr.Malformed("nModified", v, "a count up to %d, the documents that matched,", n)
		}
	}
	return upsertedFault(body.Lookup("upserted"), op.Statements, n)
}

func upsertedFault(v bson.RawValue, statements int, n int64) *mongoerr.MalformedReply {
	if v.Type == 0 {
		return nil
	}
	list, ok := v.ArrayOK()
	if !ok {
		return mongoerr.Malformed("upserted", v, "an array of documents")
	}
	if most := min(int64(statements), n); int64(list.Len()) > most {
		return &mongoerr.MalformedReply{Field: "upserted", Want: "an array of " + strconv.FormatInt(most, 10) + " at most", Got: "of " + strconv.Itoa(list.Len()) + " documents"}
	}
	for i, item := range list.All() {
		path := "upserted." + strconv.Itoa(i)
		doc, ok := item.DocumentOK()
		if !ok {
			return mongoerr.Malformed(path, item, "a document")
		}
		if _, f := indexFault(path+".index", doc.Lookup("index"), statements); f != nil {
			return f
		}
		if id := doc.Lookup("_id"); id.Type == 0 {
			return mongoerr.Malformed(path+"._id", id, "the _id of the new document")
		}
	}
	return nil
}
