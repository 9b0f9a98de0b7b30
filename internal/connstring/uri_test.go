package connstring

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) *URI {
	t.Helper()
	u, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return u
}

func TestEveryPartIsTakenApart(t *testing.T) {
	u := parse(t, "mongodb://j%C3%B6e:p%40ss@DB1,[::1]:27018,db2:1/shop?readPreference=nearest&readPreferenceTags=dc:east,rack:1&readPreferenceTags=&w=majority&retryReads=false")
	if u.Username != "jöe" || u.Password != "p@ss" || !u.PasswordSet || u.Database != "shop" {
		t.Errorf("%q %q %q", u.Username, u.Password, u.Database)
	}
	if want := []string{"db1:27017", "[::1]:27018", "db2:1"}; !slices.Equal(u.Hosts, want) {
		t.Errorf("hosts %q, want %q", u.Hosts, want)
	}
	if want := []TagSet{{{"dc", "east"}, {"rack", "1"}}, {}}; !reflect.DeepEqual(u.ReadPreferenceTags, want) {
		t.Errorf("tag sets %v, want %v", u.ReadPreferenceTags, want)
	}
	if u.ReadPreference != "nearest" || u.W != "majority" || u.RetryReads == nil || *u.RetryReads || u.RetryWrites != nil || len(u.Warnings) > 0 {
		t.Errorf("%+v, warnings %v", u.Options, u.Warnings)
	}
}

func TestEveryOptionHasItsFieldAndItsName(t *testing.T) {
	fields := reflect.TypeFor[Options]()
	if fields.NumField() != len(table) {
		t.Errorf("%d fields, %d options", fields.NumField(), len(table))
	}
	seen := map[any]string{}
	var o Options
	for _, row := range table {
		p := row.field(&o)
		if other := seen[p]; other != "" {
			t.Errorf("%s and %s share a field", row.name, other)
		}
		seen[p] = row.name
		if f, ok := fields.FieldByNameFunc(func(n string) bool { return strings.EqualFold(n, row.name) }); !ok {
			t.Errorf("%s has no field of its name", row.name)
		} else if reflect.PointerTo(f.Type) != reflect.TypeOf(p) {
			t.Errorf("%s goes into a %T, its field is a %s", row.name, p, f.Type)
		}
	}
}

func TestValueReadsEveryKindOfOption(t *testing.T) {
	u := parse(t, "mongodb://joe:pw@h/?appname=a&connectTimeoutMS=0&tls=true&w=2&compressors=zstd,snappy&readPreferenceTags=a:b&authMechanismProperties=A:b:c")
	for name, want := range map[string]any{
		"AppName": "a", "connecttimeoutms": 0, "ssl": true, "w": 2, "compressors": []string{"zstd", "snappy"},
		"readPreferenceTags": []TagSet{{{"a", "b"}}}, "authMechanismProperties": map[string]string{"A": "b:c"},
		"journal": nil, "replicaSet": nil, "nonsense": nil, "maxPoolSize": nil,
	} {
		if got := u.Value(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, want %#v", name, got, want)
		}
	}
}

