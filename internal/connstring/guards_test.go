package connstring

import (
	"strings"
	"testing"
)

// TestBadValueThatWouldWeakenSecurityIsAnError: to leave out tls would send the password in clear, to leave out a file would
// trust others than it names.
func TestBadValueThatWouldWeakenSecurityIsAnError(t *testing.T) {
	for names, values := range map[string][]string{
		"tls ssl TLS": {"", "ture", "on", "TRUE", "True", "%20true", "true%20", "%20", "2", "null", "%00"},
		"tlsCAFile tlsCertificateKeyFile tlsCertificateKeyFilePassword authMechanism authSource srvAllowedHostsSuffix proxyHost": {""},
		"tlsCRLFile sslCRLFile ssl_crlfile ssl-crl": {"", "list.pem"},
		"srvAllowedHostsSuffix":                     {"com", "%20", ".", "a..b"},
	} {
		for name := range strings.FieldsSeq(names) {
			for _, v := range values {
				uri := "mongodb://joe:s3cret@db1.example.com/?" + name + "=" + v
				if strings.HasPrefix(name, "srv") {
					uri = strings.Replace(uri, "mongodb:", "mongodb+srv:", 1)
				}
				for _, more := range []string{"", "&tls=true"} { // a good one beside it changes nothing
					u, err := Parse(uri + more)
					switch {
					case err == nil:
						t.Errorf("%s is taken, with warnings %v", uri+more, u.Warnings)
					case strings.Contains(err.Error(), "s3cret"):
						t.Errorf("%s: %v", uri+more, err)
					}
				}
			}
		}
	}
}

// What is left out and leaves the client stricter, or is demanded as a warning by the URI options specification, stays one.
func TestBadValueThatStrengthensSecurityIsAWarning(t *testing.T) {
	for _, name := range []string{"tlsInsecure", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames", "tlsDisableOCSPEndpointCheck", "tlsDisableCertificateRevocationCheck"} {
		for _, v := range []string{"", "ture", "TRUE"} {
			if u, err := Parse("mongodb://h/?" + name + "=" + v); err != nil || len(u.Warnings) != 1 || !u.Secure() {
				t.Errorf("%s=%s: %v", name, v, err)
			}
		}
	}
	if u, err := Parse("mongodb://h/?ssl=1"); err != nil || len(u.Warnings) != 1 || !u.Secure() {
		t.Errorf("ssl=1: %v", err)
	}
}
