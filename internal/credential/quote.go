package credential

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxShown = 200 // bytes of a refusal that are shown
	hidden   = "xxxxx"
)

// quote is the beginning of what a service said to the request, fit for an error: what was sent as a secret is hidden in it,
// whole or in parts, as is all that looks like a key or a token; what is no character of a text is escaped.
func (r request) quote(said string) string {
	said = hideWords(r.hide(said))
	cut := ""
	if len(said) > maxShown {
		end := maxShown
		for end > 0 && !utf8.RuneStart(said[end]) {
			end--
		}
		said, cut = said[:end], "..."
	}
	return strings.TrimSuffix(strconv.Quote(said), `"`) + cut + `"`
}

// hide replaces the secrets of the request, in each form in which they are sent.
func (r request) hide(text string) string {
	var forms []string
	for _, secret := range r.secrets {
		for part := range strings.FieldsSeq(secret) { // "Bearer" and what bears
			forms = append(forms, part, url.QueryEscape(part), url.PathEscape(part))
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	for _, form := range forms {
		if len(form) > 3 {
			text = strings.ReplaceAll(text, form, hidden)
		}
	}
	return text
}

// hideWords replaces words that are too long, or too odd, for words of a language, or names of errors.
func hideWords(text string) string {
	var out strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, func(r rune) bool { return !ofKey(r) })
		if end < 0 {
			end = len(text)
		}
		if word := text[:end]; len(word) >= 32 || len(word) >= 16 && strings.ContainsAny(word, "0123456789") {
			out.WriteString(hidden)
		} else {
			out.WriteString(word)
		}
		if text = text[end:]; len(text) > 0 {
			_, n := utf8.DecodeRuneInString(text)
			out.WriteString(text[:n])
			text = text[n:]
		}
	}
	return out.String()
}

// ofKey says whether keys and tokens have such characters: those of base64, of a JWT, and of what is escaped for a URL.
func ofKey(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("+/=_-.%~", r))
}
