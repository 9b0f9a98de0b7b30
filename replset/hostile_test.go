package replset

import (
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
)

// knock opens a connection to member 0, writes something, and returns it open.
func knock(t testing.TB, s *Set, b []byte) net.Conn {
	t.Helper()
	nc, err := s.opt.Network.Dial(t.Context(), "tcp", s.Member(0).Addr())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = nc.Write(b)
	return nc
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// lines are those of a log that tell of something.
func lines(log *logBook, of string) (found []string) {
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, of) {
			found = append(found, line)
		}
	}
	return found
}

// What one host does wrong again and again is told at once, and then every ten seconds as a number.
func TestRepeatedRubbishIsToldOnceAndThenCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBook
		s := bubbleSet(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer s.Close()
		rubbish := func(n int) {
			for i := range n {
				nc := knock(t, s, wire.AppendHeader(nil, wire.Header{Length: int32(wire.MaxMessage + 1 + i), OpCode: wire.OpMsg}))
				_, _ = io.ReadAll(nc)
				nc.Close()
			}
			synctest.Wait()
		}
		want := func(when string, n int, newest ...string) {
			t.Helper()
			told := lines(&log, "connection dropped")
			if len(told) != n {
				t.Fatalf("%s: %d lines, want %d:\n%s", when, len(told), n, strings.Join(told, ""))
			}
			for _, text := range newest {
				if !strings.Contains(told[n-1], text) {
					t.Errorf("%s: no %q in %s", when, text, told[n-1])
				}
			}
		}
		rubbish(500)
		want("at once", 1, "level=WARN", "remote=client:", "48000001")
		knock(t, s, wire.AppendHeader(nil, wire.Header{Length: 16, OpCode: 9999})).Close()
		synctest.Wait()
		want("another kind", 2, "9999")
		time.Sleep(complaintPause)
		want("after a while", 3, "again", "times=499")
		rubbish(3)
		want("it goes on", 3)
		time.Sleep(complaintPause)
		want("after a while more", 4, "times=3")
		time.Sleep(complaintPause)
		rubbish(2)
		want("after a quiet while", 5)
		s.Close()
		want("at the end", 6, "times=1")
	})
}

const complaintPause = 10*time.Second + time.Millisecond

