package connstring

import "strings"

const redacted = "xxxxx"

// String is the connection string with every secret replaced: the password, secret options, and the values of options
// that are unknown. It is for people; the result connects nobody.
func (u *URI) String() string {
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.UserSet {
		b.WriteString(encode(u.Username, ""))
		if u.PasswordSet {
			b.WriteString(":" + redacted)
		}
		b.WriteString("@")
	}
	b.WriteString(u.hostList())
	b.WriteString("/" + encode(u.Database, ""))
	for i, p := range u.pairs {
		b.WriteString(map[bool]string{true: "?", false: "&"}[i == 0])
		b.WriteString(encode(p.name, "") + "=" + p.shown())
	}
	return b.String()
}

// GoString is String, so that no verb of fmt prints the password.
func (u *URI) GoString() string { return u.String() }

func (u *URI) hostList() string {
	if u.Scheme == SchemeSRV {
		return u.SRVHost
	}
	hosts := make([]string, len(u.Hosts))
	for i, h := range u.Hosts {
		hosts[i] = h
		if strings.HasSuffix(lower(h), ".sock") {
			hosts[i] = encode(h, "")
		} else if strings.Contains(h, "%") { // the zone of an IPv6 address
			hosts[i] = strings.ReplaceAll(h, "%", "%25")
		}
	}
	return strings.Join(hosts, ",")
}

func (p pair) shown() string {
	key := p.canonical()
	row, ok := byKey[key]
	if key != "slaveok" && (!ok || row.secret) && p.value != "" {
		return redacted
	}
	return encode(p.value, ":,/@$")
}
