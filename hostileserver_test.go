package sextant_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// villain is a server on a network in memory. It answers what it is greeted with by hello, once that is said, and anything
// else by whatever bytes the script writes.
type villain struct {
	hello  bson.D
	script func(nc net.Conn, request int32)
	open   sync.WaitGroup
}

const villainAddr = "villain:27017"

var plainServer = bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true}, {Key: "maxWireVersion", Value: 21},
	{Key: "compression", Value: bson.A{"zstd", "snappy", "zlib"}}, {Key: "ok", Value: 1}}

// start serves until the test ends its listener.
func (v *villain) start(t *testing.T, network *replset.MemoryNetwork) net.Listener {
	t.Helper()
	l := must[net.Listener](t)(network.Listen(t.Context(), villainAddr))
	v.open.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			v.open.Go(func() { defer nc.Close(); v.converse(t, nc) })
		}
	})
	return l
}

func (v *villain) converse(t *testing.T, nc net.Conn) {
	for {
		head := make([]byte, wire.HeaderLen)
		if _, err := io.ReadFull(nc, head); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(head)-wire.HeaderLen)
		if _, err := io.ReadFull(nc, body); err != nil {
			return
		}
		request := int32(binary.LittleEndian.Uint32(head[4:]))
		code := int32(binary.LittleEndian.Uint32(head[12:]))
		name := string(wire.CommandName(append(head, body...)))
		if code == wire.OpMsg && (name == "hello" || name == "isMaster") {
			if _, err := nc.Write(answer(t, request, v.hello)); err != nil {
				return
			}
			continue
		}
		v.script(nc, request)
		if name != "ping" {
			return
		}
	}
}

// answer is an OP_MSG.
func answer(t *testing.T, request int32, d bson.D) []byte {
	b, start := wire.AppendMsgStart(nil, 1, request, 0)
	return wire.EndMsg(append(b, must[[]byte](t)(bson.Marshal(d))...), start)
}

// packedAnswer is an OP_COMPRESSED that says it holds so many bytes of a message.
func packedAnswer(request, original int32, size int, id compress.ID, packed []byte) []byte {
	b := wire.AppendHeader(nil, wire.Header{RequestID: 1, ResponseTo: request, OpCode: wire.OpCompressed})
	b = binary.LittleEndian.AppendUint32(b, uint32(original))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = append(append(b, byte(id)), packed...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

// Whatever comes in answer to a command costs that connection and one error that names the server. The client goes on,
// memory stays bounded, and nothing is left at the end.
// On fake time, since the monitor takes half a second to believe in the server again.
func TestServerThatSendsRubbishCostsAnErrorEach(t *testing.T) { synctest.Test(t, sendRubbish) }

func sendRubbish(t *testing.T) {
	good := bson.D{{Key: "ok", Value: 1}}
	big := answer(t, 0, bson.D{{Key: "x", Value: bson.Binary{Data: make([]byte, 2<<20)}}, {Key: "ok", Value: 1}})[wire.HeaderLen:]
	type trick struct {
		name  string
		bytes func(request int32) []byte
	}
	tricks := []trick{
		{"http", func(int32) []byte { return []byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") }},
		{"half a header", func(r int32) []byte { return answer(t, r, good)[:7] }},
		{"half an answer", func(r int32) []byte { return answer(t, r, good)[:20] }},
		{"nothing", func(int32) []byte { return nil }},
		{"another's answer", func(r int32) []byte { return answer(t, r+1, good) }},
		{"unasked stream", func(r int32) []byte { b := answer(t, r, good); b[16] = byte(wire.MoreToCome); return b }},
		{"unknown flag", func(r int32) []byte { b := answer(t, r, good); b[16] = 0x40; return b }},
		{"48 MB to come", func(r int32) []byte {
			return wire.AppendHeader(nil, wire.Header{Length: wire.MaxMessage, ResponseTo: r, OpCode: wire.OpMsg})
		}},
		{"2 GB to come", func(r int32) []byte {
			return wire.AppendHeader(nil, wire.Header{Length: 1<<31 - 1, ResponseTo: r, OpCode: wire.OpMsg})
		}},
		{"negative length", func(r int32) []byte {
			return wire.AppendHeader(nil, wire.Header{Length: -1, ResponseTo: r, OpCode: wire.OpMsg})
		}},
		{"unknown opcode", func(r int32) []byte {
			return wire.AppendHeader(nil, wire.Header{Length: 16, ResponseTo: r, OpCode: 77})
		}},
		{"no document", func(r int32) []byte { b := answer(t, r, good); copy(b[21:], "\xff\xff\xff\x7f"); return b }},
		{"another section", func(r int32) []byte { b := answer(t, r, good); b[20] = 9; return b }},
	}
	for id := compress.Noop; id <= compress.Zstd; id++ {
		packed := must[[]byte](t)(compress.New(9).Append(nil, big, id))
		nested := packedAnswer(0, wire.OpMsg, len(big), id, packed)[wire.HeaderLen:]
		nested = must[[]byte](t)(compress.New(9).Append(nil, nested, id))
		for how, size := range map[string]int{"says less": len(big) - 1, "says more": len(big) + 1, "says the most": wire.MaxMessage - wire.HeaderLen,
			"says too much": wire.MaxMessage * 2, "says 2 GB": 1<<31 - 1, "says -1": -1, "says nothing": 0} {
			tricks = append(tricks, trick{id.String() + " " + how, func(r int32) []byte { return packedAnswer(r, wire.OpMsg, size, id, packed) }})
		}
		tricks = append(tricks, trick{id.String() + " is nested", func(r int32) []byte {
			return packedAnswer(r, wire.OpCompressed, len(packed)+9, id, nested)
		}}, trick{id.String() + " is cut short", func(r int32) []byte { return packedAnswer(r, wire.OpMsg, len(big), id, packed[:len(packed)/2]) }})
	}
	tricks = append(tricks, trick{"another compressor", func(r int32) []byte { return packedAnswer(r, wire.OpMsg, 10, 66, []byte("x")) }})
	network := replset.NewMemoryNetwork()
	var mu sync.Mutex // guards next
	var next func(int32) []byte
	v := &villain{hello: plainServer, script: func(nc net.Conn, request int32) {
		mu.Lock()
		f := next
		mu.Unlock()
		if f == nil {
			_, _ = nc.Write(answer(t, request, good))
			return
		}
		_, _ = nc.Write(f(request))
		nc.Close()
	}}
	goroutines := runtime.NumGoroutine()
	l := v.start(t, network)
	cl := connect(t, "mongodb://"+villainAddr+"/?directConnection=true&retryReads=false&compressors=zstd,snappy,zlib", func(c *sextant.Config) {
		c.Dial, c.HeartbeatFrequency, c.ServerMonitoringMode = network.Dial, time.Hour, "poll"
	})
	run := func() error { return pingAdmin(cl) }
	trickOne := func(f func(int32) []byte) { mu.Lock(); next = f; mu.Unlock() }
	if err := run(); err != nil {
		t.Fatal(err)
	}
	before := heapOf()
	for _, tr := range tricks {
		trickOne(tr.bytes)
		err := run()
		if err == nil || !mongoerr.IsNetwork(err) || !strings.Contains(err.Error(), villainAddr) || strings.ContainsAny(err.Error(), "\x00\r") {
			t.Errorf("%s: %v", tr.name, err)
		}
		trickOne(nil)
		if err := run(); err != nil {
			t.Fatalf("after %s: %v", tr.name, err)
		}
		if grown := heapOf() - before; grown > 20<<20 {
			t.Errorf("after %s %d MB are held", tr.name, grown>>20)
		}
	}
	if err := cl.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	l.Close()
	v.open.Wait()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines before, %d after", goroutines, runtime.NumGoroutine())
		}
	}
}

func pingAdmin(cl *sextant.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := cl.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
	return err
}

func heapOf() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A server that sends its answer a byte a minute is waited for until the context ends, and no longer.
func TestServerOfSlowBytesKeepsNobodyLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := replset.NewMemoryNetwork()
		v := &villain{hello: plainServer, script: func(nc net.Conn, request int32) {
			for _, b := range answer(t, request, bson.D{{Key: "ok", Value: 1}}) {
				if _, err := nc.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Minute)
			}
		}}
		l := v.start(t, network)
		cl := connect(t, "mongodb://"+villainAddr+"/?directConnection=true", func(c *sextant.Config) { c.Dial = network.Dial })
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			begun := time.Now()
			_, err := cl.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
			if took := time.Since(begun); took != 5*time.Second || !mongoerr.IsTimeout(err) {
				t.Errorf("%v after %v", err, took)
			}
			cancel()
		}
		if err := cl.Close(t.Context()); err != nil {
			t.Error(err)
		}
		l.Close()
		v.open.Wait()
	})
}

