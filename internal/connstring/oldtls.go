package connstring

import (
	"fmt"
	"strings"
)

// oldTLS is an option of TLS of another driver. To pass over one would lose more than itself: where nothing else asks for
// TLS, the password would go in clear. So those that mean exactly what an option of today does are taken for it, and the
// others at least turn TLS on; with a warning either way.
type oldTLS struct {
	now    string // today's name; empty: there is none that means the same
	whose  string
	values map[string]string // what today's value is; nil: the same
}

const (
	pymongo  = "PyMongo 3"
	mongoc   = "the C and PHP drivers"
	phpFiles = "the PHP driver"
	node     = "the Node.js driver"
)

var (
	negated = map[string]string{"true": "false", "false": "true", "1": "false", "0": "true"}
	// In a client CERT_OPTIONAL is CERT_REQUIRED. The numbers are those of Python's module ssl.
	requirements = map[string]string{"cert_none": "true", "0": "true", "none": "true", "cert_optional": "false", "1": "false", "optional": "false",
		"cert_required": "false", "2": "false", "required": "false"}
)

// oldTLSNames are found by their letters and digits alone, in lower case.
var oldTLSNames = map[string]oldTLS{
	"sslcacerts": {"tlsCAFile", pymongo, nil}, "sslcertfile": {"tlsCertificateKeyFile", pymongo, nil},
	"sslpempassphrase": {"tlsCertificateKeyFilePassword", pymongo, nil}, "sslmatchhostname": {"tlsAllowInvalidHostnames", pymongo, negated},
	"sslcertreqs": {"tlsAllowInvalidCertificates", pymongo, requirements}, "sslkeyfile": {whose: pymongo},
	"sslcertificateauthorityfile": {"tlsCAFile", mongoc, nil}, "sslclientcertificatekeyfile": {"tlsCertificateKeyFile", mongoc, nil},
	"sslclientcertificatekeypassword": {"tlsCertificateKeyFilePassword", mongoc, nil},
	"sslallowinvalidcertificates":     {"tlsAllowInvalidCertificates", mongoc, nil}, "sslallowinvalidhostnames": {"tlsAllowInvalidHostnames", mongoc, nil},
	"cafile": {"tlsCAFile", phpFiles, nil}, "pemfile": {"tlsCertificateKeyFile", phpFiles, nil}, "pempwd": {"tlsCertificateKeyFilePassword", phpFiles, nil},
	"weakcertvalidation": {"tlsAllowInvalidCertificates", phpFiles, nil}, "allowinvalidhostname": {"tlsAllowInvalidHostnames", phpFiles, nil},
	"sslca": {"tlsCAFile", node, nil}, "sslpass": {"tlsCertificateKeyFilePassword", node, nil}, "sslvalidate": {"tlsAllowInvalidCertificates", node, negated},
	"sslcert": {whose: node}, "sslkey": {whose: node}, "tlscertificatefile": {whose: node},
	"sslinvalidhostnameallowed": {"tlsAllowInvalidHostnames", "the Java driver", nil},
	"sslverifycertificate":      {"tlsInsecure", "the .NET driver", negated}, "sslinsecure": {"tlsInsecure", "other drivers", nil},
}

func oldTLSNamed(key string) (oldTLS, bool) {
	o, ok := oldTLSNames[bare(key)]
	return o, ok
}

// bare is a name without what languages write between its words.
func bare(key string) string { return strings.NewReplacer("_", "", "-", "", ".", "").Replace(key) }

// canonical is the key of the option that the pair sets.
func (p pair) canonical() string {
	if now, ok := aliases[p.key]; ok {
		return lower(now)
	}
	if _, known := byKey[p.key]; !known {
		if o, old := oldTLSNamed(p.key); old && o.now != "" {
			return lower(o.now)
		}
	}
	return p.key
}

// renamed is the pair as it is written today; false where it has no effect.
func (u *URI) renamed(p pair, seen map[string]bool) (pair, bool) {
	o, old := oldTLSNamed(p.key)
	if !old || o.now == "" {
		return p, true
	}
	row := byKey[lower(o.now)]
	value, known := p.value, true
	if o.values != nil {
		value, known = o.values[lower(p.value)]
	}
	switch {
	case seen[lower(o.now)]:
		u.warn(p, row.secret, "it is ignored, since its new name is given too", row.name)
		return p, false
	case !known:
		u.warn(p, false, fmt.Sprintf("it is the name of %s for %s, and this value of it is not known; ignored, certificates are checked", o.whose, row.name), row.name)
		return p, false
	case row.secret:
		u.warn(p, true, "it is the name of "+o.whose+", and taken for "+row.name, row.name)
	default:
		u.warn(p, false, "it is the name of "+o.whose+", and taken for "+row.name, row.name+"="+value)
	}
	return pair{p.name, lower(row.name), value}, true
}
