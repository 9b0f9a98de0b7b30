package sextant_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/sextantdb/sextant"

// floor says which packages of this module a package may import. The table is the one of ARCHITECTURE.md; a package that
// is missing here has no place in the house yet.
var floor = func() map[string][]string {
	values := []string{"bson", "mongoerr", "readpref", "concern", "event"}
	with := func(base []string, more ...string) []string { return append(slices.Clone(base), more...) }
	pure := []string{"internal/wire", "internal/connstring", "internal/auth", "internal/session", "internal/topology"}
	shell := []string{"internal/credential", "internal/conn", "internal/pool", "internal/cluster", "internal/operation"}
	wing := []string{"bson", "mongoerr", "internal/wire", "internal/compress"}
	return map[string][]string{
		"bson":                         {},
		"mongoerr":                     {"bson"},
		"readpref":                     {"bson", "mongoerr"},
		"concern":                      {"bson", "mongoerr"},
		"event":                        {"bson", "mongoerr", "readpref", "concern"},
		"internal/wire":                values,
		"internal/compress":            {},
		"internal/connstring":          values,
		"internal/auth":                values,
		"internal/session":             values,
		"internal/topology":            values,
		"internal/credential":          with(values, "internal/auth"),
		"internal/conn":                with(values, "internal/wire", "internal/session", "internal/auth", "internal/compress", "internal/credential"),
		"internal/pool":                with(values, "internal/conn", "internal/session"),
		"internal/cluster":             with(values, "internal/topology", "internal/pool", "internal/conn", "internal/connstring"),
		"internal/operation":           with(values, "internal/cluster", "internal/pool", "internal/conn", "internal/session", "internal/topology", "internal/wire"),
		".":                            with(values, append(append(pure, shell...), "internal/compress")...),
		"replset/internal/query":       {"bson", "mongoerr", "replset/internal/query/value", "replset/internal/query/expr"},
		"replset/internal/query/expr":  {"bson", "mongoerr", "replset/internal/query/value"},
		"replset/internal/query/value": {"bson", "mongoerr"},
		"replset/internal/store":       with(wing, "replset/internal/query", "replset/internal/query/value"),
		"replset/internal/repl":        {"bson", "mongoerr"},
		"replset/internal/command":     with(wing, "replset/internal/query", "replset/internal/query/value", "replset/internal/store", "replset/internal/repl"),
		"replset":                      with(wing, "replset/internal/command"),
		"cmd/sextant/internal/doctor":  with(values, "."),
		"cmd/sextant":                  with(values, ".", "replset", "cmd/sextant/internal/doctor"),
		"conformance":                  with(values, append(pure, ".", "replset", "conformance/corpus")...),
		"conformance/corpus":           {},
	}
}()

// pure packages hold no goroutine, lock, clock, socket or randomness of their own: time comes in as an argument, chance as
// a func, bytes as slices.
var pure = []string{
	"internal/wire", "internal/connstring", "internal/auth", "internal/topology", "internal/session",
	"replset/internal/query", "replset/internal/query/expr", "replset/internal/query/value", "replset/internal/repl",
}

var impureImports = []string{
	"net", "os", "io", "sync", "sync/atomic", "context", "log", "log/slog", "crypto/rand", "math/rand", "math/rand/v2", "net/http",
}

var clockCalls = []string{"Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since", "Until"}

// Caps on length. An entry in tooLong needs its reason.
const (
	fileCap     = 600
	testFileCap = 1000
	funcCap     = 100
)

var tooLong = map[string]string{}

type source struct {
	pkg, file string
	test      bool
	ast       *ast.File
	fset      *token.FileSet
}

// sources are all Go files of the root module; the modules nested in it have rules of their own.
func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 2 {
		t.Fatalf("found %d Go files: the walk is broken", len(out))
	}
	return out
}

var parsed = sync.OnceValues(parse)

func parse() (out []source, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "build" || hasFile(p, "go.mod")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		out = append(out, source{pkg: path.Dir(p), file: p, test: strings.HasSuffix(p, "_test.go"), ast: f, fset: fset})
		return nil
	})
	return out, err
}

func hasFile(dir, name string) bool {
	m, _ := filepath.Glob(filepath.Join(dir, name))
	return len(m) > 0
}

func imports(s source) []string {
	var out []string
	for _, i := range s.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

// TestFloors holds every import of ours to the floor table. Tests may look up, example programs see the public packages.
func TestFloors(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if err := floorFault(s.pkg, imports(s)); err != nil {
			t.Errorf("%s: %v", s.file, err)
		}
	}
}

func floorFault(pkg string, imports []string) error {
	allowed, known := floor[pkg]
	if strings.HasPrefix(pkg, "examples/") {
		allowed, known = []string{".", "bson", "readpref", "concern", "event", "mongoerr", "replset"}, true
	}
	if !known {
		return fmt.Errorf("package %s has no floor: give it a line in arch_test.go and ARCHITECTURE.md", pkg)
	}
	for _, imp := range imports {
		rel, ours := strings.CutPrefix(imp, module)
		if !ours {
			continue
		}
		rel = strings.TrimPrefix(rel, "/")
		if rel == "" {
			rel = "."
		}
		if !slices.Contains(allowed, rel) {
			return fmt.Errorf("package %s must not import %s", pkg, rel)
		}
	}
	for _, bad := range []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "types", "manager"} {
		if path.Base(pkg) == bad {
			return fmt.Errorf("a package must not be called %s", bad)
		}
	}
	return nil
}

func TestFloorsRefuseAnArrowUpward(t *testing.T) {
	for pkg, imp := range map[string]string{
		"bson": module + "/mongoerr", "internal/conn": module + "/internal/pool",
		"replset/internal/command": module + "/internal/conn", "replset": module, "cmd/util": "fmt",
	} {
		if floorFault(pkg, []string{imp}) == nil {
			t.Errorf("%s importing %s passed", pkg, imp)
		}
	}
}

// TestPurity holds the pure packages to their promise.
func TestPurity(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !slices.Contains(pure, s.pkg) {
			continue
		}
		for _, imp := range imports(s) {
			if slices.Contains(impureImports, imp) {
				t.Errorf("%s: a pure package must not import %s", s.file, imp)
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a pure package must not start a goroutine", s.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && x.Obj == nil && slices.Contains(clockCalls, n.Sel.Name) {
					t.Errorf("%s: a pure package must not call time.%s", s.fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestCaps keeps files and functions to a size that a reader can hold in mind.
func TestCaps(t *testing.T) {
	for _, s := range sources(t) {
		limit := fileCap
		if s.test {
			limit = testFileCap
		}
		lines := s.fset.File(s.ast.Pos()).LineCount()
		if lines > limit && tooLong[s.file] == "" {
			t.Errorf("%s has %d lines, the cap is %d", s.file, lines, limit)
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test {
				continue
			}
			n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			if name := s.file + ":" + f.Name.Name; n > funcCap && tooLong[name] == "" {
				t.Errorf("%s has %d lines, the cap is %d", name, n, funcCap)
			}
		}
	}
}
