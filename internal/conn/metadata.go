package conn

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
)

// DriverVersion is what the driver calls itself in hello.
const DriverVersion = "0.1.0"

const (
	maxMetadata = 512 // bytes of the whole client document
	maxAppName  = 128 // bytes of the name alone
)

// surveyed is what can be said of this process.
func surveyed(appName string) metadata {
	return metadata{
		app:      cut(appName, maxAppName),
		name:     "sextant",
		version:  DriverVersion,
		osType:   osType(runtime.GOOS),
		osName:   runtime.GOOS,
		arch:     runtime.GOARCH,
		platform: runtime.Version(),
		env:      surroundings(os.Getenv, exists),
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

type metadata struct {
	app, osType, osName, arch, platform string
	name, version                       string // of the driver, with those of the libraries that wrap it
	env                                 environment
}

// environment is client.env; empty fields are left out.
type environment struct {
	name, region          string
	memory, timeout       int32
	hasMemory, hasTimeout bool
	docker, kubernetes    bool
}

// document leaves things out, in the specification's order, until what is left fits.
func (m metadata) document() bson.Raw {
	doc := m.append()
	if len(doc) > maxMetadata {
		m.env = environment{name: m.env.name}
		doc = m.append()
	}
	if len(doc) > maxMetadata {
		m.osName, m.arch = "", ""
		doc = m.append()
	}
	if len(doc) > maxMetadata {
		m.env = environment{}
		doc = m.append()
	}
	if over := len(doc) - maxMetadata; over > 0 {
		m.platform = cut(m.platform, max(0, len(m.platform)-over))
		doc = m.append()
	}
	return doc
}

func (m metadata) append() bson.Raw {
	b, doc := bson.BeginDocument(nil)
	if m.app != "" {
		b = appendSub(b, "application", func(b []byte) []byte { return bson.AppendString(b, "name", m.app) })
	}
	b = appendSub(b, "driver", func(b []byte) []byte {
		b = bson.AppendString(b, "name", m.name)
		return bson.AppendString(b, "version", m.version)
	})
	b = appendSub(b, "os", func(b []byte) []byte {
		b = bson.AppendString(b, "type", m.osType)
		b = appendNonEmpty(b, "name", m.osName)
		return appendNonEmpty(b, "architecture", m.arch)
	})
	b = appendNonEmpty(b, "platform", m.platform)
	if m.env != (environment{}) {
		b = appendSub(b, "env", m.env.append)
	}
	return bson.EndDocument(b, doc)
}

func (e environment) append(b []byte) []byte {
	b = appendNonEmpty(b, "name", e.name)
	if e.hasTimeout {
		b = bson.AppendInt32(b, "timeout_sec", e.timeout)
	}
	if e.hasMemory {
		b = bson.AppendInt32(b, "memory_mb", e.memory)
	}
	b = appendNonEmpty(b, "region", e.region)
	if !e.docker && !e.kubernetes {
		return b
	}
	return appendSub(b, "container", func(b []byte) []byte {
		if e.docker {
			b = bson.AppendString(b, "runtime", "docker")
		}
		if e.kubernetes {
			b = bson.AppendString(b, "orchestrator", "kubernetes")
		}
		return b
	})
}

func appendSub(b []byte, key string, fill func([]byte) []byte) []byte {
	b, start := bson.BeginDocumentElement(b, key)
	return bson.EndDocument(fill(b), start)
}

func appendNonEmpty(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return bson.AppendString(b, key, value)
}

// surroundings reads the environment as the specification's table of cloud functions says: one provider or none, save
// that vercel runs on aws.lambda and wins.
func surroundings(getenv func(string) string, exists func(string) bool) environment {
	set := func(key string) bool { return getenv(key) != "" }
	aws := strings.HasPrefix(getenv("AWS_EXECUTION_ENV"), "AWS_Lambda_") || set("AWS_LAMBDA_RUNTIME_API")
	azure := set("FUNCTIONS_WORKER_RUNTIME")
	gcp := set("K_SERVICE") || set("FUNCTION_NAME")
	vercel := set("VERCEL")

	var e environment
	switch {
	case vercel && !azure && !gcp:
		e.name, e.region = "vercel", getenv("VERCEL_REGION")
	case vercel:
	case aws && !azure && !gcp:
		e.name, e.region = "aws.lambda", getenv("AWS_REGION")
		e.memory, e.hasMemory = number(getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"))
	case azure && !aws && !gcp:
		e.name = "azure.func"
	case gcp && !aws && !azure:
		e.name, e.region = "gcp.func", getenv("FUNCTION_REGION")
		e.memory, e.hasMemory = number(getenv("FUNCTION_MEMORY_MB"))
		e.timeout, e.hasTimeout = number(getenv("FUNCTION_TIMEOUT_SEC"))
	}
	e.docker = exists("/.dockerenv")
	e.kubernetes = set("KUBERNETES_SERVICE_HOST")
	return e
}

func number(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil
}

func osType(goos string) string {
	switch goos {
	case "linux", "android":
		return "Linux"
	case "darwin", "ios":
		return "Darwin"
	case "windows":
		return "Windows"
	case "freebsd", "netbsd", "openbsd", "dragonfly":
		return "BSD"
	case "aix", "solaris", "illumos":
		return "Unix"
	}
	return "unknown"
}

// cut shortens text to at most n bytes without cutting a character in two.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
