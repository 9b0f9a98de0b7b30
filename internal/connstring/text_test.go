package connstring

import (
	"strings"
	"testing"
)

// TestTextsThatNoServerCouldMeanAreRefused: of every option that takes any text, with the option's name.
func TestTextsThatNoServerCouldMeanAreRefused(t *testing.T) {
	texts := 0
	for _, row := range table {
		pre, post := "", ""
		switch row.field(&Options{}).(type) {
		case *string:
			if row.words != nil || row.name == "authMechanism" { // which are compared with those that there are
				continue
			}
		case *[]TagSet:
			pre, post = "dc:", ",a:b"
		case *map[string]string:
			pre, post = "SERVICE_NAME:", ""
		case *any:
		default:
			continue
		}
		texts++
		more := map[string]string{"proxyHost": "", "proxyUsername": "&proxyHost=p&proxyPassword=x", "proxyPassword": "&proxyHost=p&proxyUsername=joe",
			"authMechanismProperties": "&authMechanism=GSSAPI", "readPreferenceTags": "&readPreference=nearest"}[row.name]
		for _, v := range []string{"%20", "%09%20", "%C2%A0", "a%00b", "%00", "a%0Ab", "a%1Bb", "%7F", "%C2%85", "%E2%80%A8"} {
			uri := "mongodb://joe:s3cret@db.example.com/?" + row.name + "=" + pre + v + post + more
			if strings.HasPrefix(row.name, "srv") {
				uri = strings.Replace(uri, "mongodb:", "mongodb+srv:", 1)
			}
			tagOfSpace := row.name == "readPreferenceTags" && (v == "%20" || v == "%C2%A0")
			switch u, err := Parse(uri); {
			case row.password || tagOfSpace:
				if err != nil || len(u.Warnings) != 0 {
					t.Errorf("%s: %v", uri, err)
				}
			case err == nil || !strings.Contains(err.Error(), row.name) || strings.Contains(err.Error(), "s3cret") || strings.ContainsAny(err.Error(), "\n\x00\x1b"):
				t.Errorf("%s: %v", uri, err)
			}
		}
	}
	if texts < 14 {
		t.Errorf("only %d options take texts", texts)
	}
	for _, name := range []string{"readPreference", "compressors", "serverMonitoringMode", "retryReads", "maxPoolSize"} {
		if u := parse(t, "mongodb://h/?"+name+"=a%0Ab%1B"); len(u.Warnings) != 1 || strings.ContainsAny(u.Warnings[0].String(), "\n\x1b") {
			t.Errorf("%s: %q", name, u.Warnings)
		}
	}
	if _, _, err := ParseTXT("h", []string{"replicaSet=a%00b"}); err == nil || !strings.Contains(err.Error(), "the TXT record of h: option replicaSet holds a zero byte") {
		t.Errorf("a TXT record: %v", err)
	}
}

func TestProxyHostIsAHost(t *testing.T) {
	for host, bad := range map[string]string{
		"p": "", "p.example.com": "", "127.0.0.1": "", "::1": "", "%5B::1%5D": "", "fe80::1%25eth0": "", "bücher.example": "",
		"p:1080": "proxyPort", "socks5://p": "a URL", "p%20q": "no name", "joe@p": "no name", "%2Ftmp%2Fp.sock": "no name", "[p": "no name",
	} {
		_, err := Parse("mongodb://h/?proxyHost=" + host)
		if (err == nil) != (bad == "") || err != nil && (!strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "option proxyHost")) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestTLSOptionsOfOtherDriversAreTakenForTodaysOrTurnTLSOn: to pass over one would send the password in clear.
func TestTLSOptionsOfOtherDriversAreTakenForTodaysOrTurnTLSOn(t *testing.T) {
	for query, want := range map[string]Options{
		"ssl_ca_certs=ca.pem": {TLSCAFile: "ca.pem"}, "sslCertificateAuthorityFile=ca.pem": {TLSCAFile: "ca.pem"}, "ca_file=ca.pem": {TLSCAFile: "ca.pem"},
		"sslCA=ca.pem": {TLSCAFile: "ca.pem"}, "ssl_certfile=k.pem": {TLSCertificateKeyFile: "k.pem"}, "pem_file=k.pem": {TLSCertificateKeyFile: "k.pem"},
		"sslClientCertificateKeyFile=k.pem": {TLSCertificateKeyFile: "k.pem"}, "ssl_pem_passphrase=hunter2": {TLSCertificateKeyFilePassword: "hunter2"},
		"sslClientCertificateKeyPassword=hunter2": {TLSCertificateKeyFilePassword: "hunter2"}, "pem_pwd=hunter2": {TLSCertificateKeyFilePassword: "hunter2"},
		"ssl_cert_reqs=CERT_NONE": {TLSAllowInvalidCertificates: new(true)}, "ssl_cert_reqs=CERT_REQUIRED": {TLSAllowInvalidCertificates: new(false)},
		"ssl_cert_reqs=1": {TLSAllowInvalidCertificates: new(false)}, "weak_cert_validation=true": {TLSAllowInvalidCertificates: new(true)},
		"sslAllowInvalidCertificates=true": {TLSAllowInvalidCertificates: new(true)}, "sslValidate=false": {TLSAllowInvalidCertificates: new(true)},
		"ssl_match_hostname=false": {TLSAllowInvalidHostnames: new(true)}, "ssl_match_hostname=true": {TLSAllowInvalidHostnames: new(false)},
		"sslInvalidHostNameAllowed=true": {TLSAllowInvalidHostnames: new(true)}, "allow_invalid_hostname=true": {TLSAllowInvalidHostnames: new(true)},
		"sslVerifyCertificate=false": {TLSInsecure: new(true)},
		"ssl_keyfile=k.pem":          {}, "sslCert=c.pem": {}, "sslKey=k.pem": {}, "tlsCertificateFile=c.pem": {}, "ssl_cert_reqs=maybe": {}, "ssl_match_hostname=maybe": {},
	} {
		u := parse(t, "mongodb://joe:pw@h/?"+query)
		if !u.Secure() || len(u.Warnings) != 1 || strings.Contains(u.Warnings[0].String()+u.String(), "hunter2") {
			t.Errorf("%s: TLS %t, warnings %v, printed %v", query, u.Secure(), u.Warnings, u)
		}
		for _, row := range table {
			if got, wanted := u.Value(row.name), want.Value(row.name); got != wanted {
				t.Errorf("%s: %s is %v, want %v", query, row.name, got, wanted)
			}
		}
	}
	if u := parse(t, "mongodb://h/?ssl_ca_certs=old.pem&tlsCAFile=new.pem"); u.TLSCAFile != "new.pem" || len(u.Warnings) != 1 {
		t.Errorf("%s: %v", u.TLSCAFile, u.Warnings)
	}
	if u := parse(t, "mongodb://h/?tls=false&ssl_keyfile=k.pem"); u.Secure() || len(u.WithoutTLS()) != 1 {
		t.Errorf("beside tls=false: %t, %v", u.Secure(), u.WithoutTLS())
	}
	for _, query := range []string{"ssl_ca_certs=", "ssl_pem_passphrase=", "ssl_ca_certs=a%00b", "crl_file=x", "ssl_cert_reqs=CERT_NONE&tlsInsecure=true"} {
		if u, err := Parse("mongodb://h/?" + query); err == nil {
			t.Errorf("%s is taken, with %v", query, u.Warnings)
		}
	}
}
