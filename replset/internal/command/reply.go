package command

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// appendReplyDocument appends the whole reply document. One that is too large to be read becomes an error, in rep too.
func (m *Member) appendReplyDocument(dst []byte, r *Request, rep *reply) ([]byte, error) {
	dst, start := bson.BeginDocument(dst)
	var err error
	if rep.err == nil {
		if dst, err = appendElements(dst, rep.doc); err != nil {
			return nil, err
		}
		if _, given := rep.doc.Get("ok"); !given {
			dst = bson.AppendDouble(dst, "ok", 1)
		}
	} else {
		dst = m.appendError(dst, rep.err, rep.staged)
	}
	if rep.forced != nil {
		dst = bson.AppendDocument(dst, "writeConcernError", rep.forced)
	} else if rep.wce != nil {
		dst = appendWriteConcernError(dst, rep.wce)
	}
	if labels := m.labelsOf(r, rep); len(labels) > 0 || rep.own {
		dst = appendStrings(dst, "errorLabels", labels)
	}
	dst = bson.EndDocument(m.appendTimes(dst, r), start)
	if size := len(dst) - start; size > r.replyLimit() {
		m.cursors.orphaned(rep)
		*rep = refuse(replyTooLarge(r, size))
		return m.appendReplyDocument(dst[:start], r, rep)
	}
	return dst, nil
}

func (m *Member) appendError(dst []byte, e *mongoerr.Error, staged bool) []byte {
	if mongoerr.IsStateChange(e) && !staged && m.opt.Persona.streams() {
		dst = m.state.Load().appendTopologyVersion(dst)
	}
	dst = bson.AppendDouble(dst, "ok", 0)
	message, name := m.opt.Persona.words(e)
	dst = bson.AppendString(dst, "errmsg", message)
	dst = bson.AppendInt32(dst, "code", e.Code)
	dst = bson.AppendString(dst, "codeName", name)
	dst, _ = appendElements(dst, m.opt.Persona.details(e)) // two documents: nothing that could fail
	return dst
}

func codeName(code int32, name string) string {
	if name == "" {
		name = mongoerr.CodeName(code)
	}
	if name == "" {
		name = fmt.Sprintf("Location%d", code)
	}
	return name
}

func appendWriteConcernError(dst []byte, w *mongoerr.WriteConcernError) []byte {
	dst, start := bson.BeginDocumentElement(dst, "writeConcernError")
	dst = bson.AppendInt32(dst, "code", w.Code)
	dst = bson.AppendString(dst, "codeName", codeName(w.Code, w.Name))
	dst = bson.AppendString(dst, "errmsg", w.Message)
	if w.Details != nil {
		dst = bson.AppendDocument(dst, "errInfo", w.Details)
	}
	return bson.EndDocument(dst, start)
}

// labelsOf are the error labels of a reply: the error's own, and RetryableWriteError on a retryable write that failed
// for a reason that another attempt may not meet.
func (m *Member) labelsOf(r *Request, rep *reply) []string {
	if rep.own {
		return rep.labels
	}
	var labels []string
	if rep.err != nil {
		labels = append(labels, rep.err.Labels...)
	}
	if !m.opt.Persona.labels() || r.TxnNumber < 0 || r.Spec == nil || r.Spec.Flags&TakesTxnNumber == 0 {
		return labels
	}
	if rep.err != nil && mongoerr.IsRetryableWriteCode(rep.err.Code) && !rep.err.HasLabel(mongoerr.LabelRetryableWrite) ||
		rep.wce != nil && mongoerr.IsRetryableWriteCode(rep.wce.Code) ||
		rep.forced != nil && mongoerr.IsRetryableWriteCode(int32(intOf(rep.forced, "code"))) {
		labels = append(labels, mongoerr.LabelRetryableWrite)
	}
	return labels
}

// appendTimes appends $clusterTime and operationTime, which who has never had data, such as an arbiter, does not send.
func (m *Member) appendTimes(dst []byte, r *Request) []byte {
	st := m.state.Load()
	if st.arbiter() {
		return dst
	}
	op := m.Store.Latest().OpTime().TS
	switch {
	case !r.wrote.IsZero():
		op = r.wrote.TS
	case r.majority:
		op = m.progress.Load().Commit.TS
	}
	if r.Conn.internal {
		dst = m.appendReplData(dst)
	}
	now := m.clock.highest()
	if now.IsZero() {
		return dst
	}
	if m.opt.Persona.wire < wire42 { // the order of version 4.0
		return appendClusterTime(bson.AppendTimestamp(dst, "operationTime", op.T, op.I), now)
	}
	return bson.AppendTimestamp(appendClusterTime(dst, now), "operationTime", op.T, op.I)
}