func TestWarningsSayWhatToWriteInstead(t *testing.T) {
	for _, c := range []struct{ options, message, suggestion string }{
		{"conectTimeoutMS=1", "unknown option", "connectTimeoutMS"},
		{"readPrefernece=nearest", "unknown option", "readPreference"},
		{"replcaSet=rs0", "unknown option", "replicaSet"},
		{"frobnicate=1", "unknown option", ""},
		{"connectionsPerHost=50", "old Java driver", "maxPoolSize"},
		{"socketTimeout=5", "unit belongs to the name", "socketTimeoutMS"},
		{"slaveAcceptableLatencyMS=15", "old Java driver", "localThresholdMS"},
		{"updaterIntervalNoMasterMS=10", "fixed at 500 ms", ""},
		{"requiredReplicaSetName=rs0", "Java", "replicaSet"},
		{"threadsAllowedToBlockForConnectionMultiplier=5", "not limited", ""},
		{"replicaSet=true", "the name of the replica set, not a switch", "replicaSet=rs0"},
		{"slaveOk=true", "taken for readPreference=secondaryPreferred", "readPreference=secondaryPreferred"},
		{"slaveOk=false", "no effect", ""},
		{"readPreference=secondry", "one of primary, primaryPreferred", "readPreference=secondary"},
		{"readPreference=SECONDARY", "taken for secondary", "readPreference=secondary"},
		{"heartbeatFrequencyMS=499", "at least 500", ""},
		{"zlibCompressionLevel=10", "from -1 to 9", ""},
		{"maxPoolSize=99999999999", "at least 0", ""},
		{"maxConnecting=0", "at least 1", ""},
		{"journal=1", "taken for true", "journal=true"},
		{"journal=maybe", "true or false", ""},
		{"wtimeout=5", "old name of wTimeoutMS", "wTimeoutMS=5"},
		{"compressors=snappy,lz4", `"lz4"`, ""},
		{"readPreferenceTags=east", "name:value", ""},
		{"w=-1", "number of members", ""},
		{"appname=" + strings.Repeat("x", 129), "128 bytes", ""},
		{"serverMonitoringMode=steam", "stream, poll, auto", "serverMonitoringMode=stream"},
		{"retryReads=true&retryReads=true", "more than once", ""},
		{"fsync=true", "removed", "journal"},
		{"x%0Ay=1", "unknown option", ""},
		{"waitQueueMultiple=5", "not limited", ""},
		{"read_preference_tags=a:b", "camelCase", "readPreferenceTags"},
		{"max-pool-size=3", "camelCase", "maxPoolSize"},
		{"heartbeatFrequency=3", "unit belongs to the name", "heartbeatFrequencyMS"},
		{"max_staleness=90", "unit belongs to the name", "maxStalenessSeconds"},
		{"ssl_ca_certs=x", "PyMongo 3, and taken for tlsCAFile", "tlsCAFile=x"},
		{"ssl_keyfile=x", "one PEM file", "tlsCertificateKeyFile"},
		{"slave_okay=true", "left out of MongoDB's options", "readPreference=secondaryPreferred"},
		{"useUnifiedTopology=true", "in any case", ""},
		{"gssapiServiceName=x", "share one option", "authMechanismProperties=SERVICE_NAME:..."},
		{"maxLifeTimeMS=1", "as long as they are good", "maxIdleTimeMS"},
		{"serverSelectionTimeoutMS=0", "at least 1", ""},
		{"password=hunter2", "before the @", ""},
	} {
		u := parse(t, "mongodb://h/?"+c.options)
		if len(u.Warnings) != 1 {
			t.Errorf("%s: warnings %v", c.options, u.Warnings)
			continue
		}
		w := u.Warnings[0]
		if !strings.Contains(w.Message, c.message) || w.Suggestion != c.suggestion {
			t.Errorf("%s: message %q, suggestion %q; want %q, %q", c.options, w.Message, w.Suggestion, c.message, c.suggestion)
		}
		if strings.Contains(w.String(), "\n") || (w.Suggestion != "" && !strings.HasSuffix(w.String(), "did you mean "+w.Suggestion+"?")) {
			t.Errorf("%s: printed %q", c.options, w)
		}
	}
}

func TestOldNamesLeadToOptionsThatAreThere(t *testing.T) {
	for key, now := range oldNames {
		if key != lower(key) || strings.ContainsAny(key, "_-") {
			t.Errorf("%s is never found: keys are compared in lower case, without hyphens and underscores", key)
		}
		if _, known := byKey[key]; known || aliases[key] != "" {
			t.Errorf("%s is an option", key)
		}
		if now.message == "" {
			t.Errorf("%s has no reason", key)
		}
		for name := range strings.FieldsFuncSeq(strings.ReplaceAll(now.suggestion, " and ", ","), func(r rune) bool { return r == ',' || r == ' ' }) {
			name, _, _ = strings.Cut(name, "=")
			if row := byKey[lower(name)]; row == nil || row.name != name {
				t.Errorf("%s leads to %q, which is no option", key, name)
			}
		}
	}
}

func TestRefusedValuesLeaveTheOptionUnset(t *testing.T) {
	u := parse(t, "mongodb://h/?heartbeatFrequencyMS=100&readPreference=slow&journal=maybe&w=-3&readPreferenceTags=x&maxPoolSize=many")
	if u.HeartbeatFrequencyMS != nil || u.ReadPreference != "" || u.Journal != nil || u.W != nil || u.ReadPreferenceTags != nil || u.MaxPoolSize != nil {
		t.Errorf("%+v", u.Options)
	}
	if len(u.Warnings) != 6 {
		t.Errorf("%v", u.Warnings)
	}
}

func TestSlaveOkGivesWayToReadPreference(t *testing.T) {
	for _, options := range []string{"slaveOk=true&readPreference=nearest", "readPreference=nearest&slaveOk=true"} {
		if u := parse(t, "mongodb://h/?"+options); u.ReadPreference != "nearest" || len(u.Warnings) != 1 {
			t.Errorf("%s: %s, %v", options, u.ReadPreference, u.Warnings)
		}
	}
	if u := parse(t, "mongodb://h/?SlaveOk=true"); u.ReadPreference != "secondaryPreferred" {
		t.Errorf("%q", u.ReadPreference)
	}
}

