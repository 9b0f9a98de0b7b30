package mongoerr

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

func TestOneLineEscapesWhatCouldForgeALineOrSteerATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                     "plain",
		`C:\new "quoted"`:           `C:\new "quoted"`,
		"höchstens 3 €":             "höchstens 3 €",
		"a\r\nERROR all is well":    `a\r\nERROR all is well`,
		"\x1b[2J\x00\x07\x7f\u0085": `\x1b[2J\x00\a\x7f\u0085`,
		"x\u2028y\u202ez\u2066":     `x\u2028y\u202ez\u2066`,
		"bad \xff\xfebytes, \ufffd": `bad \xff\xfebytes, ` + "\ufffd",
	} {
		if got := OneLine(text); got != want {
			t.Errorf("%q is printed as %s, want %s", text, got, want)
		}
	}
}

// TestServersForgeNoLinesOfALog: none of the texts of a reply breaks the line that prints it, and the fields keep them.
func TestServersForgeNoLinesOfALog(t *testing.T) {
	const forged = "no\n2026-01-01 INFO joe logged in\x1b[2K"
	e := FromReply(reply(0, func(dst []byte) []byte {
		dst = bson.AppendString(dst, "errmsg", forged)
		dst = bson.AppendInt32(dst, "code", 8000)
		dst = bson.AppendString(dst, "codeName", forged)
		dst, a := bson.BeginArrayElement(dst, "writeErrors")
		dst, d := bson.BeginDocumentElement(dst, "0")
		dst = bson.AppendString(dst, "errmsg", forged)
		dst = bson.AppendString(dst, "codeName", forged)
		dst = bson.EndDocument(dst, d)
		dst = bson.EndDocument(dst, a)
		dst, d = bson.BeginDocumentElement(dst, "writeConcernError")
		dst = bson.AppendString(dst, "errmsg", forged)
		dst = bson.AppendString(dst, "codeName", forged)
		return bson.EndDocument(dst, d)
	}))
	e.Server = "evil\n:1"
	for _, err := range []error{e, e.WriteErrors[0], e.WriteConcernError, Wrap(StageRead, e, "lost"),
		Wrap(StageTLS, errors.New("valid for "+forged), "the certificate"), Wrap(StageSelection, fmt.Errorf("a callback: %w", errors.New(forged)), "nobody")} {
		if text := err.Error(); strings.ContainsAny(text, "\n\x1b") || !strings.Contains(text, `no\n2026-01-01 INFO joe logged in\x1b[2K`) {
			t.Errorf("%q", text)
		}
	}
	if e.Message != forged || e.CodeName != forged || e.WriteErrors[0].Message != forged || e.WriteConcernError.Message != forged {
		t.Errorf("the fields are %q, %q", e.Message, e.CodeName)
	}
	lines := Wrap(StageRead, &Error{Stage: StageSelection, Message: "nobody\n  - a:1 Unknown \x1b"}, "lost").Error()
	if lines != "read: lost: nobody\n  - a:1 Unknown \\x1b" {
		t.Errorf("the members of a failed selection are printed as %q", lines)
	}
}
