package sextant

import (
	"context"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/mongoerr"
)

// optionRow is what becomes of one option of a connection string.
type optionRow struct {
	option  string
	fields  string // of Config that it changes; empty: none
	warning string // words of the warning that it causes; empty: none
	refusal string // words of the error of making a client of it; empty: none
	base    string // the string that it is added to; empty: mongodb://h/?
}

const srvBase = "mongodb+srv://a.b.c/?"

// uriOptions has every option of the URI options specification, of the specifications that it points to, and the old names
// that it knows of, each with a value that is not the default.
var uriOptions = []optionRow{
	{option: "appname=a", fields: "AppName"},
	{option: "authMechanism=SCRAM-SHA-256", fields: "AuthMechanism", base: "mongodb://joe:pw@h/?"},
	{option: "authMechanismProperties=SERVICE_NAME:x", fields: "AuthMechanismProperties", base: "mongodb://joe:pw@h/?authMechanism=GSSAPI&", refusal: "GSSAPI"},
	{option: "authSource=users", fields: "AuthSource", base: "mongodb://joe:pw@h/?"},
	{option: "compressors=zstd,zlib", fields: "Compressors"},
	{option: "connectTimeoutMS=1000", fields: "ConnectTimeout"},
	{option: "directConnection=true", fields: "DirectConnection"},
	{option: "enableOverloadRetargeting=true", fields: "EnableOverloadRetargeting"},
	{option: "heartbeatFrequencyMS=500", fields: "HeartbeatFrequency"},
	{option: "journal=true", fields: "WriteConcern"},
	{option: "loadBalanced=true", fields: "LoadBalanced"},
	{option: "localThresholdMS=0", fields: "LocalThreshold"},
	{option: "maxAdaptiveRetries=1", fields: "MaxAdaptiveRetries"},
	{option: "maxConnecting=3", fields: "MaxConnecting"},
	{option: "maxIdleTimeMS=1000", fields: "MaxIdleTime"},
	{option: "maxPoolSize=5", fields: "MaxPoolSize"},
	{option: "maxStalenessSeconds=120", fields: "ReadPreference", base: "mongodb://h/?readPreference=nearest&"},
	{option: "minPoolSize=5", fields: "MinPoolSize"},
	{option: "proxyHost=p", fields: "ProxyHost"},
	{option: "proxyPort=1081", fields: "ProxyPort", base: "mongodb://h/?proxyHost=p&"},
	{option: "proxyUsername=u&proxyPassword=p", fields: "ProxyPassword ProxyUsername", base: "mongodb://h/?proxyHost=p&"},
	{option: "readConcernLevel=majority", fields: "ReadConcern"},
	{option: "readPreference=nearest", fields: "ReadPreference"},
	{option: "readPreferenceTags=dc:east", fields: "ReadPreference", base: "mongodb://h/?readPreference=nearest&"},
	{option: "replicaSet=rs0", fields: "ReplicaSet"},
	{option: "retryReads=false", fields: "RetryReads"},
	{option: "retryWrites=false", fields: "RetryWrites"},
	{option: "serverMonitoringMode=poll", fields: "ServerMonitoringMode"},
	{option: "serverSelectionTimeoutMS=1000", fields: "ServerSelectionTimeout"},
	{option: "serverSelectionTryOnce=true", warning: "it is for drivers of one thread"},
	{option: "socketTimeoutMS=1000", fields: "SocketTimeout"},
	{option: "srvAllowedHostsSuffix=b.c", fields: "SRVAllowedHostsSuffix", base: srvBase},
	{option: "srvMaxHosts=1", fields: "SRVMaxHosts", base: srvBase},
	{option: "srvServiceName=own", fields: "SRVServiceName", base: srvBase, refusal: "_own._tcp.a.b.c"},
	{option: "ssl=true", fields: "TLS"},
	{option: "timeoutMS=1000", fields: "Timeout"},
	{option: "tls=true", fields: "TLS"},
	{option: "tlsAllowInvalidCertificates=true", fields: "TLS TLSAllowInvalidCertificates"},
	{option: "tlsAllowInvalidHostnames=true", fields: "TLS TLSAllowInvalidHostnames"},
	{option: "tlsCAFile=ca.pem", fields: "TLS TLSCAFile", refusal: "tlsCAFile cannot be read: open ca.pem"},
	{option: "tlsCertificateKeyFile=k.pem", fields: "TLS TLSCertificateKeyFile", refusal: "tlsCertificateKeyFile k.pem"},
	{option: "tlsCertificateKeyFilePassword=x", fields: "TLSCertificateKeyFilePassword", base: "mongodb://h/?tlsCertificateKeyFile=k.pem&", refusal: "k.pem"},
	{option: "tlsDisableCertificateRevocationCheck=true", fields: "TLS TLSDisableCertificateRevocationCheck"},
	{option: "tlsDisableOCSPEndpointCheck=true", fields: "TLS TLSDisableOCSPEndpointCheck"},
	{option: "tlsInsecure=true", fields: "TLS TLSInsecure"},
	{option: "w=majority", fields: "WriteConcern"},
	{option: "waitQueueTimeoutMS=1000", fields: "WaitQueueTimeout"},
	{option: "wTimeoutMS=1000", fields: "WriteConcern"},
	{option: "zlibCompressionLevel=9", fields: "ZlibCompressionLevel"},
	// old names and values, which work and say what is new
	{option: "j=true", fields: "WriteConcern", warning: "the old name of journal"},
	{option: "wtimeout=1000", fields: "WriteConcern", warning: "the old name of wTimeoutMS"},
	{option: "slaveOk=true", fields: "ReadPreference", warning: "taken for readPreference=secondaryPreferred"},
	{option: "replicaSet=true", fields: "ReplicaSet", warning: "the name of the replica set, not a switch"},
	{option: "journal=1", fields: "WriteConcern", warning: "taken for true"},
	// what is left out, with the reason
	{option: "slaveOk=false", warning: "no effect"},
	{option: "waitQueueMultiple=5", warning: "the number of waiters is not limited any more"},
	{option: "waitQueueSize=5", warning: "the number of waiters is not limited any more"},
	{option: "minHeartbeatFrequencyMS=5", warning: "fixed at 500 ms"},
	{option: "fsync=true", warning: "removed from MongoDB"},
	{option: "gssapiServiceName=x", warning: "share one option"},
	{option: "uuidRepresentation=standard", warning: "UUID"},
	{option: "connect=direct", warning: "directConnection"},
	{option: "socketTimeoutMS=1000", fields: "SocketTimeout", base: "mongodb://h/?timeoutMS=5&", warning: "no effect beside timeoutMS"},
	{option: "tlsCAFile=ca.pem", base: "mongodb://h/?tls=false&", warning: "no effect beside tls=false"},
	// what contradicts itself
	{option: "srvMaxHosts=1", refusal: "mongodb+srv alone"},
	{option: "directConnection=true", base: "mongodb://a,b/?", refusal: "needs one host"},
	{option: "loadBalanced=true", base: "mongodb://a,b/?", refusal: "needs one host"},
	{option: "proxyPort=1080", refusal: "proxyHost"},
	{option: "readPreferenceTags=dc:east", refusal: "primary"},
	{option: "w=0&journal=true", fields: "WriteConcern", refusal: "journal true needs"},
	{option: "authMechanism=MAGIC", refusal: "MAGIC"},
}

