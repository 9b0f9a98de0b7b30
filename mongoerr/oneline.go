package mongoerr

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine is text that a stranger wrote, made fit to be printed inside a line of a log or a terminal: what would break the
// line, forge another one or steer the terminal (control characters, line separators, characters that turn the direction of
// writing, bytes that are no UTF-8) is written as in Go's literals, "\n" or "\x1b". All that prints a server's words goes
// through it; fields of errors and events keep them as they came.
func OneLine(text string) string { return escaped(text, "") }

// escaped is OneLine that lets the characters of also be.
func escaped(text, also string) string {
	at := 0
	for ; at < len(text); at++ { // the common case: plain ASCII, no copy
		if c := text[at]; c < ' ' || c >= 0x7f {
			break
		}
	}
	if at == len(text) {
		return text
	}
	out := append(make([]byte, 0, len(text)+8), text[:at]...)
	for _, n := rune(0), 0; at < len(text); at += n {
		var r rune
		switch r, n = utf8.DecodeRuneInString(text[at:]); {
		case r == utf8.RuneError && n == 1:
			const digits = "0123456789abcdef"
			out = append(out, '\\', 'x', digits[text[at]>>4], digits[text[at]&15])
		case steers(r) && !strings.ContainsRune(also, r):
			quoted := strconv.QuoteRuneToASCII(r)
			out = append(out, quoted[1:len(quoted)-1]...)
		default:
			out = append(out, text[at:at+n]...)
		}
	}
	return string(out)
}

func steers(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}