func appendClusterTime(dst []byte, now bson.Timestamp) []byte {
	dst, outer := bson.BeginDocumentElement(dst, "$clusterTime")
	dst = bson.AppendTimestamp(dst, "clusterTime", now.T, now.I)
	dst, inner := bson.BeginDocumentElement(dst, "signature")
	dst = bson.AppendBinary(dst, "hash", 0, make([]byte, 20))
	dst = bson.AppendInt64(dst, "keyId", 0)
	return bson.EndDocument(bson.EndDocument(dst, inner), outer)
}

// appendElements appends the elements of a reply. Only the types that replies are made of are known.
func appendElements(dst []byte, d bson.D) ([]byte, error) {
	var err error
	for _, e := range d {
		if dst, err = appendValue(dst, e.Key, e.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
	}
	return dst, nil
}

func appendValue(dst []byte, key string, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return bson.AppendNull(dst, key), nil
	case bool:
		return bson.AppendBoolean(dst, key, v), nil
	case int32:
		return bson.AppendInt32(dst, key, v), nil
	case int:
		return bson.AppendInt32(dst, key, int32(v)), nil
	case int64:
		return bson.AppendInt64(dst, key, v), nil
	case float64:
		return bson.AppendDouble(dst, key, v), nil
	case string:
		return bson.AppendString(dst, key, v), nil
	case bson.RawValue:
		return bson.AppendValue(dst, key, v), nil
	case bson.Raw:
		return bson.AppendDocument(dst, key, v), nil
	case bson.RawArray:
		return bson.AppendArray(dst, key, v), nil
	case bson.ObjectID:
		return bson.AppendObjectID(dst, key, v), nil
	case bson.Timestamp:
		return bson.AppendTimestamp(dst, key, v.T, v.I), nil
	case bson.DateTime:
		return bson.AppendDateTime(dst, key, int64(v)), nil
	case time.Time:
		return bson.AppendTime(dst, key, v), nil
	case bson.Binary:
		return bson.AppendBinary(dst, key, v.Subtype, v.Data), nil
	case bson.D:
		dst, start := bson.BeginDocumentElement(dst, key)
		dst, err := appendElements(dst, v)
		if err != nil {
			return nil, err
		}
		return bson.EndDocument(dst, start), nil
	}
	return appendList(dst, key, v)
}

func appendList(dst []byte, key string, v any) ([]byte, error) {
	switch v := v.(type) {
	case []string:
		return appendStrings(dst, key, v), nil
	case bson.A:
		return appendSlice(dst, key, v)
	case []bson.Raw:
		return appendSlice(roomFor(dst, v), key, v)
	case []bson.D:
		return appendSlice(dst, key, v)
	case []any:
		return appendSlice(dst, key, v)
	}
	return nil, fmt.Errorf("a reply cannot hold a %T", v)
}

// roomFor makes room for documents at once: a batch of a cursor has up to 16 MB of them, and growing to that by and by copies
// all of it several times.
func roomFor(dst []byte, docs []bson.Raw) []byte {
	const around = 10 // the type, the key, and what comes after the list
	n := 4 * around
	for _, d := range docs {
		n += len(d) + around
	}
	return slices.Grow(dst, n)
}

func appendSlice[T any](dst []byte, key string, list []T) ([]byte, error) {
	dst, start := bson.BeginArrayElement(dst, key)
	var err error
	for i, v := range list {
		if dst, err = appendValue(dst, indexKey(i), v); err != nil {
			return nil, err
		}
	}
	return bson.EndDocument(dst, start), nil
}

func appendStrings(dst []byte, key string, list []string) []byte {
	dst, start := bson.BeginArrayElement(dst, key)
	for i, s := range list {
		dst = bson.AppendString(dst, indexKey(i), s)
	}
	return bson.EndDocument(dst, start)
}

// document is d as bytes. It is for documents made here, whose types are known to be encodable.
func document(d bson.D) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst, err := appendElements(dst, d)
	if err != nil {
		panic(err) // a programmer's error: caught by the dispatcher and answered with InternalError
	}
	return bson.EndDocument(dst, start)
}

// indexKey is the key of an array's element.
func indexKey(i int) string { return strconv.Itoa(i) }
