package connstring

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// NormalHost is a host name as DNS has it: without the dot at its end, in A-labels (xn--...) and lower case.
func NormalHost(host string) (string, error) {
	return normalHost(strings.TrimSuffix(host, "."))
}

func normalHost(host string) (string, error) {
	if err := checkName(host); err != nil {
		return "", err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "", fmt.Errorf("it is an address, not a name")
	}
	labels := strings.Split(host, ".")
	for i, label := range labels {
		if label == "" {
			return "", fmt.Errorf("the name has an empty part between dots")
		}
		var err error
		if labels[i], err = aLabel(label); err != nil {
			return "", err
		}
	}
	host = strings.Join(labels, ".")
	if len(host) > 253 {
		return "", fmt.Errorf("the name is longer than 253 characters")
	}
	return host, nil
}

var errLabel = errors.New("a part between dots is longer than 63 characters")

// aLabel is one label of a name in ASCII and lower case.
func aLabel(label string) (string, error) {
	if !utf8.ValidString(label) {
		return "", fmt.Errorf("the name is not UTF-8")
	}
	if len(label) > 253 { // the sums below are for short texts
		return "", errLabel
	}
	ascii := strings.ToLower(label)
	if strings.IndexFunc(ascii, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		ascii = "xn--" + punycode([]rune(ascii))
	}
	if len(ascii) > 63 {
		return "", errLabel
	}
	return ascii, nil
}

// punycode is the encoding of RFC 3492: the ASCII characters, then where the others go, as differences.
func punycode(text []rune) string {
	const (
		base, tMin, tMax = 36, 1, 26
		digits           = "abcdefghijklmnopqrstuvwxyz0123456789"
	)
	var out strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			out.WriteRune(r)
		}
	}
	basic := out.Len()
	if basic > 0 {
		out.WriteByte('-')
	}
	n, delta, bias, first := rune(utf8.RuneSelf), 0, 72, true
	for done := basic; done < len(text); n++ {
		next := rune(utf8.MaxRune)
		for _, r := range text {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range text {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				t := max(tMin, min(tMax, k-bias))
				if q < t {
					break
				}
				out.WriteByte(digits[t+(q-t)%(base-t)])
				q = (q - t) / (base - t)
			}
			out.WriteByte(digits[q])
			done++
			bias = adapted(delta, done, first)
			delta, first = 0, false
		}
		delta++
	}
	return out.String()
}

// adapted is the bias after a difference (RFC 3492, section 6.1).
func adapted(delta, points int, first bool) int {
	const base, tMin, tMax, skew, damp = 36, 1, 26, 38, 700
	if first {
		delta /= damp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (base-tMin)*tMax/2; k += base {
		delta /= base - tMin
	}
	return k + (base-tMin+1)*delta/(delta+skew)
}

// reserved are the top-level names that nobody can register names below: for special use (RFC 6761, 6762), for private
// use by ICANN's word, or by custom.
var reserved = []string{"test", "localhost", "invalid", "example", "local", "internal", "corp", "home", "mail", "lan"}

// registries are the second-level names under which the registries of countries sell names (co.uk, com.au, or.jp).
var registries = []string{"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "govt", "mil", "ne", "net", "or", "org"}

// NormalSuffix is the value of srvAllowedHostsSuffix as hosts are compared with it: without dots at its ends, in
// A-labels and lower case. A suffix below which anybody can register a name would allow any host, and is refused.
//
// The full list of public suffixes is not part of this package: refused are top-level names, and those below a country
// that are its registry's by custom.
func NormalSuffix(suffix string) (string, error) {
	host, err := normalHost(strings.Trim(suffix, "."))
	if err != nil {
		return "", fmt.Errorf("srvAllowedHostsSuffix is no domain: %w", err)
	}
	first, rest, two := strings.Cut(host, ".")
	switch {
	case !two && !slices.Contains(reserved, host):
		return "", fmt.Errorf("srvAllowedHostsSuffix is %s, a top-level name that would allow hosts of anybody: name the domain below it that is yours", host)
	case len(rest) == 2 && slices.Contains(registries, first):
		return "", fmt.Errorf("srvAllowedHostsSuffix is %s, a public suffix that would allow hosts of anybody: name the domain below it that is yours", host)
	}
	return host, nil
}
