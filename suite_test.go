package sextant_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/replset"
)

// The suite runs against an embedded set of three members, or against the deployment that SEXTANT_TEST_URI names. What
// must break members always starts a set of its own.

var shared struct {
	once sync.Once
	set  *replset.Set
	uri  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.set != nil {
		shared.set.Close()
	}
	os.Exit(code)
}

// sharedURI is the deployment of the tests that break nothing.
func sharedURI(t testing.TB) string {
	t.Helper()
	uri, err := startShared()
	if err != nil {
		t.Fatal(err)
	}
	return uri
}

// uri is sharedURI for examples.
func uri() string {
	uri, err := startShared()
	if err != nil {
		panic(err)
	}
	return uri
}

func startShared() (string, error) {
	shared.once.Do(func() {
		if shared.uri = os.Getenv("SEXTANT_TEST_URI"); shared.uri != "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		// Nothing is to be elected here, however long a busy machine makes the primary silent.
		o := replset.Options{Members: 3, ElectionTimeout: 10 * time.Second}
		if shared.set, shared.err = replset.Start(ctx, o); shared.err == nil {
			shared.uri = shared.set.URI()
			_, shared.err = shared.set.WaitPrimary(ctx)
		}
	})
	return shared.uri, shared.err
}

// testContext ends long before the test would be killed, so that a hang names the call that hangs.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// connect opens a client, after the edits to its configuration, and closes it at the end of the test.
func connect(t testing.TB, uri string, edits ...func(*sextant.Config)) *sextant.Client {
	t.Helper()
	cfg, err := sextant.ParseURI(uri)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(cfg)
	}
	cl, err := sextant.ConnectConfig(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := cl.Close(ctx); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return cl
}

var names atomic.Int64

// fresh is a collection of its own for the test, dropped at its end.
func fresh[T any](t testing.TB, cl *sextant.Client) *sextant.Collection[T] {
	t.Helper()
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, t.Name()))
	c := sextant.CollectionOf[T](cl.Database("sextant_test"), fmt.Sprintf("%.40s_%d", name, names.Add(1)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Drop(ctx); err != nil {
			t.Errorf("dropping %s: %v", c.Namespace(), err)
		}
	})
	return c
}

// must fails the test on an error, which is then the first line that it prints.
func must[V any](t testing.TB) func(V, error) V {
	t.Helper()
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// seen records the commands that a client sent.
type seen struct {
	mu       sync.Mutex
	commands []sentCommand
}

type sentCommand struct {
	name, server string
	body         bson.Raw
}

func (s *seen) monitor() *event.Monitor {
	return &event.Monitor{CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.commands = append(s.commands, sentCommand{e.Name, e.Server, append(bson.Raw(nil), e.Command...)})
	}}
}

// take returns the commands of the name since the last take, and forgets all.
func (s *seen) take(name string) []sentCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []sentCommand
	for _, c := range s.commands {
		if c.name == name {
			out = append(out, c)
		}
	}
	s.commands = nil
	return out
}

// show prints a document as both sides of a mismatch are printed.
func show(doc any) string {
	b, err := bson.MarshalExtJSON(doc, false, false)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// same fails the test unless both documents are equal, field by field and in order.
func same(t testing.TB, got, want any) {
	t.Helper()
	if g, w := show(got), show(want); g != w {
		t.Errorf("\n got %s\nwant %s", g, w)
	}
}

// wide is a latency window that takes in every member, so that chance alone decides.
func wide() *time.Duration { return new(10 * time.Second) }

// embedded starts a set of the test's own.
func embedded(t testing.TB, members int) *replset.Set {
	t.Helper()
	return replset.Run(t, replset.Options{Members: members})
}
