package mongoerr

import (
	"github.com/sextantdb/sextant/bson"
)

// FromReply reads the error out of a server's reply. It is nil if the reply says ok: 1 and holds neither writeErrors
// nor a writeConcernError. With ok: 1 the Code stays 0: the codes are those of the parts (specification "CRUD" and
// "server discovery and monitoring", which must never take a single write's code for the command's).
// The reply is kept in Response, not copied: copy it first if its bytes will be overwritten.
func FromReply(reply bson.Raw) *Error {
	e := &Error{Stage: StageServer}
	ok := false
	for key, v := range reply.All() {
		switch key {
		case "ok":
			ok = isOne(v)
		case "errmsg", "$err":
			e.Message, _ = v.StringValueOK()
		case "code":
			e.Code = int32Of(v)
		case "codeName":
			e.CodeName, _ = v.StringValueOK()
		case "errorLabels":
			e.Labels = stringsOf(v)
		case "writeErrors":
			e.WriteErrors = writeErrorsOf(v)
		case "writeConcernError":
			e.WriteConcernError = writeConcernErrorOf(v)
		}
	}
	if ok && len(e.WriteErrors) == 0 && e.WriteConcernError == nil {
		return nil
	}
	if ok { // a successful reply may carry a field called code or errmsg that is no error
		e.Code, e.CodeName, e.Message = 0, "", ""
	} else if e.Message == "" && len(e.WriteErrors) == 0 && e.WriteConcernError == nil {
		e.Message = "the server answered without ok: 1 and without a reason"
	}
	e.Response = reply
	return e
}

func isOne(v bson.RawValue) bool {
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	f, ok := v.AsFloat64OK()
	return ok && f == 1
}

func int32Of(v bson.RawValue) int32 {
	n, ok := v.AsInt64OK()
	if !ok || n != int64(int32(n)) {
		return 0
	}
	return int32(n)
}

func stringsOf(v bson.RawValue) []string {
	arr, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	var out []string
	for _, item := range arr.All() {
		if s, ok := item.StringValueOK(); ok {
			out = append(out, s)
		}
	}
	return out
}

func writeErrorsOf(v bson.RawValue) []WriteError {
	arr, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	var out []WriteError
	for _, item := range arr.All() {
		doc, ok := item.DocumentOK()
		if !ok {
			continue
		}
		var w WriteError
		for key, f := range doc.All() {
			switch key {
			case "index":
				n, _ := f.AsInt64OK()
				w.Index = int(n)
			case "code":
				w.Code = int32Of(f)
			case "codeName":
				w.CodeName, _ = f.StringValueOK()
			case "errmsg":
				w.Message, _ = f.StringValueOK()
			case "errInfo":
				w.Details, _ = f.DocumentOK()
			}
		}
		out = append(out, w)
	}
	return out
}

func writeConcernErrorOf(v bson.RawValue) *WriteConcernError {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil
	}
	w := &WriteConcernError{}
	for key, f := range doc.All() {
		switch key {
		case "code":
			w.Code = int32Of(f)
		case "codeName":
			w.Name, _ = f.StringValueOK()
		case "errmsg":
			w.Message, _ = f.StringValueOK()
		case "errInfo":
			w.Details, _ = f.DocumentOK()
		}
	}
	return w
}