// changed are the names of the fields in which two configurations differ, but for warnings.
func changed(a, b *Config) string {
	var out []string
	va, vb := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range va.NumField() {
		if name := va.Type().Field(i).Name; name != "Warnings" && !reflect.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface()) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestEveryURIOptionWorksOrSaysWhyNot(t *testing.T) {
	for _, row := range uriOptions {
		if row.base == "" {
			row.base = "mongodb://h/?"
		}
		uri := row.base + row.option
		before, err := ParseURI(row.base)
		if err != nil {
			t.Fatalf("%s: %v", row.base, err)
		}
		after, err := ParseURI(uri)
		if err == nil {
			row.check(t, uri, before, after)
			after.Resolver = oneHost{}
			var cl *Client
			if cl, err = ConnectConfig(context.Background(), after); err == nil {
				cl.Close(context.Background())
			}
		}
		switch {
		case row.refusal == "" && err != nil:
			t.Errorf("%s: %v", uri, err)
		case row.refusal != "" && (!mongoerr.IsConfig(err) || !strings.Contains(err.Error(), row.refusal)):
			t.Errorf("%s: %v, want an error with %q", uri, err, row.refusal)
		}
	}
}

func (row optionRow) check(t *testing.T, uri string, before, after *Config) {
	t.Helper()
	if got := changed(before, after); got != row.fields {
		t.Errorf("%s changes %q, want %q", uri, got, row.fields)
	}
	var news []string
	for _, w := range after.Warnings {
		if !slices.Contains(before.Warnings, w) {
			news = append(news, w.String())
		}
	}
	later := len(news) == 1 && (strings.Contains(news[0], "not applied yet")) // of options that another change makes work
	if all := strings.Join(news, "; "); (row.warning == "") != (len(news) == 0) && !later || !strings.Contains(all, row.warning) {
		t.Errorf("%s warns %q, want %q", uri, all, row.warning)
	}
	if row.warning == "" {
		return
	}
	strict := *after
	strict.Strict = true
	if _, err := ConnectConfig(context.Background(), &strict); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), row.warning) {
		t.Errorf("%s, strictly: %v", uri, err)
	}
}

func TestTheTableOfURIOptionsIsWhole(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range uriOptions {
		for part := range strings.SplitSeq(row.option, "&") {
			name, _, _ := strings.Cut(part, "=")
			listed[strings.ToLower(name)] = true
		}
	}
	page, err := os.ReadFile("docs/uri.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ToLower(string(page))
	for f := range reflect.TypeFor[connstring.Options]().Fields() {
		name := strings.ToLower(f.Name)
		if !listed[name] {
			t.Errorf("%s is an option, and not in the table", f.Name)
		}
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("%s is an option, and not in docs/uri.md", f.Name)
		}
	}
}

// oneHost answers for DNS that a.b.c leads to one host.
type oneHost struct{}

func (oneHost) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if service != "mongodb" || proto != "tcp" || name != "a.b.c" {
		return "", nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	return "", []*net.SRV{{Target: "db.b.c.", Port: 27017}}, nil
}

func (oneHost) LookupTXT(context.Context, string) ([]string, error) { return nil, nil }
