package value

import (
	"regexp"
	"strings"
)

// linear is the same pattern for the standard library's engine, which takes time in proportion to the text and needs no
// clock to be stopped by; nil for what that engine cannot do or does otherwise: look-around, back references, atomic and
// possessive groups, option x, \z and \Z.
//
// It differs from PCRE in one thing that matters, a $ before the newline that ends the text: see matchLinear.
func linear(pattern, options string) *regexp.Regexp {
	if strings.ContainsRune(options, 'x') || strings.Contains(pattern, `\z`) || strings.Contains(pattern, `\Z`) {
		return nil
	}
	flags := ""
	for _, c := range "ims" {
		if strings.ContainsRune(options, c) {
			flags += string(c)
		}
	}
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	re, err := regexp.Compile(flags + pattern)
	if err != nil {
		return nil
	}
	return re
}

// matchLinear looks for the pattern up to the end of the text and, since there too may be a $, up to its last newline.
func (r *Regex) matchLinear(s string) bool {
	return r.linear.MatchString(s) || r.endsEarly(s) && r.linear.MatchString(s[:len(s)-1])
}

// endsEarly says whether a $ may stand before the newline that ends s.
func (r *Regex) endsEarly(s string) bool {
	return strings.HasSuffix(s, "\n") && strings.Contains(r.Pattern, "$")
}

// looksBack says whether what comes before the place where a search begins may matter.
func (r *Regex) looksBack() bool {
	return strings.Contains(r.Pattern, "^") || strings.Contains(r.Pattern, `\b`) || strings.Contains(r.Pattern, `\B`) || strings.Contains(r.Pattern, `\A`)
}

// findLinear is Find by the linear engine. ok is false where only the other one can tell.
func (r *Regex) findLinear(s string, from int) (bounds [][2]int, ok bool) {
	if r.linear == nil || r.endsEarly(s) || from > len(s) || from > 0 && r.looksBack() {
		return nil, false
	}
	at := r.linear.FindStringSubmatchIndex(s[from:])
	for i := 0; i+1 < len(at); i += 2 {
		if at[i] < 0 {
			bounds = append(bounds, [2]int{-1, -1})
		} else {
			bounds = append(bounds, [2]int{from + at[i], from + at[i+1]})
		}
	}
	return bounds, true
}
