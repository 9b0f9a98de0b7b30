package sextant_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The pages of docs/coming-from answer what the manuals of old drivers promise, which is numbered: 1 to 57 are of the PHP
// driver's, 58 to 170 of the Java driver's. A mark such as [row 17](../../cursor_test.go#TestX) or [row 17](#a-heading)
// says where the answer is.

const rows = 170

var (
	rowMark = regexp.MustCompile(`\[row (\d+)\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^(#+) (.+)$`)
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code    = regexp.MustCompile("`[^`\n]+`")
	snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
)

// refused begins the chapter of a page about what is not offered. What stands below it is a refusal with its reason.
const refused = "What is not offered"

type page struct {
	file, text string
	headings   map[string]bool // by anchor; true below the chapter of refusals
}

func pages(t *testing.T) []page {
	t.Helper()
	files, err := filepath.Glob("docs/coming-from/*.md")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %v, %v", files, err)
	}
	out := make([]page, len(files))
	for i, f := range files {
		text := must[[]byte](t)(os.ReadFile(f))
		out[i] = page{file: f, text: string(text), headings: map[string]bool{}}
		below := false
		for _, h := range heading.FindAllStringSubmatch(snippet.ReplaceAllString(out[i].text, ""), -1) {
			if h[1] == "##" {
				below = strings.HasPrefix(h[2], refused)
			}
			out[i].headings[anchor(h[2])] = below && h[1] == "###"
		}
	}
	return out
}

