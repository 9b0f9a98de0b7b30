package sextant_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// first is the first line of an error's text.
func first(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// atOnce is sooner than a call fails that waits for a member, 30 s, or for ping's context, and later than one on a busy machine
// that waits for nothing.
const atOnce = 15 * time.Second

// refuse checks that a call fails soon, with an error that the predicate knows and whose first line says all words.
func refuse(t *testing.T, call func() error, is func(error) bool, words ...string) {
	t.Helper()
	start := time.Now()
	err := call()
	if took := time.Since(start); took > atOnce {
		t.Errorf("it took %v to say: %v", took, err)
	}
	if err == nil {
		t.Fatal("no error")
	}
	if !is(err) {
		t.Errorf("the error is of another kind: %#v", err)
	}
	if _, ok := errors.AsType[*mongoerr.Error](err); !ok {
		t.Errorf("the error is a %T", err)
	}
	for _, w := range words {
		if !strings.Contains(first(err), w) {
			t.Errorf("%q is not in the first line of\n%v", w, err)
		}
	}
}

func ping(cl *sextant.Client) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_, err := cl.Database("shop").Collection("people").FindOne(ctx, bson.D{})
		if err == sextant.ErrNoDocuments {
			return nil
		}
		return err
	}
}

func TestWrongURIIsRefusedAtOnce(t *testing.T) {
	for _, uri := range []string{
		"", "localhost", "http://localhost", "mongodb://", "mongodb://localhost:99999", "mongodb://a@b@c/", "mongodb://localhost/?w=1&w",
		"mongodb://user:p@ss@localhost/", "mongodb://a,b/?directConnection=true", "mongodb://localhost/?authMechanism=MAGIC",
	} {
		refuse(t, func() error { _, err := sextant.Connect(context.Background(), uri); return err }, mongoerr.IsConfig)
	}
	if _, err := sextant.Connect(context.Background(), "mongodb://joe:s3cr3t@x@localhost/"); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("the password is in the error: %v", err)
	}
}

func TestUnknownOptionsAreWarningsUnlessStrict(t *testing.T) {
	const uri = "mongodb://localhost/?readPreferance=nearest&maxPoolSize=many"
	cfg := must[*sextant.Config](t)(sextant.ParseURI(uri))
	if len(cfg.Warnings) != 2 {
		t.Errorf("warnings: %v", cfg.Warnings)
	}
	cfg.Strict = true
	_, err := sextant.ConnectConfig(context.Background(), cfg)
	if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "readPreferance") {
		t.Errorf("strict: %v", err)
	}
}

func TestWrongPasswordIsToldPromptly(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1, Users: []replset.User{{Name: "joe", Password: "right"}}})
	cl := connect(t, set.URI(), func(c *sextant.Config) { c.Username, c.Password = "joe", "s3cr3t" })
	refuse(t, ping(cl), mongoerr.IsAuth, "joe")
	if err := ping(cl)(); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("the password is in the error: %v", err)
	}
	right := connect(t, set.URI(), func(c *sextant.Config) { c.Username, c.Password = "joe", "right" })
	if err := ping(right)(); err != nil {
		t.Error(err)
	}
	none := connect(t, set.URI(), func(c *sextant.Config) { c.Username, c.Password = "", "" })
	refuse(t, ping(none), func(err error) bool { return mongoerr.Code(err) == mongoerr.CodeUnauthorized }, "authentication")
}

func TestSetNameMismatchIsToldInTheFirstLine(t *testing.T) {
	set := embedded(t, 1)
	cl := connect(t, set.URI(), func(c *sextant.Config) { c.ReplicaSet, c.ServerSelectionTimeout = "other", time.Second })
	refuse(t, ping(cl), mongoerr.IsSelection, "other", "rs0")
}

func TestStandaloneWhereASetWasAskedForIsTold(t *testing.T) {
	addr := standalone(t)
	cl := connect(t, "mongodb://"+addr+"/?replicaSet=rs0", func(c *sextant.Config) { c.ServerSelectionTimeout = time.Second })
	refuse(t, ping(cl), mongoerr.IsSelection, "rs0", "tandalone")
}

func TestUnreachableAndUnresolvableNamesAreTold(t *testing.T) {
	dead := replset.Run(t, replset.Options{Members: 1})
	if err := dead.Kill(0); err != nil {
		t.Fatal(err)
	}
	nobody := dead.Member(0).Addr()
	quick := func(c *sextant.Config) { c.ServerSelectionTimeout = time.Second }
	refuse(t, ping(connect(t, "mongodb://"+nobody, quick)), mongoerr.IsSelection, "refused")
	refuse(t, ping(connect(t, "mongodb://no-such-host.invalid", quick)), mongoerr.IsSelection, "no-such-host.invalid")
}

func TestGarbageFromTheServerIsAnErrorNotAHang(t *testing.T) {
	pad := strings.Repeat("x", 12)
	for name, k := range map[string]struct{ reply, words string }{
		"HTTP": {"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"}, "huge length": {"\xff\xff\xff\x7f" + pad, "length 2147483647"},
		"negative length": {"\xff\xff\xff\xff" + pad, "malformed"}, "closed": {"", "closed"}, "cut": {"\x30\x00\x00\x00" + pad, "malformed"},
	} {
		addr := answering(t, k.reply)
		cl := connect(t, "mongodb://"+addr, func(c *sextant.Config) { c.ServerSelectionTimeout = 300 * time.Millisecond })
		t.Run(name, func(t *testing.T) { refuse(t, ping(cl), mongoerr.IsSelection, k.words) })
	}
}

