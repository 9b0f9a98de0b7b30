package conn

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// echo is a socket that answers each message at once, without a goroutine, so that what RoundTrip costs can be counted.
type echo struct {
	net.Conn
	reply  []byte
	unread int
}

func (e *echo) Write(b []byte) (int, error) {
	copy(e.reply[8:12], b[4:8])
	e.unread = len(e.reply)
	return len(b), nil
}

func (e *echo) Read(b []byte) (int, error) {
	n := copy(b, e.reply[len(e.reply)-e.unread:])
	e.unread -= n
	return n, nil
}

func (e *echo) SetDeadline(time.Time) error { return nil }

func echoed() *Conn {
	c := newConn(&echo{reply: message(1, 0, 0, doc("ok", 1.0))}, "db1:27017")
	c.phase = ""
	return c
}

func TestRoundTripWithoutALimitDoesNotAllocate(t *testing.T) {
	c := echoed()
	request := message(1, 0, 0, doc("ping", 1))
	n := testing.AllocsPerRun(200, func() {
		msg := append(c.Buffer(), request...)
		binary.LittleEndian.PutUint32(msg[4:], uint32(c.NextRequestID()))
		if _, err := c.RoundTrip(context.Background(), msg); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	c := echoed()
	request := message(1, 0, 0, doc("ping", 1))
	run := func(ctx context.Context) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.RoundTrip(ctx, append(c.Buffer(), request...)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("no limit", run(context.Background()))
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.Run("deadline", run(ctx))
}
