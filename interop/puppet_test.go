package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A stranger is a client of MongoDB that nobody here wrote. It carries out the scenario as a puppet: a small program around
// it reads steps, a line of Extended JSON each, and answers with a line each: {"ok": value}, or {"error": {code, message,
// ...}}. The first line says who is ready, and in what version.
type stranger struct {
	name    string
	options string   // of the connection string, beside those that all are given
	ascii   bool     // it cannot prepare passwords that are not ASCII
	leaks   []string // what is in errors that it hands on in place of repeating the write
	start   func(t *testing.T, uri string) (in io.WriteCloser, out io.Reader)
}

// patience is how long a step may take at most: an election and a busy machine are in it.
const patience = time.Minute

type puppet struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan []byte // closed when the puppet's output ends
}

// pull starts the stranger's puppet and ends it with the test.
func (s stranger) pull(t *testing.T, uri string) *puppet {
	t.Helper()
	in, out := s.start(t, uri)
	p := &puppet{t: t, in: in, lines: make(chan []byte)}
	done := t.Context().Done()
	go func() {
		defer close(p.lines)
		for r := bufio.NewReaderSize(out, 1<<20); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			select {
			case p.lines <- line:
			case <-done:
				return
			}
		}
	}()
	ready := p.line("start")
	var told struct{ Ready string }
	if err := bson.UnmarshalExtJSON(ready, false, &told); err != nil || told.Ready == "" {
		t.Fatalf("%s began with %q: %v", s.name, ready, err)
	}
	t.Log(told.Ready)
	return p
}

func (p *puppet) line(step string) []byte {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatalf("the puppet ended in the middle of %.1000s", step)
		}
		return line
	case <-time.After(patience):
		p.t.Fatalf("no answer after %v to %.1000s", patience, step)
	}
	return nil
}

// do has the puppet carry out a step.
func (p *puppet) do(step string) answer {
	p.t.Helper()
	return p.tell(strings.Join(strings.Fields(step), " "))
}

// tell has the puppet carry out a step as it is written, on one line.
func (p *puppet) tell(step string) answer {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, step); err != nil {
		p.t.Fatalf("telling the puppet %.1000s: %v", step, err)
	}
	line := p.line(step)
	var a answer
	if err := bson.UnmarshalExtJSON(line, false, &a); err != nil {
		p.t.Fatalf("%.1000s was answered with %.1000q: %v", step, line, err)
	}
	return a
}

// must has the puppet carry out a step that succeeds.
func (p *puppet) must(step string) bson.RawValue {
	p.t.Helper()
	a := p.do(step)
	if a.Error != nil {
		p.t.Fatalf("%s: %+v", step, *a.Error)
	}
	return a.OK
}

// answer is what became of a step.
type answer struct {
	OK    bson.RawValue
	Error *failure
}

// failure is an error as clients show it. Failed and Inserted are told by bulk writes alone.
type failure struct {
	Code     int
	Message  string
	Failed   []int
	Inserted int
}

// program starts a puppet that is a process of its own. What it says on its standard error is shown if the test fails.
func program(t *testing.T, env []string, name string, args ...string) (io.WriteCloser, io.Reader) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := &log{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		timer := time.AfterFunc(20*time.Second, cancel)
		defer timer.Stop()
		defer cancel()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", name, said)
		}
	})
	return in, out
}

// log keeps what a process says, from the goroutine that copies it.
type log struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// inProcess starts a puppet that is a goroutine of this process.
func inProcess(serve func(uri string, in io.Reader, out io.Writer) error) func(*testing.T, string) (io.WriteCloser, io.Reader) {
	return func(t *testing.T, uri string) (io.WriteCloser, io.Reader) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := serve(uri, inR, outW)
			outW.Close()
			done <- err
		}()
		t.Cleanup(func() {
			inW.Close()
			outR.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return inW, outR
	}
}

// needed fails the test if a stranger is not there.
func needed(t *testing.T, name, what string, there bool) {
	t.Helper()
	if !there {
		t.Fatalf("%s: %s; interop/install.sh (or make interop) installs it", name, what)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// works says whether a program starts and ends well.
func works(name string, args ...string) bool { return exec.Command(name, args...).Run() == nil }

// python is an interpreter that has PyMongo. Debian's package belongs to Debian's interpreter, which need not be the first.
func python() (string, bool) {
	list := []string{"python3", "/usr/bin/python3"}
	i := slices.IndexFunc(list, func(name string) bool { return works(name, "-c", "import pymongo") })
	if i < 0 {
		return "", false
	}
	return list[i], true
}