// A thousand that promise the largest message and send half a kilobyte cost little for as long as they stay, the others
// are served, and nothing is left when they go.
func TestThousandHalfMessagesAtOnceCostLittle(t *testing.T) {
	const strangers = 1000
	var log logBook
	s := Run(t, Options{Network: NewMemoryNetwork(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	good := dialRaw(t, s, 0, "app")
	goroutines, before := runtime.NumGoroutine(), heap()
	half := append(wire.AppendHeader(nil, wire.Header{Length: wire.MaxMessage, OpCode: wire.OpMsg}), make([]byte, 500)...)
	open := make([]net.Conn, strangers)
	for i := range open {
		open[i] = knock(t, s, half)
	}
	connections := func() int64 {
		n, _ := good.must(t, "admin", bson.D{{Key: "serverStatus", Value: 1}}).Lookup("connections", "current").AsInt64OK()
		return n
	}
	within(t, 10*time.Second, "all to be in", func() bool { return connections() == strangers+1 })
	if grown := heap() - before; grown > 40<<20 {
		t.Errorf("%d half messages of half a kilobyte took %d MB", strangers, grown>>20)
	}
	good.must(t, "t", insert(1, nil))
	for _, nc := range open {
		nc.Close()
	}
	clear(open)
	within(t, 10*time.Second, "all to be gone", func() bool { return connections() == 1 && runtime.NumGoroutine() <= goroutines })
	if told := lines(&log, "connection dropped"); len(told) != 1 {
		t.Errorf("%d lines tell of them, the first being\n%.600s", len(told), strings.Join(told, ""))
	}
	if grown := heap() - before; grown > 10<<20 {
		t.Errorf("when they were gone, %d MB were left", grown>>20)
	}
}

// compressed is an OP_COMPRESSED that claims to hold a message of one kind and size.
func compressed(original int32, size int, id compress.ID, packed []byte) []byte {
	b := wire.AppendHeader(nil, wire.Header{RequestID: 7, OpCode: wire.OpCompressed})
	b = binary.LittleEndian.AppendUint32(b, uint32(original))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = append(append(b, byte(id)), packed...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

// bomb is a ping of so many bytes, most of them zero, packed.
func bomb(t testing.TB, id compress.ID, size int) (packed []byte, unpacked int) {
	t.Helper()
	msg := message(0, bodySection(t, bson.D{{Key: "ping", Value: 1}, {Key: "comment", Value: bson.Binary{Data: make([]byte, size)}}, {Key: "$db", Value: "t"}}))[wire.HeaderLen:]
	packed, err := compress.New(9).Append(nil, msg, id)
	if err != nil {
		t.Fatal(err)
	}
	return packed, len(msg)
}

func TestCompressionBombsCostTheConnectionAndLittleMemory(t *testing.T) {
	var log logBook
	s := Run(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	good := dialRaw(t, s, 0, "app")
	good.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
	messages := map[string][]byte{"no compressor": compressed(wire.OpMsg, 100, 77, []byte("x"))}
	for id := compress.Noop; id <= compress.Zstd; id++ {
		packed, size := bomb(t, id, 100<<10)
		nested, err := compress.New(9).Append(nil, compressed(wire.OpMsg, size, id, packed)[wire.HeaderLen:], id)
		if err != nil {
			t.Fatal(err)
		}
		for how, msg := range map[string][]byte{
			"says less":      compressed(wire.OpMsg, size-1, id, packed),
			"says more":      compressed(wire.OpMsg, size+1, id, packed),
			"says the most":  compressed(wire.OpMsg, wire.MaxMessage-wire.HeaderLen, id, packed),
			"says too much":  compressed(wire.OpMsg, wire.MaxMessage, id, packed),
			"says 2 GB":      compressed(wire.OpMsg, 1<<31-1, id, packed),
			"says -1":        compressed(wire.OpMsg, -1, id, packed),
			"says nothing":   compressed(wire.OpMsg, 0, id, packed),
			"is cut short":   compressed(wire.OpMsg, size, id, packed[:len(packed)/2]),
			"is nested":      compressed(wire.OpCompressed, len(packed)+9, id, nested),
			"is no message":  compressed(9999, size, id, packed),
			"holds nothing":  compressed(wire.OpMsg, size, id, nil),
			"holds a header": compressed(wire.OpMsg, size, id, packed)[:20],
		} {
			messages[id.String()+" "+how] = msg
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, msg := range messages {
		binary.LittleEndian.PutUint32(msg, uint32(len(msg)))
		nc := knock(t, s, msg)
		_ = nc.SetReadDeadline(time.Now().Add(5 * time.Second))
		if n, err := nc.Read(make([]byte, 100)); err == nil || isTimeout(err) {
			t.Errorf("%s: read %d bytes, %v; want the connection closed", name, n, err)
		}
		nc.Close()
	}
	runtime.ReadMemStats(&after)
	if spent := (after.TotalAlloc - before.TotalAlloc) / uint64(len(messages)); spent > 4<<20 {
		t.Errorf("a message of at most 100 KB cost %d KB on average", spent>>10)
	}
	good.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
	if strings.Contains(log.String(), "panic") {
		t.Errorf("something panicked:\n%s", log.String())
	}
}

// Many messages of a few kilobytes that unpack to the largest that is allowed come at once, and are good ones. What they
// unpack to is bounded by the budget of large messages.
func TestManyBombsAtOnceTakeTurns(t *testing.T) {
	s := Run(t)
	good := dialRaw(t, s, 0, "app")
	packed, size := bomb(t, compress.Zstd, 15<<20)
	msg := compressed(wire.OpMsg, size, compress.Zstd, packed)
	if len(msg) > 16<<10 {
		t.Fatalf("a bomb of %d bytes", len(msg))
	}
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // or what is measured is garbage
	before, most := heap(), 0
	var crew sync.WaitGroup
	for range 40 {
		crew.Go(func() {
			nc := knock(t, s, msg)
			defer nc.Close()
			_ = nc.SetReadDeadline(time.Now().Add(60 * time.Second))
			head := make([]byte, wire.HeaderLen)
			if _, err := io.ReadFull(nc, head); err != nil {
				t.Errorf("a good bomb was not answered: %v", err)
			}
		})
	}
	done := make(chan struct{})
	go func() { crew.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(5 * time.Millisecond):
			most = max(most, heap()-before)
			good.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
		}
	}
	t.Logf("40 bombs of 15 MB took up to %d MB at once", most>>20)
	if limit := 3 * 2 * wire.MaxMessage; most > limit {
		t.Errorf("40 bombs of 15 MB took up to %d MB at once, more than %d", most>>20, limit>>20)
	}
}

// Who asks for much and does not read costs the others nothing: the set keeps no more for them than its budget, and tells it.
func TestManyWhoNeverReadTheirAnswersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logBook
		s := bubbleSet(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer s.Close()
		p := primaryIndex(t, s)
		good := dialRaw(t, s, p, "app")
		defer good.nc.Close()
		good.must(t, "t", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: strings.Repeat("x", 12<<20)}}}}})
		var strangers []*raw
		if err := s.AwaitReplication(t.Context()); err != nil { // the other members' answers take room too
			t.Fatal(err)
		}
		const fit = 7
		for range 12 {
			c := dialRaw(t, s, p, "stranger")
			defer c.nc.Close()
			if err := c.send(0, "t", bson.D{{Key: "find", Value: "c"}}); err != nil {
				t.Fatal(err)
			}
			strangers = append(strangers, c)
		}
		time.Sleep(3 * time.Second)
		good.must(t, "t", bson.D{{Key: "find", Value: "c"}})
		answered := 0
		for _, c := range strangers {
			if _, err := c.receive(); err == nil {
				answered++
			}
		}
		if answered != fit && answered != fit-1 { // while the good one is answered there is room for one fewer
			t.Errorf("%d of %d slow readers got their answer in the end, and there is room for %d", answered, len(strangers), fit)
		}
		if told := lines(&log, "did not read its answer"); len(told) != 1 {
			t.Errorf("%d lines tell of them:\n%s", len(told), strings.Join(told, ""))
		}
	})
}

// One byte a second, by fifty at once: each gets its answer, and nobody else waits.
func TestSlowBytesOfManyAreAnsweredAndHinderNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbleSet(t, Options{})
		defer s.Close()
		ping := message(0, bodySection(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "t"}}))
		var crew sync.WaitGroup
		for i := range 50 {
			crew.Go(func() {
				nc := knock(t, s, nil)
				defer nc.Close()
				for _, b := range ping {
					if _, err := nc.Write([]byte{b}); err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Second + time.Duration(i)*time.Millisecond)
				}
				if _, err := io.ReadFull(nc, make([]byte, wire.HeaderLen)); err != nil {
					t.Errorf("slow client %d got no answer: %v", i, err)
				}
			})
		}
		good := dialRaw(t, s, 0, "app")
		defer good.nc.Close()
		for range 20 {
			time.Sleep(time.Second)
			begun := time.Now()
			good.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
			if took := time.Since(begun); took != 0 {
				t.Errorf("a ping beside them took %v", took)
			}
		}
		crew.Wait()
	})
}
