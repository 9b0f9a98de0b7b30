package interop

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// FerretDB v1 is a server that nobody here wrote. It may crash or hang its host and keeps what a client's hurry has broken,
// so it is the program ferret/, a module of its own, and whoever uses it has a process and a folder to himself.

// compile has the Go command make a program, of the module in a folder; what it has made before is in its cache.
func compile(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", append(args, "-o", path, ".")...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making %s of %s: %v\n%s", name, folder, err, out)
	}
	return path
}

// compileFerretDB makes the server, unless the machine is to go without. The first time takes about a minute.
func compileFerretDB(t *testing.T) (program string) {
	t.Helper()
	return compile(t, "ferret", "ferret", "build")
}

// startFerretDB starts the server in a folder of the test's own, kills it with the test, and returns its URI.
func startFerretDB(t *testing.T, program string) string {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, t.TempDir())
	in, err := cmd.StdinPipe() // the server ends when it does, were this process to die without a word
	if err != nil {
		t.Fatal(err)
	}
	out, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	said := &log{}
	cmd.Stdout, cmd.Stderr = writes, said
	err = cmd.Start()
	writes.Close()
	t.Cleanup(func() {
		kill()
		in.Close()
		out.Close()
		if err == nil {
			cmd.Wait() // which tells that it was killed
		}
		if t.Failed() {
			t.Logf("FerretDB said:\n%s", said)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	out.SetReadDeadline(time.Now().Add(patience))
	uri, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && err != io.EOF || uri == "" {
		t.Fatalf("FerretDB told no URI: %q, %v\n%s", uri, err, said)
	}
	return uri[:len(uri)-1]
}