func TestTheLastOfRepeatedOptionsCounts(t *testing.T) {
	if u := parse(t, "mongodb://h/?maxPoolSize=1;maxPoolSize=2&MAXPOOLSIZE=3"); *u.MaxPoolSize != 3 || len(u.Warnings) != 2 {
		t.Errorf("%d, %v", *u.MaxPoolSize, u.Warnings)
	}
}

func TestErrorsNameTheFaultAndItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"":                                         "it begins with mongodb://",
		"http://h":                                 "must begin with mongodb://",
		"mongodb://":                               "names no host",
		"mongodb:///tmp/mongodb-27017.sock/":       "%2F",
		"mongodb://a,,b":                           "host 2: it is empty",
		"mongodb://a:27017:1":                      "two colons",
		"mongodb://a:b":                            "the port is not a number",
		"mongodb://a:0":                            "within 1 and 65535",
		"mongodb://a b":                            `host 1: a host name must not hold the character ' ' (at position 2)`,
		"mongodb://%2Ftmp%2Fdb":                    "unless it ends in .sock",
		"mongodb://%2Ftmp%2Fdb.sock:27017":         "a Unix socket has no port",
		"mongodb://[::1":                           "not closed",
		"mongodb://[127.0.0.1]":                    "no IPv6 address",
		"mongodb://[::1]x":                         "only a port may follow",
		"mongodb://joe%:pw@h":                      "the % at position 4 of the user name",
		"mongodb://joe:p%zz@h":                     "the % at position 2 of the password",
		"mongodb://joe:p%ff@h":                     "the password is not valid UTF-8",
		"mongodb://joe:a:b@h":                      "unescaped colon; write %3A",
		"mongodb://joe:a@b@h":                      "unescaped @; write %40",
		"mongodb://:pw@h":                          "the user name before the @ is empty",
		"mongodb://joe:p/w@h":                      "write %2F for /",
		"mongodb://joe:1/w@h":                      "write %2F for /",
		"mongodb://h/a$b":                          `must not hold '$' (at position 2)`,
		"mongodb://h/?w":                           "option 1 is not of the form name=value",
		"mongodb://h/?a=1&=2":                      "option 2 is not of the form name=value",
		"mongodb://h/?appname=%G0":                 "the % at position 1 of the value of option appname",
		"mongodb://h/?authSource=":                 "authSource is empty",
		"mongodb://h/?authMechanism=SCRAM-SHA-256": "needs a user name",
		"mongodb://joe:x@h/?authMechanism=scram":   `there is no authMechanism "scram"`,
		"mongodb://a,b/?directConnection=true":     "directConnection=true needs one host, not 2",
		"mongodb://h/?tlsInsecure=false&tlsAllowInvalidHostnames=false": "must not be given together",
		"mongodb://h/?ssl=true&tls=false":                               "contradict",
		"mongodb+srv://a,b":                                             "one host name, not 2",
		"mongodb+srv://a.b.c:27017":                                     "without a port",
		"mongodb+srv://10.0.0.1":                                        "it is an address, not a name",
		"mongodb+srv://a.b.c/?directConnection=true":                    "mongodb+srv may stand for several",
		"mongodb+srv://a.b.c/?srvServiceName=a_b":                       "no service name",
		"mongodb://h/?srvAllowedHostsSuffix=.b.c":                       "for mongodb+srv alone",
		"mongodb://h/?proxyPort=1080":                                   "proxyPort needs a proxyHost",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

func TestSRVKeepsTheNameForTheLookup(t *testing.T) {
	u := parse(t, "mongodb+srv://joe:pw@Cluster.Example.COM./shop?srvServiceName=db&srvMaxHosts=3")
	if u.SRVHost != "cluster.example.com" || u.Hosts != nil || *u.SRVMaxHosts != 3 || u.SRVServiceName != "db" || !u.Secure() {
		t.Errorf("%+v", u)
	}
}

