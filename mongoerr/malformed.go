package mongoerr

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/sextantdb/sextant/bson"
)

// MalformedReply is the Cause of an Error when a server answered, and a field of its answer is not what the command's
// answers hold: a count below zero, the failure of a write that was not sent, a text where an array belongs. The Error has
// the stage decode, the command, the member and the whole reply; for a command that writes, its message says that nobody
// can tell whether that was done. It is never retried, for the member was heard and may have acted.
//
// When the server refused the command (ok: 0) and only the details of the refusal make no sense, the Error is that refusal,
// of the stage server, and has this cause beside.
type MalformedReply struct {
	Field string // its path: "writeErrors.0.index"
	Want  string // what belongs there, in words: "an index from 0 to 2"
	Got   string // what is there, in words: "the 32-bit integer 99"; "missing"
}

// Malformed tells of the value that a reply has at a path; the zero value is one that is missing.
func Malformed(field string, v bson.RawValue, want string, args ...any) *MalformedReply {
	return &MalformedReply{Field: field, Want: fmt.Sprintf(want, args...), Got: described(v)}
}

// Error says in one line which field is wrong, and how.
func (m *MalformedReply) Error() string {
	if m.Got == missing {
		return m.Field + " is missing, where " + m.Want + " belongs"
	}
	return m.Field + " is " + m.Got + " where " + m.Want + " belongs"
}

// Failure is the Error of the reply, yet without command and member. unknown says what nobody can tell now, such as "the
// write was done"; empty: nothing.
func (m *MalformedReply) Failure(unknown string) *Error {
	e := Wrap(StageDecode, m, "the server's reply is malformed")
	if unknown != "" {
		e.Message += ", and whether " + unknown + " is unknown"
	}
	return e
}

// IsMalformedReply says whether a server's reply, or the details of its refusal, held what no server should say.
// errors.AsType[*MalformedReply] has the field.
func IsMalformedReply(err error) bool {
	_, ok := errors.AsType[*MalformedReply](err)
	return ok
}

const missing = "missing"

// described is the value in words. Of documents, arrays and bytes, which may be long or a user's own, only the type is told.
func described(v bson.RawValue) string {
	if v.Type == 0 {
		return missing
	}
	if v.Type == bson.TypeNull {
		return "null"
	}
	if s, ok := v.StringValueOK(); ok {
		const most = 60
		if len(s) > most {
			s = s[:most] + "..."
		}
		return "the string " + strconv.Quote(s)
	}
	text := ""
	if n, ok := v.AsInt64OK(); ok {
		text = strconv.FormatInt(n, 10)
	} else if f, ok := v.AsFloat64OK(); ok {
		text = strconv.FormatFloat(f, 'g', -1, 64)
	} else if b, ok := v.BooleanOK(); ok {
		text = strconv.FormatBool(b)
	}
	if text != "" {
		return "the " + v.Type.String() + " " + text
	}
	return "of type " + v.Type.String()
}