// anchor is the name that a heading gets as the target of a link.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// kindOfAnswer says what a mark points to: a "test", an "equivalent" or a "refusal".
func kindOfAnswer(p page, target string) (string, error) {
	file, name, ok := strings.Cut(target, "#")
	if !ok {
		return "", errors.New("it points to no test and no heading")
	}
	if file == "" {
		below, ok := p.headings[name]
		switch {
		case !ok:
			return "", errors.New("the page has no such heading")
		case below:
			return "refusal", nil
		}
		return "equivalent", nil
	}
	file = filepath.Join(filepath.Dir(p.file), file)
	if !strings.HasSuffix(file, "_test.go") {
		return "", errors.New("it is no test and no heading of this page")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if !regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\((t \*testing\.T|b \*testing\.B|)\) `).Match(text) {
		return "", errors.New("the file has no such test")
	}
	return "test", nil
}

func TestEveryRowOfTheOldManualsIsAnswered(t *testing.T) {
	answers := map[string]map[string]bool{}
	for _, p := range pages(t) {
		for _, m := range rowMark.FindAllStringSubmatch(p.text, -1) {
			kind, err := kindOfAnswer(p, m[2])
			if err != nil {
				t.Errorf("%s: %s: %v", p.file, m[0], err)
			}
			if answers[m[1]] == nil {
				answers[m[1]] = map[string]bool{}
			}
			answers[m[1]][kind] = true
		}
	}
	count := map[string]int{}
	for i := 1; i <= rows; i++ {
		a := answers[fmt.Sprint(i)]
		delete(answers, fmt.Sprint(i))
		switch {
		case a == nil:
			t.Errorf("row %d is not answered", i)
		case a["refusal"]: // its warning or error may be tested too
			count["refusal"]++
		case a["test"]:
			count["test"]++
		default:
			count["equivalent"]++
		}
	}
	for n := range answers {
		t.Errorf("there is no row %s", n)
	}
	t.Logf("of %d rows %d are tested, %d have an equivalent that is described, %d are refused with the reason", rows, count["test"], count["equivalent"], count["refusal"])
}

// TestLinksOfThePagesLead follows every link: to a test, to a heading of this page or another, or to a file.
func TestLinksOfThePagesLead(t *testing.T) {
	all := pages(t)
	n := 0
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(snippet.ReplaceAllString(p.text, ""), ""), -1) {
			file, name, _ := strings.Cut(m[1], "#")
			n++
			if file == "" || strings.HasSuffix(file, ".go") {
				if _, err := kindOfAnswer(p, m[1]); err != nil {
					t.Errorf("%s: %s: %v", p.file, m[1], err)
				}
				continue
			}
			file = filepath.Join(filepath.Dir(p.file), file)
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", p.file, err)
			}
			for _, other := range all {
				if _, ok := other.headings[name]; other.file == file && name != "" && !ok {
					t.Errorf("%s: %s has no heading %s", p.file, file, name)
				}
			}
		}
	}
	if n < rows {
		t.Errorf("%d links: the search is broken", n)
	}
}

// oldNames are what people look for.
const oldNames = `slaveOkay slaveOk SLAVE_OK rs.slaveOk() setSlaveOkay getSlaveOkay getSlave switchSlave getHosts persist setPoolSize
	master slave slaveDelay passives isMaster ismaster buildinfo getlasterror slaveAcceptableLatencyMS acceptableLatencyMS
	secondaryAcceptableLatencyMS MONGO_RP_CUTOFF connectionsPerHost minConnectionsPerHost
	threadsAllowedToBlockForConnectionMultiplier maxWaitTime socketTimeout updaterIntervalMS heartbeatFrequency
	updaterIntervalNoMasterMS minHeartbeatFrequency heartbeatConnectRetryFrequency autoConnectRetry maxAutoConnectRetryTime
	requestStart requestDone requiredReplicaSetName safe w fsync wtimeout MongoId save() mongo.ping_interval
	mongo.is_master_interval health state stateStr`

func TestOldNamesAreFoundOnThePages(t *testing.T) {
	var all strings.Builder
	for _, p := range pages(t) {
		all.WriteString(p.text)
	}
	for name := range strings.FieldsSeq(oldNames) {
		if !regexp.MustCompile("`[^`\n]*" + regexp.QuoteMeta(name) + "[^`\n]*`").MatchString(all.String()) {
			t.Errorf("`%s` is on no page", name)
		}
	}
}

// prelude is what snippets of the pages may use without a word.
const prelude = `package snippets
import (
	"context"; "crypto/tls"; "errors"; "fmt"; "log"; "log/slog"; "net"; "os"; "strings"; "sync"; "testing"; "time"
	"github.com/sextantdb/sextant"; "github.com/sextantdb/sextant/bson"; "github.com/sextantdb/sextant/concern"; "github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"; "github.com/sextantdb/sextant/readpref"; "github.com/sextantdb/sextant/replset"
)
type Person struct { ID bson.ObjectID ` + "`bson:\"_id\"`" + `; Name string; Awards []string }
var ( ctx context.Context; client *sextant.Client; db *sextant.Database; people *sextant.Collection[Person]; joe Person; err error; t *testing.T )
`

// imported are the packages of the prelude.
var imported = regexp.MustCompile(`"([a-z][\w./]*)"`)

// TestSnippetsOfThePagesCompile checks the types of all Go code on the pages. What is declared and not used is let pass.
func TestSnippetsOfThePagesCompile(t *testing.T) {
	fset := token.NewFileSet()
	files := []*ast.File{must[*ast.File](t)(parser.ParseFile(fset, "prelude", prelude, 0))}
	imports, _, _ := strings.Cut(prelude[strings.Index(prelude, "import"):], "\n)")
	for _, p := range pages(t) {
		for i, m := range snippet.FindAllStringSubmatchIndex(p.text, -1) {
			line := strings.Count(p.text[:m[2]], "\n")
			src := fmt.Sprintf("package snippets\n%s\n)\nfunc _() {\n//line %s:%d\n%s}", imports, p.file, line+1, p.text[m[2]:m[3]])
			f, err := parser.ParseFile(fset, fmt.Sprintf("%s.%d", p.file, i), src, 0)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			files = append(files, f)
		}
	}
	if len(files) < 10 {
		t.Fatalf("%d snippets: the search is broken", len(files)-1)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, runtime.Compiler, exportData(t)), Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); !ok || !e.Soft {
			t.Errorf("%v", err)
		}
	}}
	_, _ = conf.Check("snippets", fset, files, nil) // errors were told one by one
	t.Logf("%d snippets", len(files)-1)
}

// exportData finds what the compiler knows of the packages that snippets may use.
func exportData(t *testing.T) func(string) (io.ReadCloser, error) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, m := range imported.FindAllStringSubmatch(prelude, -1) {
		args = append(args, m[1])
	}
	var complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[pkg] = file
	}
	return func(pkg string) (io.ReadCloser, error) { return os.Open(files[pkg]) }
}