// What a hello must not be able to do: make a client keep or start much. And the log tells the reason once, not with each check.
func TestServerOfAbsurdHellosIsToldOfOnce(t *testing.T) {
	var hosts bson.A
	for i := range 10_000 {
		hosts = append(hosts, fmt.Sprintf("h%d:27017", i))
	}
	set := append(bson.D{{Key: "setName", Value: "rs0"}}, plainServer...)
	for want, hello := range map[string]bson.D{
		"names 10000 members":    append(bson.D{{Key: "hosts", Value: hosts}}, set...),
		"hello has":              append(bson.D{{Key: "x", Value: bson.Binary{Data: make([]byte, 1<<20)}}}, plainServer...),
		"no; not you":            {{Key: "ok", Value: 0}, {Key: "errmsg", Value: "no; not you"}, {Key: "code", Value: 13}},
		"wire version":           {{Key: "isWritablePrimary", Value: true}, {Key: "minWireVersion", Value: 9000}, {Key: "maxWireVersion", Value: 9001}, {Key: "ok", Value: 1}},
		"reports wire version 0": {{Key: "ok", Value: 1}, {Key: "setName", Value: 5}, {Key: "hosts", Value: "all"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log lockedBuffer
			network := replset.NewMemoryNetwork()
			v := &villain{hello: hello, script: func(nc net.Conn, request int32) { nc.Close() }}
			l := v.start(t, network)
			goroutines := runtime.NumGoroutine()
			cl := connect(t, "mongodb://"+villainAddr+"/", func(c *sextant.Config) {
				c.Dial, c.HeartbeatFrequency, c.ServerSelectionTimeout = network.Dial, time.Second, 30*time.Second
				c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			err := pingAdmin(cl)
			if err == nil || !mongoerr.IsSelection(err) {
				t.Errorf("%s: %v", want, err)
			} else if !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want it to say %q", err, want)
			}
			if n := runtime.NumGoroutine() - goroutines; n > 20 {
				t.Errorf("%s: the client has %d goroutines", want, n)
			}
			if n := strings.Count(log.String(), "Topology description changed"); n > 3 {
				t.Errorf("%s: %d changes were told while nothing changed\n%.3000s", want, n, log.String())
			}
			if err := cl.Close(t.Context()); err != nil {
				t.Error(err)
			}
			l.Close()
			v.open.Wait()
		})
	}
}
