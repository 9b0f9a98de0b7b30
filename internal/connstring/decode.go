package connstring

import (
	"strings"
	"unicode/utf8"
)

// decode undoes percent-encoding. A plus sign is a plus sign. Errors name the position, never the text.
func decode(text, what string) (string, error) {
	if !strings.Contains(text, "%") {
		if !utf8.ValidString(text) {
			return "", errorf("%s is not valid UTF-8", what)
		}
		return text, nil
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out = append(out, text[i])
			continue
		}
		if i+2 >= len(text) || hex(text[i+1]) < 0 || hex(text[i+2]) < 0 {
			return "", errorf("the %% at position %d of %s is not followed by two hexadecimal digits; write %%25 for a percent sign", i+1, what)
		}
		out = append(out, byte(hex(text[i+1])<<4|hex(text[i+2])))
		i += 2
	}
	if !utf8.Valid(out) {
		return "", errorf("%s is not valid UTF-8 after percent-decoding", what)
	}
	return string(out), nil
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// encode percent-encodes everything but RFC 3986's unreserved characters and those in also.
func encode(text, also string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~"+also, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}
