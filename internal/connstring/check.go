package connstring

import "strings"

// count says how often an option stands in the string, whatever its value.
func (u *URI) count(name string) int {
	n := 0
	for _, p := range u.pairs {
		if p.canonical() == lower(name) {
			n++
		}
	}
	return n
}

func isTrue(b *bool) bool { return b != nil && *b }

// check holds the options against each other. These are errors and no warnings: each contradicts itself, or would
// weaken security if one side were dropped.
func (u *URI) check() error {
	for _, rule := range []func() error{u.checkTLS, u.checkDirect, u.checkLoadBalanced, u.checkSRV, u.checkProxy, u.checkAuth} {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

// tlsExclusive are options that must not stand together, even if both are false.
var tlsExclusive = [][2]string{
	{"tlsInsecure", "tlsAllowInvalidCertificates"},
	{"tlsInsecure", "tlsAllowInvalidHostnames"},
	{"tlsInsecure", "tlsDisableOCSPEndpointCheck"},
	{"tlsInsecure", "tlsDisableCertificateRevocationCheck"},
	{"tlsAllowInvalidCertificates", "tlsDisableOCSPEndpointCheck"},
	{"tlsAllowInvalidCertificates", "tlsDisableCertificateRevocationCheck"},
	{"tlsDisableOCSPEndpointCheck", "tlsDisableCertificateRevocationCheck"},
}

func (u *URI) checkTLS() error {
	for _, two := range tlsExclusive {
		if u.count(two[0]) > 0 && u.count(two[1]) > 0 {
			return errorf("%s and %s must not be given together", two[0], two[1])
		}
	}
	var first *bool
	for _, p := range u.pairs {
		if p.key != "tls" && p.key != "ssl" {
			continue
		}
		b, _, err := parseBool(p.value)
		if err != nil {
			continue
		}
		if first != nil && *first != b {
			return errorf("tls and ssl contradict each other")
		}
		first = &b
	}
	return nil
}

func (u *URI) checkDirect() error {
	if !isTrue(u.DirectConnection) {
		return nil
	}
	if u.Scheme == SchemeSRV {
		return errorf("directConnection=true needs one host, and mongodb+srv may stand for several")
	}
	if len(u.Hosts) > 1 {
		return errorf("directConnection=true needs one host, not %d", len(u.Hosts))
	}
	return nil
}

func (u *URI) checkLoadBalanced() error {
	switch {
	case !isTrue(u.LoadBalanced):
		return nil
	case len(u.Hosts) > 1:
		return errorf("loadBalanced=true needs one host, not %d", len(u.Hosts))
	case u.ReplicaSet != "":
		return errorf("loadBalanced=true and replicaSet must not be given together")
	case isTrue(u.DirectConnection):
		return errorf("loadBalanced=true and directConnection=true must not be given together")
	}
	return nil
}

func (u *URI) checkSRV() error {
	if u.Scheme != SchemeSRV {
		for _, name := range []string{"srvMaxHosts", "srvServiceName", "srvAllowedHostsSuffix"} {
			if u.count(name) > 0 {
				return errorf("%s is for mongodb+srv alone", name)
			}
		}
		return nil
	}
	if u.SRVServiceName != "" && !ValidService(u.SRVServiceName) {
		return errorf("srvServiceName is no service name (RFC 6335): letters, digits and single hyphens inside, at most 62 characters")
	}
	if u.count("srvAllowedHostsSuffix") > 0 {
		if _, err := NormalSuffix(u.SRVAllowedHostsSuffix); err != nil {
			return errorf("%w", err)
		}
	}
	if u.SRVMaxHosts == nil || *u.SRVMaxHosts == 0 {
		return nil
	}
	if u.ReplicaSet != "" {
		return errorf("srvMaxHosts and replicaSet must not be given together")
	}
	if isTrue(u.LoadBalanced) {
		return errorf("srvMaxHosts and loadBalanced=true must not be given together")
	}
	return nil
}

// ValidService says whether a name can be a service of DNS (RFC 6335, but up to 62 characters).
func ValidService(name string) bool {
	if len(name) > 62 || strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		return false
	}
	letters := false
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && !(r >= '0' && r <= '9') && r != '-' {
			return false
		}
		letters = letters || letter
	}
	return letters
}

func (u *URI) checkProxy() error {
	for _, name := range []string{"proxyHost", "proxyPort", "proxyUsername", "proxyPassword"} {
		switch n := u.count(name); {
		case n > 1:
			return errorf("%s is given more than once", name)
		case n == 1 && u.ProxyHost == "":
			return errorf("%s needs a proxyHost", name)
		}
	}
	if (u.ProxyUsername == "") != (u.ProxyPassword == "") {
		return errorf("proxyUsername and proxyPassword need each other")
	}
	return nil
}

// Secure says whether connections use TLS: as tls or ssl says; without them, if the scheme is mongodb+srv or any other
// tls option is given.
func (u *URI) Secure() bool {
	if u.TLS != nil {
		return *u.TLS
	}
	return u.Scheme == SchemeSRV || len(u.tlsOptions()) > 0
}

// WithoutTLS are the TLS options that an explicit tls=false leaves without effect.
func (u *URI) WithoutTLS() []string {
	if u.TLS == nil || *u.TLS {
		return nil
	}
	return u.tlsOptions()
}

// tlsOptions are the names of the TLS options given, those of other drivers too, save tls and ssl themselves.
func (u *URI) tlsOptions() (names []string) {
	for _, p := range u.pairs {
		row, known := byKey[p.key]
		switch _, old := oldTLSNamed(p.key); {
		case known && strings.HasPrefix(p.key, "tls") && p.key != "tls":
			names = append(names, row.name)
		case !known && old:
			names = append(names, p.name)
		}
	}
	return names
}
