package replset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// raw is a client that knows the wire and nothing else.
type raw struct {
	nc    net.Conn
	br    *bufio.Reader
	id    int32
	lastR wire.Msg
}

// dialRaw connects to a member and, with a name, introduces itself as that application.
func dialRaw(t testing.TB, s *Set, i int, app string) *raw {
	t.Helper()
	c, err := tryDial(t.Context(), s, i, app)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.nc.Close() })
	return c
}

func tryDial(ctx context.Context, s *Set, i int, app string) (*raw, error) {
	nc, err := s.opt.Network.Dial(ctx, "tcp", s.Member(i).Addr())
	if err != nil {
		return nil, err
	}
	return greet(nc, app)
}

// greet makes a client of a connection and, with a name, introduces it as that application.
func greet(nc net.Conn, app string) (*raw, error) {
	c := &raw{nc: nc, br: bufio.NewReader(nc)}
	if app == "" {
		return c, nil
	}
	_, err := c.run("admin", bson.D{{Key: "hello", Value: 1}, {Key: "helloOk", Value: true}, {Key: "client", Value: bson.D{
		{Key: "application", Value: bson.D{{Key: "name", Value: app}}},
		{Key: "driver", Value: bson.D{{Key: "name", Value: "raw"}, {Key: "version", Value: "1"}}},
		{Key: "os", Value: bson.D{{Key: "type", Value: "test"}}},
	}}})
	return c, err
}

// run sends a command and returns the reply; an error reply is a *mongoerr.Error.
func (c *raw) run(db string, cmd bson.D) (bson.Raw, error) {
	if err := c.send(0, db, cmd); err != nil {
		return nil, err
	}
	return c.receive()
}

func (c *raw) send(flags uint32, db string, cmd bson.D) error {
	body, err := bson.Marshal(append(append(bson.D{}, cmd...), bson.E{Key: "$db", Value: db}))
	if err != nil {
		return err
	}
	c.id++
	msg, start := wire.AppendMsgStart(nil, c.id, 0, flags)
	_, err = c.nc.Write(wire.EndMsg(append(msg, body...), start))
	return err
}

func (c *raw) receive() (bson.Raw, error) {
	b, err := c.read()
	if err != nil {
		return nil, err
	}
	m, err := wire.ParseMsg(b)
	if err != nil {
		return nil, err
	}
	c.lastR = m
	if e := mongoerr.FromReply(m.Body); e != nil {
		return m.Body, e
	}
	return m.Body, nil
}

func (c *raw) read() ([]byte, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(20 * time.Second))
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c.br, head); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head)
	b := append(head, make([]byte, n-wire.HeaderLen)...)
	_, err := io.ReadFull(c.br, b[wire.HeaderLen:])
	return b, err
}

// query sends a command by OP_QUERY, as old clients open a connection.
func (c *raw) query(db string, cmd bson.D) (bson.Raw, int32, error) {
	body, err := bson.Marshal(cmd)
	if err != nil {
		return nil, 0, err
	}
	c.id++
	var b bytes.Buffer
	b.Write(wire.AppendHeader(nil, wire.Header{RequestID: c.id, OpCode: wire.OpQuery}))
	b.Write([]byte{4, 0, 0, 0})
	b.WriteString(db + ".$cmd\x00")
	b.Write([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	b.Write(body)
	msg := b.Bytes()
	binary.LittleEndian.PutUint32(msg, uint32(len(msg)))
	if _, err := c.nc.Write(msg); err != nil {
		return nil, 0, err
	}
	in, err := c.read()
	if err != nil {
		return nil, 0, err
	}
	if op := binary.LittleEndian.Uint32(in[12:]); op != wire.OpReply {
		return nil, 0, fmt.Errorf("answered with operation %d", op)
	}
	return bson.Raw(in[36:]), int32(binary.LittleEndian.Uint32(in[16:])), nil
}

// must runs a command that has to succeed.
func (c *raw) must(t testing.TB, db string, cmd bson.D) bson.Raw {
	t.Helper()
	r, err := c.run(db, cmd)
	if err != nil {
		t.Fatalf("%v: %v", cmd[0].Key, err)
	}
	return r
}

// fails runs a command that has to be refused with a code.
func (c *raw) fails(t testing.TB, code int32, db string, cmd bson.D) *mongoerr.Error {
	t.Helper()
	_, err := c.run(db, cmd)
	var e *mongoerr.Error
	if !errors.As(err, &e) || !e.HasCode(code) {
		t.Fatalf("%v: got %v, want code %d", cmd[0].Key, err, code)
	}
	return e
}

func insert(id any, wc bson.D) bson.D {
	d := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}}
	if wc != nil {
		d = append(d, bson.E{Key: "writeConcern", Value: wc})
	}
	return d
}

func majority() bson.D { return bson.D{{Key: "w", Value: "majority"}} }
func w(n int) bson.D   { return bson.D{{Key: "w", Value: n}} }

// ids returns the _ids of t.c on a member, sorted.
func (c *raw) ids(t testing.TB) []string {
	t.Helper()
	r := c.must(t, "t", bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "batchSize", Value: 100000},
		{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}})
	arr, _ := r.Lookup("cursor", "firstBatch").ArrayOK()
	var out []string
	for _, v := range arr.All() {
		d, _ := v.DocumentOK()
		out = append(out, d.Lookup("_id").String())
	}
	return out
}

// onFakeTime runs a test of a set on a network in memory and on fake time: nobody is elected because the machine is busy.
func onFakeTime(t *testing.T, o Options, f func(t *testing.T, s *Set)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Network = NewMemoryNetwork()
		f(t, Run(t, o))
	})
}

func within(t testing.TB, limit time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !cond() {
		if time.Since(begun) > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(begun)
}

func primaryIndex(t testing.TB, s *Set) int {
	t.Helper()
	p, err := s.WaitPrimary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p.Index()
}
