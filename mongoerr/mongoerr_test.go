package mongoerr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// reply builds {ok, then what build appends}.
func reply(ok float64, build func(dst []byte) []byte) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendDouble(dst, "ok", ok)
	if build != nil {
		dst = build(dst)
	}
	return bson.EndDocument(dst, start)
}

func TestFromReplyIsNilForSuccess(t *testing.T) {
	r := reply(1, func(dst []byte) []byte { return bson.AppendInt32(dst, "n", 3) })
	if e := FromReply(r); e != nil {
		t.Fatalf("got %v for a successful reply", e)
	}
}

func TestFromReplyReadsCodeAndLabels(t *testing.T) {
	e := FromReply(reply(0, func(dst []byte) []byte {
		dst = bson.AppendString(dst, "errmsg", "not primary")
		dst = bson.AppendInt32(dst, "code", 10107)
		dst = bson.AppendString(dst, "codeName", "NotWritablePrimary")
		dst, a := bson.BeginArrayElement(dst, "errorLabels")
		dst = bson.AppendString(dst, "0", LabelRetryableWrite)
		return bson.EndDocument(dst, a)
	}))
	if e == nil || e.Code != CodeNotWritablePrimary || !e.HasLabel(LabelRetryableWrite) || !IsNotPrimary(e) || IsShutdown(e) {
		t.Fatalf("got %+v", e)
	}
	if want := "not primary (NotWritablePrimary 10107)"; e.Error() != want {
		t.Errorf("text %q, want %q", e.Error(), want)
	}
}

func TestFromReplyReadsWriteErrorsWithoutTakingTheirCode(t *testing.T) {
	e := FromReply(reply(1, func(dst []byte) []byte {
		dst, a := bson.BeginArrayElement(dst, "writeErrors")
		dst, d := bson.BeginDocumentElement(dst, "0")
		dst = bson.AppendInt32(dst, "index", 4)
		dst = bson.AppendInt32(dst, "code", 11600)
		dst = bson.AppendString(dst, "errmsg", "interrupted")
		dst = bson.EndDocument(dst, d)
		return bson.EndDocument(dst, a)
	}))
	if e == nil || e.Code != 0 || len(e.WriteErrors) != 1 || e.WriteErrors[0].Index != 4 {
		t.Fatalf("got %+v", e)
	}
	if IsStateChange(e) {
		t.Error("a single write's code was taken for a state change")
	}
	if Code(e) != 11600 {
		t.Errorf("Code is %d", Code(e))
	}
}

func TestFromReplyReadsWriteConcernErrorAsStateChange(t *testing.T) {
	e := FromReply(reply(1, func(dst []byte) []byte {
		dst, d := bson.BeginDocumentElement(dst, "writeConcernError")
		dst = bson.AppendInt32(dst, "code", 91)
		dst = bson.AppendString(dst, "errmsg", "shutting down")
		return bson.EndDocument(dst, d)
	}))
	if e == nil || e.WriteConcernError == nil || !IsShutdown(e) {
		t.Fatalf("got %+v", e)
	}
}

func TestErrorTextStartsWithOneWholeSentence(t *testing.T) {
	e := &Error{Op: "find", NS: "shop.people", Server: "db1:27017", Attempts: 2, Stage: StageDial,
		Message: "can not connect", Cause: errors.New("connection refused")}
	if want := "find shop.people on db1:27017: dial: can not connect: connection refused (2 attempts)"; e.Error() != want {
		t.Errorf("got  %q\nwant %q", e, want)
	}
	s := &Error{Op: "find", Stage: StageSelection, Message: "no member serves\n  - a:1 Unknown", Cause: context.DeadlineExceeded}
	if want := "find: no member serves: context deadline exceeded\n  - a:1 Unknown"; s.Error() != want {
		t.Errorf("got  %q\nwant %q", s, want)
	}
}

func TestPredicatesLookThroughWrapping(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	cases := []struct {
		name string
		err  error
		ask  func(error) bool
		want bool
	}{
		{"dial is network", fmt.Errorf("x: %w", Wrap(StageDial, refused, "")), IsNetwork, true},
		{"eof on read is network", Wrap(StageRead, io.EOF, ""), IsNetwork, true},
		{"cancel is not network", Wrap(StageRead, context.Canceled, ""), IsNetwork, false},
		{"server error is not network", Server(CodeBadValue, "x"), IsNetwork, false},
		{"deadline is timeout", Wrap(StageRead, context.DeadlineExceeded, ""), IsTimeout, true},
		{"maxTimeMS is timeout", Server(CodeMaxTimeMSExpired, "x"), IsTimeout, true},
		{"bad value is no timeout", Server(CodeBadValue, "x"), IsTimeout, false},
		{"duplicate key in a write", &Error{WriteErrors: []WriteError{{Code: 11000}}}, IsDuplicateKey, true},
		{"cleared pool may retry", Wrap(StageCheckout, ErrPoolCleared, ""), IsRetryableRead, true},
		{"cleared pool is not network", Wrap(StageCheckout, ErrPoolCleared, ""), IsNetwork, false},
		{"134 may be read again", Server(CodeReadConcernMajorityNotAvailableYet, "x"), IsRetryableRead, true},
		{"bad value may not", Server(CodeBadValue, "x"), IsRetryableRead, false},
		{"text decides without a code", &Error{Stage: StageServer, Message: "Not Master"}, IsNotPrimary, true},
		{"text is ignored with a code", &Error{Stage: StageServer, Code: 1, Message: "not master"}, IsNotPrimary, false},
		{"not master or secondary recovers", &Error{Stage: StageServer, Message: "not master or secondary"}, IsNotPrimary, false},
		{"wrong password is a refused login", Server(CodeAuthenticationFailed, "x"), IsLoginRefused, true},
		{"trouble in the middle of a login may pass", &Error{Stage: StageAuth, Code: CodeIllegalOperation}, IsLoginRefused, false},
		{"missing credentials are a refused login", Wrap(StageAuth, errors.Join(ErrNoCredentials, io.EOF), "x"), IsLoginRefused, true},
		{"missing credentials are no network", Wrap(StageAuth, errors.Join(ErrNoCredentials, io.EOF), "x"), IsNetwork, false},
		{"scram failure is auth", Server(CodeAuthenticationFailed, "x"), IsAuth, true},
		{"nil is nothing", nil, IsNetwork, false},
	}
	for _, c := range cases {
		if got := c.ask(c.err); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestCodeNamesMatchTheirConstants(t *testing.T) {
	if got := CodeName(CodeNotPrimaryNoSecondaryOk); got != "NotPrimaryNoSecondaryOk" {
		t.Error(got)
	}
	if got := CodeName(16410); got != "Location16410" {
		t.Error(got)
	}
	if got := CodeName(0); got != "" {
		t.Error(got)
	}
	seen := map[string]int32{}
	for code, name := range codeNames {
		if other, twice := seen[name]; twice || strings.TrimSpace(name) == "" {
			t.Errorf("name %q of %d is also that of %d", name, code, other)
		}
		seen[name] = code
	}
}
