package connstring

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// BadText says what makes a text unusable as the value of an option, "" if nothing does: control characters, a zero byte
// among them, which servers cut names at or forge lines of logs with, and nothing but white space. It shows no text: a value
// may have come from a secret's place. Passwords may hold anything.
func BadText(value string) string {
	for i, r := range value {
		switch {
		case r == 0:
			return fmt.Sprintf("holds a zero byte (at position %d)", i+1)
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			return fmt.Sprintf("holds the control character %U (at position %d)", r, i+1)
		}
	}
	if value != "" && strings.TrimSpace(value) == "" {
		return "is nothing but white space"
	}
	return ""
}

// BadProxyHost says why no proxy can be found by a value of proxyHost, "" if one may be.
func BadProxyHost(host string) string {
	if bad := BadText(host); bad != "" {
		return bad
	}
	_, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	switch {
	case err == nil:
		return ""
	case strings.Contains(host, "://"):
		return "is a URL: it takes a name or an address alone, and the proxy must speak SOCKS5"
	case strings.Contains(host, ":"):
		return "holds a colon and is no IPv6 address: the port is given with proxyPort"
	case strings.ContainsFunc(host, unicode.IsSpace) || strings.ContainsAny(host, "/@[]"):
		return "is no name or address of a host"
	}
	return ""
}

// badText is what makes the value of a row that takes any text unusable.
func (row *option) badText(value string) string {
	switch row.field(&Options{}).(type) {
	case *string:
		switch {
		case row.name == "proxyHost":
			return BadProxyHost(value)
		case row.words != nil || row.password: // the words are compared
			return ""
		}
	case *[]TagSet, *map[string]string, *any:
	default:
		return ""
	}
	return BadText(value)
}
