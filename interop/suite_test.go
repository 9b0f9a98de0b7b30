package interop

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// maxExcuses is how many entries the list of what FerretDB cannot do has.
const maxExcuses = 9

// TestDriversSuitePassesOnFerretDB runs the driver's own suite, as far as it runs on a deployment named by a URI, each test
// on a FerretDB of its own. What FerretDB cannot do is listed, by the name of the case, in testdata/ferretdb.tsv; who is
// listed and passes must leave the list.
func TestDriversSuitePassesOnFerretDB(t *testing.T) {
	server := compileFerretDB(t)
	suite := compile(t, "..", "suite", "test", "-race", "-c")
	excused := excuses(t, "testdata/ferretdb.tsv")
	if len(excused) != maxExcuses {
		t.Errorf("testdata/ferretdb.tsv has %d entries, maxExcuses is %d: it only gets less", len(excused), maxExcuses)
	}
	cases := casesByURI(t, "..")
	if len(cases) < 68 { // as many as there are: it may only rise
		t.Fatalf("the suite has %d cases that run by URI: %v", len(cases), cases)
	}
	for name := range excused {
		if top, _, _ := strings.Cut(name, "/"); !slices.Contains(cases, top) {
			t.Errorf("testdata/ferretdb.tsv has %s, which is no case of the suite", name)
		}
	}
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, outcome := runCase(t, suite, startFerretDB(t, server), name)
			for _, sub := range failures(outcome) {
				if excused[sub] == "" && excused[parent(sub)+"/*"] == "" {
					t.Errorf("%s: %s", sub, outcome[sub])
				}
			}
			for listed := range excused {
				for _, sub := range covered(listed, outcome) {
					if outcome[sub] == "PASS" {
						t.Errorf("%s passes now: take it off testdata/ferretdb.tsv", sub)
					}
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// runCase runs one test of the suite in a process of its own and tells how it and its parts ended.
func runCase(t *testing.T, suite, uri, name string) (out []byte, outcome map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, suite, "-test.v", "-test.count=1", "-test.run", "^"+name+"$")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "SEXTANT_TEST_URI="+uri)
	out, err := cmd.CombinedOutput()
	outcome = map[string]string{}
	for _, m := range verdict.FindAllSubmatch(out, -1) {
		outcome[string(m[2])] = string(m[1])
	}
	if outcome[name] == "" { // it hung, or died
		outcome[name] = "FAIL"
	} else if (err != nil) != (outcome[name] == "FAIL") {
		t.Errorf("%s ended with %v, and says %s", name, err, outcome[name])
	}
	return out, outcome
}

var verdict = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)

// failures are the cases that did not pass, without those that fail merely because a part of theirs does.
func failures(outcome map[string]string) (names []string) {
	for name, how := range outcome {
		if how != "PASS" && !slices.ContainsFunc(names, func(sub string) bool { return strings.HasPrefix(sub, name+"/") }) {
			names = slices.DeleteFunc(names, func(whole string) bool { return strings.HasPrefix(name, whole+"/") })
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func parent(name string) string { return name[:max(0, strings.LastIndexByte(name, '/'))] }

// covered are the cases that an entry of the list speaks of: one, or with /* all parts of one.
func covered(listed string, outcome map[string]string) (names []string) {
	whole, all := strings.CutSuffix(listed, "/*")
	for name := range outcome {
		if name == listed || all && parent(name) == whole {
			names = append(names, name)
		}
	}
	return names
}

// excuses reads a list of cases with the reason why each fails.
func excuses(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for line := range bytes.Lines(text) {
		name, reason, ok := strings.Cut(strings.TrimSpace(string(line)), "\t")
		if strings.HasPrefix(name, "#") {
			continue
		}
		if !ok || reason == "" || list[name] != "" {
			t.Fatalf("%s: %q wants to be a case of its own, a tab and the reason", path, line)
		}
		list[name] = reason
	}
	return list
}

// casesByURI are the tests and examples of a package that run on the deployment that SEXTANT_TEST_URI names: they call, maybe
// through others, the function startShared. Those that break members start sets of their own.
func casesByURI(t *testing.T, folder string) (names []string) {
	t.Helper()
	calls := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				calls[f.Name.Name] = called(f)
			}
		}
	}
	reach := map[string]bool{"startShared": true}
	for grew := true; grew; {
		grew = false
		for name, others := range calls {
			if !reach[name] && slices.ContainsFunc(others, func(o string) bool { return reach[o] }) {
				reach[name], grew = true, true
			}
		}
	}
	for name := range reach {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// called are the functions of its own package that a function calls.
func called(f *ast.FuncDecl) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun := call.Fun
		if generic, ok := fun.(*ast.IndexExpr); ok {
			fun = generic.X
		}
		if id, ok := fun.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
		return true
	})
	return names
}
