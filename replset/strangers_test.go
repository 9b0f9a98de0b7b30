package replset

import (
	"bytes"
	"crypto/md5"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/xdg-go/scram"
)

// logBook is a writer that tests may read while others write.
type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestGarbageCostsTheConnectionAndOneLogLine(t *testing.T) {
	header := func(n, op int32, rest ...byte) []byte {
		return append(wire.AppendHeader(nil, wire.Header{Length: n, RequestID: 1, OpCode: op}), rest...)
	}
	random := make([]byte, 4096)
	_, _ = rand.Read(random)
	binary.LittleEndian.PutUint32(random, 1<<30)
	for name, garbage := range map[string][]byte{
		"random bytes":         random,
		"http":                 []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"length under header":  header(3, wire.OpMsg),
		"negative length":      header(-5, wire.OpMsg),
		"over the limit":       header(wire.MaxMessage+1, wire.OpMsg),
		"unknown opcode":       header(16, 9999),
		"compressed":           header(20, wire.OpCompressed, 1, 2, 3, 4),
		"unknown flag":         header(26, wire.OpMsg, 4, 0, 0, 0, 0, 5, 0, 0, 0, 0),
		"no body":              header(20, wire.OpMsg, 0, 0, 0, 0),
		"query without a name": header(20, wire.OpQuery, 0, 0, 0, 0),
	} {
		var log logBook // and a set for each: much alike is told once
		s := Run(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		nc, err := net.Dial("tcp", s.Member(0).Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = nc.Write(garbage)
		_ = nc.SetReadDeadline(time.Now().Add(5 * time.Second))
		if n, err := nc.Read(make([]byte, 100)); err == nil || isTimeout(err) {
			t.Errorf("%s: read %d bytes, %v; want the connection closed", name, n, err)
		}
		nc.Close()
		within(t, 2*time.Second, name+" to be logged", func() bool { return strings.Count(log.String(), "connection dropped") == 1 })
		dialRaw(t, s, 0, "app").must(t, "admin", bson.D{{Key: "ping", Value: 1}})
	}
}

// In a sound frame, what cannot be read is refused and costs nothing else: a client that was given a string in another
// encoding than UTF-8 learns so.
func TestUnreadableDocumentsAreRefusedAndTheConnectionGoesOn(t *testing.T) {
	var log logBook
	s := Run(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := dialRaw(t, s, 0, "app")
	insert := bodySection(t, bson.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "t"}})
	latin1 := []byte{17, 0, 0, 0, 2, 's', 0, 5, 0, 0, 0, 'n', 0xe9, 'e', ' ', 0, 0}
	for name, msg := range map[string][]byte{
		"string over the end":   message(0, append([]byte{0}, 12, 0, 0, 0, 0x02, 'a', 0, 99, 0, 0, 0, 0)),
		"Latin-1":               message(0, element("find", 2, "x", []byte{2, 0, 0, 0, 0xe9, 0})),
		"Latin-1 in a sequence": message(0, insert, sequence(0, "documents", latin1...)),
	} {
		if _, err := c.nc.Write(msg); err != nil {
			t.Fatal(err)
		}
		if _, err := c.receive(); mongoerr.Code(err) != mongoerr.CodeInvalidBSON {
			t.Errorf("%s: %v", name, err)
		}
		if n := c.must(t, "t", bson.D{{Key: "count", Value: "c"}}).Lookup("n").AsInt64(); n != 0 {
			t.Errorf("%s: %d documents", name, n)
		}
	}
	within(t, 2*time.Second, "a line in the log", func() bool { return strings.Contains(log.String(), "a message was refused") })
}

func TestHeaderAloneMakesNobodyAllocate(t *testing.T) {
	s := Run(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		nc, err := net.Dial("tcp", s.Member(0).Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		_, _ = nc.Write(wire.AppendHeader(nil, wire.Header{Length: wire.MaxMessage, RequestID: 1, OpCode: wire.OpMsg}))
	}
	time.Sleep(50 * time.Millisecond)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 50<<20 {
		t.Errorf("twenty headers that promise 48 MB each made the set allocate %d MB", grown>>20)
	}
}

func TestDocumentOverSixteenMegabytesIsRefused(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	big := strings.Repeat("x", 16<<20)
	_, err := c.run("t", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: big}}}}})
	if err == nil {
		t.Error("accepted")
	}
	dialRaw(t, s, 0, "app").must(t, "admin", bson.D{{Key: "ping", Value: 1}})
}

// login runs a SCRAM conversation with the client of another implementation.
func login(c *raw, mechanism, user, password string) error {
	hash := scram.SHA256
	if mechanism == "SCRAM-SHA-1" {
		hash = scram.SHA1
	}
	client, err := hash.NewClientUnprepped(user, password, "")
	if err != nil {
		return err
	}
	conv := client.NewConversation()
	payload, err := conv.Step("")
	if err != nil {
		return err
	}
	cmd := bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: mechanism}, {Key: "payload", Value: bson.Binary{Data: []byte(payload)}}}
	for {
		r, err := c.run("admin", cmd)
		if err != nil {
			return err
		}
		_, answer, _ := r.Lookup("payload").BinaryOK()
		if done, _ := r.Lookup("done").BooleanOK(); done {
			return nil
		}
		payload := ""
		if !conv.Done() {
			if payload, err = conv.Step(string(answer)); err != nil {
				return err
			}
		}
		cmd = bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: r.Lookup("conversationId")},
			{Key: "payload", Value: bson.Binary{Data: []byte(payload)}}}
	}
}

