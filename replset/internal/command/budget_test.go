package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/replset/internal/repl"
)

// taking takes n bytes for a share on a goroutine, and says whether it is done.
func taking(ctx context.Context, s *share, n int) func() (bool, error) {
	done := make(chan error, 1)
	go func() { done <- s.take(ctx, n) }()
	return func() (bool, error) {
		synctest.Wait()
		select {
		case err := <-done:
			return true, err
		default:
			return false, nil
		}
	}
}

func TestLargeMessagesWaitForRoomInTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b budget
		first, second, third := b.begin(wire.MaxMessage), b.begin(wire.MaxMessage), b.begin(wire.MaxMessage)
		for _, s := range []*share{first, second} {
			if err := s.take(t.Context(), wire.MaxMessage-1); err != nil {
				t.Fatal(err)
			}
		}
		waits := taking(t.Context(), third, 100)
		if ok, _ := waits(); ok || !b.crowded() {
			t.Fatal("there was room for a third message")
		}
		if err := first.take(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		first.done()
		if ok, _ := waits(); ok {
			t.Fatal("a message that was read and is being answered gave its room away")
		}
		first.end()
		if ok, err := waits(); !ok || err != nil {
			t.Fatalf("the first has ended, and the third waits: %v", err)
		}
		second.end()
		third.end()
		third.end()
		if b.read != 0 || b.answered != 0 || len(b.reading) != 0 || b.crowded() {
			t.Errorf("at the end %d and %d bytes are taken, by %d", b.read, b.answered, len(b.reading))
		}
	})
}

// All are half read and there is no room: the one that began first goes on all the same.
func TestFirstOfTheMessagesAlwaysGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b budget
		shares := make([]*share, 4)
		for i := range shares {
			shares[i] = b.begin(wire.MaxMessage)
			if err := shares[i].take(t.Context(), messageBudget/4); err != nil {
				t.Fatal(err)
			}
		}
		last := taking(t.Context(), shares[3], 1)
		if ok, _ := last(); ok {
			t.Fatal("the last went on")
		}
		for _, s := range shares[:3] {
			if err := s.take(t.Context(), wire.MaxMessage-messageBudget/4); err != nil {
				t.Fatal(err)
			}
			if b.read+b.answered > 2*messageBudget {
				t.Errorf("%d bytes are taken", b.read+b.answered)
			}
			s.done()
			s.end()
		}
		if ok, err := last(); !ok || err != nil {
			t.Errorf("the last waits: %v", err)
		}
	})
}

func TestWaitingForRoomEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b budget
		a, o := b.begin(messageBudget), b.begin(messageBudget)
		if err := a.take(t.Context(), messageBudget); err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		waits := taking(ctx, o, 1)
		if ok, _ := waits(); ok {
			t.Fatal("it did not wait")
		}
		cancel(gone)
		if ok, err := waits(); !ok || err != gone {
			t.Errorf("%v, %v", ok, err)
		}
		if b.crowded() {
			t.Error("somebody waits")
		}
		o.end()
		a.end()
	})
}

// A client that stops in the middle of a large message may do so for as long as it harms nobody. When another waits for
// room, it is dropped soon.
func TestHalfALargeMessageIsGivenUpForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		m := &Member{}
		c := &Conn{m: m, nc: far, br: bufio.NewReader(far), ctx: t.Context()}
		read := make(chan error, 1)
		go func() {
			_, err := c.readLarge(make([]byte, wire.HeaderLen), wire.MaxMessage)
			read <- err
		}()
		if _, err := near.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		other := m.messages.begin(2 * messageBudget)
		begun := time.Now()
		waits := taking(t.Context(), other, messageBudget)
		if ok, _ := waits(); ok {
			t.Fatal("there was room")
		}
		if err := <-read; !errors.Is(err, errTooSlow) {
			t.Errorf("the half message ends with %v", err)
		}
		c.free()
		if ok, err := waits(); !ok || err != nil || time.Since(begun) > 2*time.Second {
			t.Errorf("after %v there is room: %v, %v", time.Since(begun), ok, err)
		}
		other.end()
	})
}

func TestPanicOfTheOwnerEndsItsMemberAndNotTheProcess(t *testing.T) {
	var log bytes.Buffer
	m := loggedMember(t, slog.New(slog.NewTextHandler(&log, nil)))
	if err := m.look(t.Context(), func(*repl.Node) { panic("a mistake") }); err == nil {
		t.Error("the owner answered")
	}
	select {
	case <-m.ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the member goes on")
	}
	m.Kill()
	if text := log.String(); !strings.Contains(text, "a mistake") || !strings.Contains(text, "budget_test.go") {
		t.Errorf("logged: %s", text)
	}
	if !m.Ended() || !m.crashed.Load() {
		t.Error("it did not end as by a crash")
	}
}
