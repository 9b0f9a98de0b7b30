package replset

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
)

// servedDir names the folder of a set that this program, when it is started with it, serves in the place of running tests.
const servedDir = "SEXTANT_TEST_SERVE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(servedDir); dir != "" {
		if err := serveForParent(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	debug.SetGCPercent(400) // much is allocated, and little is kept
	os.Exit(m.Run())
}

// serveForParent prints the set's URI and serves until standard input ends, or the process is killed.
func serveForParent(dir string) error {
	members, _ := strconv.Atoi(os.Getenv("SEXTANT_TEST_MEMBERS"))
	set, err := Start(context.Background(), Options{Dir: dir, Members: members, OplogEntries: 5000,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return err
	}
	fmt.Println(set.URI())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return set.Close()
}

// served is a process that serves a set.
type served struct {
	cmd *exec.Cmd
	out io.ReadCloser
	in  io.WriteCloser
	uri string
	err strings.Builder
}

func serveDir(t *testing.T, dir string, members int) *served {
	t.Helper()
	s := &served{cmd: exec.Command(os.Args[0])}
	s.cmd.Env = append(os.Environ(), servedDir+"="+dir, "SEXTANT_TEST_MEMBERS="+strconv.Itoa(members))
	s.cmd.Stderr = &s.err
	var err error
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil { // kept open: the process ends with the test's, if nobody kills it before
		t.Fatal(err)
	}
	if err = s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(s.out).ReadString('\n')
	if err != nil {
		_ = s.cmd.Wait()
		t.Fatalf("the set did not start again: %v\n%s", err, s.err.String())
	}
	s.uri = strings.TrimSpace(line)
	return s
}

// kill ends the process by SIGKILL.
func (s *served) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Wait() // it says that the process was killed
	if s.err.Len() > 0 {
		t.Errorf("the process said\n%s", s.err.String())
	}
}

// ledger is what writers were promised.
type ledger struct {
	mu       sync.Mutex // guards all below
	acked    []string
	tried    int
	counted  int64 // confirmed increments
	counting int64 // those and the ones with an unknown outcome
}

func (l *ledger) try() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried++
	return strconv.Itoa(l.tried)
}

func (l *ledger) confirm(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, id)
}

// await waits until n more writes than before are confirmed, however long this machine takes for them.
func (l *ledger) await(t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	n += len(l.acked)
	l.mu.Unlock()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		has := len(l.acked)
		l.mu.Unlock()
		if has >= n {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%d writes of %d were confirmed within a minute: the load is none", has, n)
			return
		}
	}
}

// write inserts until the context ends.
func (l *ledger) write(ctx context.Context, c *sextant.Client, o sextant.CollectionOptions) {
	for ctx.Err() == nil {
		id := l.try()
		if _, err := c.Database("test").Collection("kept", o).InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "text", Value: strings.Repeat("x", 300)}}); err != nil {
			continue // an election, or the end
		}
		l.confirm(id)
	}
}

// count increments one number until the context ends.
func (l *ledger) count(ctx context.Context, c *sextant.Client) {
	one := c.Database("test").Collection("counters", sextant.CollectionOptions{WriteConcern: concern.Majority()})
	for ctx.Err() == nil {
		l.mu.Lock()
		l.counting++
		l.mu.Unlock()
		_, err := one.UpdateOne(ctx, bson.D{{Key: "_id", Value: "n"}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}},
			sextant.UpdateOneOptions{Upsert: true})
		if err != nil {
			continue
		}
		l.mu.Lock()
		l.counted++
		l.mu.Unlock()
	}
}

// check holds a set to what was promised.
func (l *ledger) check(t *testing.T, c *sextant.Client) {
	t.Helper()
	got := idsIn(t, c)
	for _, id := range l.acked {
		if !got[id] {
			t.Errorf("write %s of %d confirmed ones is lost", id, len(l.acked))
		}
	}
	doc, err := c.Database("test").Collection("counters").FindOne(t.Context(), bson.D{{Key: "_id", Value: "n"}})
	n := int64(0)
	for _, e := range doc {
		if e.Key == "n" {
			n, _ = e.Value.(int64)
		}
	}
	if l.counted > 0 && err != nil || n < l.counted || n > l.counting {
		t.Errorf("the number is %d (%v) after %d confirmed increments and %d others", n, err, l.counted, l.counting-l.counted)
	}
	l.counting, l.counted = n, n
}

// TestKilledProcessLosesNothingConfirmed kills a process that serves a set, by SIGKILL after a random number of confirmed
// writes, every fourth time at a random moment soon after its start, and starts it again on the same folder. Writes that were confirmed with j (one member) or by a majority are there, and no
// increment was made twice. SEXTANT_KILLS says how often; a few times if it is not set.
func TestKilledProcessLosesNothingConfirmed(t *testing.T) {
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("SEXTANT_KILLS")); err == nil {
		kills = n
	}
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprint(members, " members"), func(t *testing.T) {
			dir, l, rnd := t.TempDir(), &ledger{}, rand.New(rand.NewPCG(uint64(members), 1))
			concerns := []sextant.CollectionOptions{{WriteConcern: concern.Majority()}, {WriteConcern: concern.Majority()}, {}}
			if members == 1 { // beyond one member j alone promises that this member has it, not that nobody takes it back
				concerns[0] = journaled
			}
			for i := range kills {
				s := serveDir(t, dir, members)
				client := clientOf(t, s.uri)
				l.check(t, client)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for _, o := range concerns {
					wg.Go(func() { l.write(ctx, client, o) })
				}
				wg.Go(func() { l.count(ctx, client) })
				if i%4 < 3 {
					l.await(t, 1+rnd.IntN(100))
				} else {
					time.Sleep(time.Duration(rnd.IntN(150)) * time.Millisecond)
				}
				s.kill(t)
				cancel()
				wg.Wait()
				_ = client.Close(context.Background())
			}
			s := serveDir(t, dir, members)
			l.check(t, clientOf(t, s.uri))
			s.kill(t)
			t.Logf("%d kills, %d confirmed writes, %d increments", kills, len(l.acked), l.counted)
		})
	}
}