func TestAuthentication(t *testing.T) {
	var log logBook
	s := Run(t, Options{Members: 3, Users: []User{{Name: "joe", Password: "secret-one"}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	p := primaryIndex(t, s)
	c := dialRaw(t, s, p, "app")
	e := c.fails(t, mongoerr.CodeUnauthorized, "t", insert(1, nil))
	if e.Message != "Command insert requires authentication" {
		t.Errorf("message %q", e.Message)
	}
	if err := login(c, "SCRAM-SHA-256", "joe", "wrong"); mongoerr.Code(err) != mongoerr.CodeAuthenticationFailed {
		t.Errorf("wrong password: %v", err)
	}
	if err := login(c, "SCRAM-SHA-256", "ann", "secret-one"); mongoerr.Code(err) != mongoerr.CodeAuthenticationFailed {
		t.Errorf("unknown user: %v", err)
	}
	c.fails(t, mongoerr.CodeUnauthorized, "t", insert(1, nil))
	if err := login(c, "SCRAM-SHA-256", "joe", "secret-one"); err != nil {
		t.Fatal(err)
	}
	c.must(t, "t", insert(1, w(3))) // replication goes on without the members' logging in
	sum := md5.Sum([]byte("joe:mongo:secret-one"))
	if err := login(dialRaw(t, s, p, "app"), "SCRAM-SHA-1", "joe", hex.EncodeToString(sum[:])); err != nil {
		t.Errorf("SCRAM-SHA-1: %v", err)
	}
	r := c.must(t, "admin", bson.D{{Key: "connectionStatus", Value: 1}})
	if user, _ := r.Lookup("authInfo", "authenticatedUsers", "0", "user").StringValueOK(); user != "joe" {
		t.Errorf("connectionStatus: %v", r)
	}
	other := dialRaw(t, s, p, "app")
	r = other.must(t, "admin", bson.D{{Key: "hello", Value: 1}, {Key: "saslSupportedMechs", Value: "admin.joe"}})
	if list, _ := r.Lookup("saslSupportedMechs").ArrayOK(); list.Len() != 2 {
		t.Errorf("saslSupportedMechs: %v", r)
	}
	r = other.must(t, "admin", bson.D{{Key: "hello", Value: 1}, {Key: "saslSupportedMechs", Value: "admin.ann"}})
	if !r.Lookup("saslSupportedMechs").IsZero() {
		t.Errorf("saslSupportedMechs of an unknown user: %v", r)
	}
	if strings.Contains(log.String(), "secret-one") || strings.Contains(log.String(), "wrong\"") {
		t.Errorf("a password is in the log: %s", log.String())
	}
	impostor := dialRaw(t, s, p, "")
	impostor.must(t, "admin", bson.D{{Key: "hello", Value: 1}, {Key: "sextantMember", Value: bson.D{{Key: "from", Value: 1}, {Key: "secret", Value: ""}}}})
	impostor.fails(t, mongoerr.CodeUnauthorized, "t", insert(2, nil))
}

func TestHangingUpEndsAWaitingCommand(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	open := func() int64 {
		n, _ := c.must(t, "t", bson.D{{Key: "serverStatus", Value: 1}}).Lookup("connections", "current").AsInt64OK()
		return n
	}
	before := open()
	known := version(c.must(t, "admin", bson.D{{Key: "hello", Value: 1}}))
	for range 3 {
		waiting := dialRaw(t, s, 0, "app")
		if err := waiting.send(wire.ExhaustAllowed, "admin", await(known, 60000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		waiting.nc.Close()
	}
	within(t, 5*time.Second, "the connections to be gone", func() bool { return open() == before })
}

func TestMessageThatWantsNoReplyGetsNone(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	if err := c.send(wire.MoreToCome, "t", insert(1, w(0))); err != nil {
		t.Fatal(err)
	}
	c.must(t, "admin", bson.D{{Key: "ping", Value: 1}}) // a reply to the insert would be taken for this one's
	if c.lastR.ResponseTo != c.id {
		t.Errorf("a reply to request %d came in answer to %d", c.lastR.ResponseTo, c.id)
	}
	if got := c.ids(t); len(got) != 1 {
		t.Errorf("the unacknowledged write was not done: %v", got)
	}
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	s := Run(t, Options{Members: 3})
	p := primaryIndex(t, s)
	c := dialRaw(t, s, p, "app")
	c.must(t, "t", insert(1, w(3)))
	if err := c.send(0, "admin", await(version(c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})), 10000)); err != nil {
		t.Fatal(err)
	}
	if err := s.Partition([]int{p}); err != nil {
		t.Fatal(err)
	}
	if err := s.Hang((p+1)%3, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill((p + 2) % 3); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A goroutine that has told its owner that it is done may need a moment to be gone.
	for end := time.Now().Add(time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}
