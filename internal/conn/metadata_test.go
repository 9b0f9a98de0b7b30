package conn

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
)

func str(d bson.Raw, path ...string) string {
	s, _ := d.Lookup(path...).StringValueOK()
	return s
}

func TestMetadataNamesTheDriverAndItsSurroundings(t *testing.T) {
	d := ClientMetadata("shop").Document()
	if str(d, "application", "name") != "shop" || str(d, "driver", "name") != "sextant" || str(d, "driver", "version") != DriverVersion ||
		str(d, "os", "type") == "" || !strings.HasPrefix(str(d, "platform"), "go") {
		t.Errorf("%s", d)
	}
	if d := ClientMetadata("").Document(); !d.Lookup("application").IsZero() {
		t.Errorf("an application without a name: %s", d)
	}
}

func TestLongAppNameIsCutBetweenCharacters(t *testing.T) {
	name := str(ClientMetadata(strings.Repeat("ü", 100)+"x").Document(), "application", "name")
	if name != strings.Repeat("ü", 64) {
		t.Errorf("%d bytes: %q", len(name), name)
	}
	if name := cut("a"+strings.Repeat("ü", 100), maxAppName); len(name) != 127 || !utf8.ValidString(name) {
		t.Errorf("%d bytes: %q", len(name), name)
	}
}

// The environments of the handshake specification's prose tests.
func TestCloudFunctionsAreRecognised(t *testing.T) {
	for _, c := range []struct {
		vars string
		want environment
	}{
		{"AWS_EXECUTION_ENV=AWS_Lambda_java8 AWS_REGION=us-east-2 AWS_LAMBDA_FUNCTION_MEMORY_SIZE=1024",
			environment{name: "aws.lambda", region: "us-east-2", memory: 1024, hasMemory: true}},
		{"FUNCTIONS_WORKER_RUNTIME=node", environment{name: "azure.func"}},
		{"K_SERVICE=servicename FUNCTION_MEMORY_MB=1024 FUNCTION_TIMEOUT_SEC=60 FUNCTION_REGION=us-central1",
			environment{name: "gcp.func", region: "us-central1", memory: 1024, hasMemory: true, timeout: 60, hasTimeout: true}},
		{"VERCEL=1 VERCEL_REGION=cdg1", environment{name: "vercel", region: "cdg1"}},
		{"VERCEL=1 VERCEL_REGION=cdg1 AWS_LAMBDA_RUNTIME_API=x", environment{name: "vercel", region: "cdg1"}},
		{"AWS_EXECUTION_ENV=AWS_Lambda_java8 FUNCTIONS_WORKER_RUNTIME=node", environment{}},
		{"VERCEL=1 K_SERVICE=x", environment{}},
		{"AWS_EXECUTION_ENV=AWS_Lambda_java8 AWS_LAMBDA_FUNCTION_MEMORY_SIZE=big", environment{name: "aws.lambda"}},
		{"AWS_EXECUTION_ENV=EC2", environment{}},
		{"AWS_EXECUTION_ENV=AWS_Lambda_java8 AWS_REGION=us-east-2 AWS_LAMBDA_FUNCTION_MEMORY_SIZE=1024 KUBERNETES_SERVICE_HOST=1",
			environment{name: "aws.lambda", region: "us-east-2", memory: 1024, hasMemory: true, kubernetes: true}},
	} {
		vars := map[string]string{}
		for _, kv := range strings.Fields(c.vars) {
			k, v, _ := strings.Cut(kv, "=")
			vars[k] = v
		}
		got := surroundings(func(k string) string { return vars[k] }, func(string) bool { return false })
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.vars, got, c.want)
		}
	}
	e := surroundings(func(string) string { return "" }, func(path string) bool { return path == "/.dockerenv" })
	if e != (environment{docker: true}) {
		t.Errorf("in docker: %+v", e)
	}
}

func TestMetadataLeavesOutInTheSpecifiedOrder(t *testing.T) {
	full := metadata{
		app: strings.Repeat("a", 128), osType: "Linux", osName: "linux", arch: "amd64", platform: "go1.26",
		env: environment{name: "aws.lambda", region: "r", docker: true},
	}
	fits := func(m metadata) bson.Raw {
		t.Helper()
		d := m.document()
		if len(d) > maxMetadata || d.Validate() != nil {
			t.Errorf("%d bytes", len(d))
		}
		return d
	}
	if d := fits(full); str(d, "env", "region") != "r" || str(d, "env", "container", "runtime") != "docker" {
		t.Errorf("left something out that fits: %s", d)
	}
	m := full
	m.env.region = strings.Repeat("r", 300)
	if d := fits(m); str(d, "env", "name") != "aws.lambda" || !d.Lookup("env", "region").IsZero() || str(d, "os", "architecture") != "amd64" {
		t.Errorf("first env but its name: %s", d)
	}
	m.osName = strings.Repeat("n", 300)
	if d := fits(m); str(d, "env", "name") != "aws.lambda" || !d.Lookup("os", "name").IsZero() || str(d, "os", "type") != "Linux" {
		t.Errorf("then os but its type: %s", d)
	}
	m.env.name = strings.Repeat("e", 300)
	if d := fits(m); !d.Lookup("env").IsZero() || str(d, "platform") != "go1.26" {
		t.Errorf("then all of env: %s", d)
	}
	m.platform = strings.Repeat("p", 1000)
	if d := fits(m); !strings.HasPrefix(str(d, "platform"), "ppp") || len(d) != maxMetadata {
		t.Errorf("then platform is cut: %d bytes, %s", len(d), d)
	}
}

func TestLibrariesAreAppendedOnceAndOnlyWhatFits(t *testing.T) {
	m := ClientMetadata("shop")
	before := m.Document()
	for words, bad := range map[string]DriverInfo{
		"has no name": {Version: "1"}, `name "a|b"`: {Name: "a|b"}, `version "1|2"`: {Name: "a", Version: "1|2"}, `platform "|"`: {Name: "a", Platform: "|"},
		"not UTF-8": {Name: "a\xff"}, "a server takes 512": {Name: strings.Repeat("n", 500)},
	} {
		if err := m.Append(bad); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
	if !bytes.Equal(before, m.Document()) {
		t.Errorf("what was refused is sent: %s", m.Document())
	}
	for range 2 {
		if err := m.Append(DriverInfo{Name: "odm", Platform: strings.Repeat("p", 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	d := m.Document()
	if str(d, "driver", "name") != "sextant|odm" || str(d, "driver", "version") != DriverVersion || len(d) != maxMetadata ||
		!strings.HasPrefix(str(d, "platform"), runtime.Version()+"|ppp") || d.Validate() != nil {
		t.Errorf("%d bytes: %s", len(d), d)
	}
}