func TestTLSIsImpliedByItsOtherOptions(t *testing.T) {
	for text, want := range map[string]bool{
		"mongodb://h": false, "mongodb://h/?ssl=true": true, "mongodb://h/?tlsCAFile=ca.pem": true,
		"mongodb://h/?tlsCAFile=ca.pem&tls=false": false, "mongodb+srv://a.b.c": true, "mongodb+srv://a.b.c/?tls=false": false,
		"mongodb://h/?tlsNonsense=1": false,
	} {
		if got := parse(t, text).Secure(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestSourceOfTheUserFollowsTheSpecification(t *testing.T) {
	for text, want := range map[string]string{
		"mongodb://u:p@h":                               "admin",
		"mongodb://u:p@h/foo":                           "foo",
		"mongodb://u:p@h/foo?authSource=bar":            "bar",
		"mongodb://u:p@h/foo?authMechanism=PLAIN":       "foo",
		"mongodb://u:p@h/?authMechanism=PLAIN":          "$external",
		"mongodb://u@h/foo?authMechanism=MONGODB-X509":  "$external",
		"mongodb://u:p@h/foo?authMechanism=SCRAM-SHA-1": "foo",
	} {
		if c := parse(t, text).Credential(); c == nil || c.AuthSource() != want {
			t.Errorf("%s: %v", text, c)
		}
	}
	if parse(t, "mongodb://h/foo?authSource=bar").Credential() != nil {
		t.Error("a database alone asks for authentication")
	}
}

func TestPrintedStringsHideSecrets(t *testing.T) {
	u := parse(t, "mongodb://j%40e:hunter2@h:1,%2Ftmp%2Fm.sock,[fe80::1%25eth0]/shop?tlsCertificateKeyFilePassword=hunter2&appname=a%26b&secretThing=hunter2&authMechanismProperties=AWS_SESSION_TOKEN:hunter2&slaveOk=true")
	want := "mongodb://j%40e:xxxxx@h:1,%2Ftmp%2Fm.sock,[fe80::1%25eth0]:27017/shop?tlsCertificateKeyFilePassword=xxxxx&appname=a%26b&secretThing=xxxxx&authMechanismProperties=xxxxx&slaveOk=true"
	if u.String() != want {
		t.Errorf("\n%s, want\n%s", u, want)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, u) + fmt.Sprint(u.Warnings); strings.Contains(text, "hunter2") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func TestPrintedStringParsesToTheSameHostsAndOptions(t *testing.T) {
	for _, text := range []string{
		"mongodb://h", "mongodb://a,b:1,[::1]/x%3Dy?replicaSet=my@set&readPreferenceTags=a:b,c:d&readPreferenceTags=",
		"mongodb+srv://joe@a.b.c/?tls=false", "mongodb://rel%2F %2Fm.sock/?w=1",
	} {
		u := parse(t, text)
		v := parse(t, u.String())
		if !slices.Equal(u.Hosts, v.Hosts) || u.SRVHost != v.SRVHost || u.Database != v.Database || !reflect.DeepEqual(u.Options, v.Options) {
			t.Errorf("%s became %s", text, u)
		}
	}
}

// FuzzParse: nothing panics, no error, warning or printed string holds the password, and what is printed parses again.
func FuzzParse(f *testing.F) {
	f.Add("joe", "h/?w=1")
	f.Add("joe", "h,[::1]:1/db?readPreferenceTags=a:b;ssl=true")
	f.Add("j/e", "%2Ftmp%2Fm.sock")
	f.Add("", "a@b/?slaveOk=1&x")
	f.Add("joe", "%2C0")
	f.Fuzz(func(t *testing.T, user, rest string) {
		const secret = "hunter2IsTheSecret"
		if strings.Contains(rest, "hunter2") || strings.Contains(user, "?") {
			return
		}
		u, err := Parse("mongodb://" + user + ":" + secret + "@" + rest)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("the error holds the password: %v", err)
			}
			return
		}
		if text := fmt.Sprint(u, u.Warnings) + fmt.Sprintf("%#v", u); strings.Contains(text, secret) {
			t.Fatalf("printed: %s", text)
		}
		if u.Password != secret {
			t.Fatalf("the password became %q", u.Password)
		}
		v, err := Parse(u.String())
		if err != nil {
			t.Fatalf("%s does not parse: %v", u, err)
		}
		if !slices.Equal(u.Hosts, v.Hosts) || u.Database != v.Database || u.Username != v.Username {
			t.Fatalf("%s became %s", u, v)
		}
	})
}

// FuzzParseAny: no text panics.
func FuzzParseAny(f *testing.F) {
	f.Add("mongodb+srv://a.b.c/?srvMaxHosts=1")
	f.Add("mongodb://h/?tls=%")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := Parse(text)
		if (u == nil) == (err == nil) {
			t.Fatalf("%v and %v", u, err)
		}
	})
}