// answering listens and gives every connection the same bytes, whatever it says, and then closes it.
func answering(t *testing.T, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			c.Read(buf)
			c.Write([]byte(reply))
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func TestDocumentsThatCannotBeSentAreRefusedByName(t *testing.T) {
	ctx, c := testContext(t), fresh[bson.D](t, connect(t, sharedURI(t)))
	insert := func(doc any) func() error {
		return func() error { _, err := c.InsertOne(ctx, doc); return err }
	}
	isEncode := func(err error) bool {
		e, ok := errors.AsType[*mongoerr.Error](err)
		return ok && e.Stage == mongoerr.StageEncode && e.NS == c.Namespace()
	}
	huge := bson.M{"_id": 1, "x": strings.Repeat("x", 17<<20)}
	refuse(t, insert(huge), isEncode, "document 0", "bytes")
	refuse(t, insert(bson.M{"x": "bad \xff bytes"}), isEncode, "UTF-8")
	refuse(t, insert(bson.M{"bad\xffkey": 1}), isEncode, "UTF-8")
	refuse(t, insert(bson.D{{Key: "a\x00b", Value: 1}}), isEncode, "the document")
	refuse(t, insert(bson.M{"x": make(chan int)}), isEncode, "chan int")
	refuse(t, insert(5), isEncode)
	deep := bson.D{}
	for range 300 {
		deep = bson.D{{Key: "a", Value: deep}}
	}
	refuse(t, insert(deep), isEncode, "deep")
	type loop struct{ Next *loop }
	ring := &loop{}
	ring.Next = ring
	refuse(t, insert(ring), isEncode)
	if _, err := c.InsertMany(ctx, []any{bson.M{"_id": 1}, huge}); !isEncode(err) {
		t.Errorf("InsertMany: %v", err)
	}
	if _, err := c.Find(ctx, bson.M{"x": "bad \xff bytes"}); !isEncode(err) {
		t.Errorf("Find: %v", err)
	}
	if _, err := c.InsertMany(ctx, []bson.D{}); !mongoerr.IsConfig(err) {
		t.Errorf("no documents: %v", err)
	}
	if _, err := c.InsertMany(ctx, bson.D{{Key: "x", Value: 1}}); !mongoerr.IsConfig(err) {
		t.Errorf("one document as many: %v", err)
	}
}

func TestUseAfterCloseIsATypedError(t *testing.T) {
	cl := must[*sextant.Client](t)(sextant.Connect(context.Background(), sharedURI(t)))
	c := cl.Database("shop").Collection("people")
	cur := must[*sextant.Cursor[bson.D]](t)(c.Find(testContext(t), bson.D{}))
	for range 2 {
		if err := cl.Close(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range map[string]error{
		"FindOne": func() error { _, err := c.FindOne(testContext(t), bson.D{}); return err }(),
		"Insert":  func() error { _, err := c.InsertOne(testContext(t), bson.D{}); return err }(),
		"Refresh": cl.Refresh(testContext(t)),
		"Ready":   cl.WaitReady(testContext(t), sextant.Want{}),
	} {
		if !errors.Is(err, sextant.ErrClientClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	v, err := cl.Explain(testContext(t), sextant.Want{Write: true})
	if v.Sentence != "no member serves a write: the client is closed" || !errors.Is(v.Cause, sextant.ErrClientClosed) || !errors.Is(err, sextant.ErrClientClosed) {
		t.Errorf("Explain: %v, %v", v, err)
	}
	if err := cur.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	unused := must[*sextant.Client](t)(sextant.Connect(context.Background(), "mongodb://never-dialled.invalid"))
	if err := unused.Close(testContext(t)); err != nil {
		t.Errorf("closing a client that was never used: %v", err)
	}
}

func TestDeadlineAndCancelEndAWaitAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts: every hello waits
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cl := connect(t, "mongodb://"+l.Addr().String())
	c := cl.Database("shop").Collection("people")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	refuse(t, func() error { _, err := c.FindOne(ctx, bson.D{}); return err }, mongoerr.IsTimeout)
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	refuse(t, func() error { _, err := c.FindOne(ctx, bson.D{}); return err }, func(err error) bool { return errors.Is(err, context.Canceled) })
}

// standalone is the address of a server that greets as one that is of no set, and does nothing else.
func standalone(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { defer c.Close(); greet(c) })
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return l.Addr().String()
}

// greet answers every message with the hello of a standalone server.
func greet(c net.Conn) {
	for {
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		head := make([]byte, 16)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		rest := make([]byte, binary.LittleEndian.Uint32(head)-16)
		if _, err := io.ReadFull(c, rest); err != nil {
			return
		}
		hello, err := bson.Marshal(bson.D{
			{Key: "ismaster", Value: true}, {Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48000000},
			{Key: "maxWriteBatchSize", Value: 100000}, {Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "ok", Value: 1},
		})
		if err != nil {
			return
		}
		reply := make([]byte, 21, 21+len(hello))
		binary.LittleEndian.PutUint32(reply, uint32(21+len(hello)))
		copy(reply[8:], head[4:8])
		binary.LittleEndian.PutUint32(reply[12:], 2013)
		if _, err := c.Write(append(reply, hello...)); err != nil {
			return
		}
	}
}
