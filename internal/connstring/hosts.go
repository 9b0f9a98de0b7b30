package connstring

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

const defaultPort = 27017

// parseHosts reads the comma-separated hosts. Errors name a host by its number: its text may be a password in the wrong
// place.
func (u *URI) parseHosts(text string) error {
	if text == "" {
		return errorf("it names no host; the path of a Unix socket is written with %%2F for /")
	}
	parts := strings.Split(text, ",")
	if u.Scheme == SchemeSRV {
		return u.parseSRVHost(parts)
	}
	for i, part := range parts {
		host, err := parseHost(part)
		if err != nil {
			return errorf("host %d: %w", i+1, err)
		}
		u.Hosts = append(u.Hosts, host)
	}
	return nil
}

// parseHost returns "host:port", "[v6]:port" or the path of a socket.
func parseHost(part string) (string, error) {
	if part == "" {
		return "", fmt.Errorf("it is empty")
	}
	if part[0] == '[' {
		return parseLiteral(part)
	}
	host, port, hasPort := strings.Cut(part, ":")
	if strings.Contains(port, ":") {
		return "", fmt.Errorf("it holds two colons; an IPv6 address is written in brackets, [::1]")
	}
	host, err := decode(host, "the name")
	if err != nil {
		return "", fmt.Errorf("its name is wrongly percent-encoded: write %%25 for a percent sign")
	}
	if strings.HasSuffix(lower(host), ".sock") && strings.Contains(host, "/") {
		if hasPort {
			return "", fmt.Errorf("a Unix socket has no port")
		}
		return host, nil
	}
	if err := checkName(host); err != nil {
		return "", err
	}
	n, err := parsePort(port, hasPort)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%d", lower(host), n), nil
}

func checkName(host string) error {
	if host == "" {
		return fmt.Errorf("the name before the colon is empty")
	}
	if strings.Contains(host, "/") {
		return fmt.Errorf("a path is no host unless it ends in .sock")
	}
	for i, r := range host {
		if r <= ' ' || r == 0x7F || strings.ContainsRune("\"<>\\^`{|}[]@?#%:,&=;", r) {
			return fmt.Errorf("a host name must not hold the character %q (at position %d)", r, i+1)
		}
	}
	return nil
}

// parseLiteral reads an IP literal in brackets; a zone is written "%25eth0".
func parseLiteral(part string) (string, error) {
	inside, after, found := strings.Cut(part[1:], "]")
	if !found {
		return "", fmt.Errorf("the bracket of an IPv6 address is not closed")
	}
	text, err := decode(inside, "the address")
	if err != nil {
		return "", fmt.Errorf("the address in brackets is wrongly percent-encoded")
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.Is6() {
		return "", fmt.Errorf("what stands in brackets is no IPv6 address")
	}
	port, hasPort := strings.CutPrefix(after, ":")
	if !hasPort && after != "" {
		return "", fmt.Errorf("only a port may follow the bracket of an IPv6 address")
	}
	n, err := parsePort(port, hasPort)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("[%s]:%d", addr, n), nil
}

func parsePort(text string, given bool) (int, error) {
	if !given {
		return defaultPort, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the port is not a number; a colon in a user name or password is written %%3A")
	}
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("the port is not within 1 and 65535")
	}
	return int(n), nil
}

// parseSRVHost: one name, no port (initial DNS seedlist discovery specification).
func (u *URI) parseSRVHost(parts []string) error {
	if len(parts) != 1 {
		return errorf("mongodb+srv takes one host name, not %d", len(parts))
	}
	if strings.Contains(parts[0], ":") {
		return errorf("mongodb+srv takes a host name without a port")
	}
	host, err := decode(parts[0], "the host name")
	if err != nil {
		return err
	}
	if host, err = NormalHost(host); err != nil {
		return errorf("the host of mongodb+srv: %w", err)
	}
	u.SRVHost = host
	return nil
}
