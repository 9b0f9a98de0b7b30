package operation_test

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/internal/wire"
)

// canned is a server that answers hello, then every message with one reply, and allocates nothing while it does.
func canned(sock net.Conn) {
	defer sock.Close()
	hello := cannedReply(append(helloOf("a:1", "primary"), bson.E{Key: "ok", Value: 1.0}))
	reply := cannedReply(okReply(bson.E{Key: "n", Value: 1},
		bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 1, I: 1}}}}))
	buf := make([]byte, 64<<10)
	for {
		if _, err := io.ReadFull(sock, buf[:wire.HeaderLen]); err != nil {
			return
		}
		n := int(binary.LittleEndian.Uint32(buf))
		if _, err := io.ReadFull(sock, buf[wire.HeaderLen:n]); err != nil {
			return
		}
		out := reply
		if c := buf[wire.HeaderLen+4+1+4+1]; c == 'h' || c == 'i' && buf[wire.HeaderLen+4+1+4+2] == 's' {
			out = hello
		}
		copy(out[8:12], buf[4:8])
		if _, err := sock.Write(out); err != nil {
			return
		}
	}
}

func cannedReply(d bson.D) []byte {
	out, start := wire.AppendMsgStart(nil, 1, 0, 0)
	out, err := bson.Append(out, d)
	if err != nil {
		panic(err)
	}
	return wire.EndMsg(out, start)
}

// cannedExecutor runs against such a server; with a log, of which nothing is wanted at present, or none.
func cannedExecutor(tb testing.TB, log bool) *operation.Executor {
	tb.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go canned(server)
		return client, nil
	}
	cfg := cluster.Config{Topology: topology.Config{Seeds: []string{"a:1"}}, MonitoringMode: cluster.ModePoll}
	cfg.Conn = conn.Options{Dial: dial, Metadata: conn.ClientMetadata("bench")}
	o := operation.Config{RetryReads: true, RetryWrites: true}
	if log {
		cfg.Log = &cluster.Log{Wants: func(string, slog.Level) bool { return false }, Take: func(time.Time, any) { tb.Error("logged") }}
		o.Log = &operation.Log{Wants: func(context.Context) bool { return false }}
	}
	o.Cluster = cluster.New(cfg)
	tb.Cleanup(func() { o.Cluster.Close(context.Background()) })
	return operation.New(o)
}

func TestRunAllocatesNextToNothing(t *testing.T) {
	for _, log := range []bool{false, true} {
		x := cannedExecutor(t, log)
		for _, op := range []*operation.Op{find(), insert()} {
			op.Decode = func(bson.Raw, operation.Result) error { return nil }
			ctx := context.Background()
			n := 2.0
			for try := 0; n > 1 && try < 3; try++ { // on a busy machine the collector empties pools meanwhile
				n = testing.AllocsPerRun(200, func() {
					if err := x.Run(ctx, op); err != nil {
						t.Fatal(err)
					}
				})
			}
			if n > 1 { // 0, but for the race detector's
				t.Errorf("%s, with a log %v: %v allocations", op.Name, log, n)
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	for _, op := range []*operation.Op{find(), insert()} {
		op.Decode = func(bson.Raw, operation.Result) error { return nil }
		benchmarkRun(b, op.Name, cannedExecutor(b, false), op)
		benchmarkRun(b, op.Name+", log off", cannedExecutor(b, true), op)
	}
}

func benchmarkRun(b *testing.B, name string, x *operation.Executor, op *operation.Op) {
	b.Run(name, func(b *testing.B) {
		ctx := context.Background()
		b.ReportAllocs()
		for b.Loop() {
			if err := x.Run(ctx, op); err != nil {
				b.Fatal(err)
			}
		}
	})
}
