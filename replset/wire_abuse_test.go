package replset

import (
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
)

// message is an OP_MSG with any sections.
func message(flags uint32, sections ...[]byte) []byte {
	dst := wire.AppendHeader(nil, wire.Header{RequestID: 7, OpCode: wire.OpMsg})
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	for _, s := range sections {
		dst = append(dst, s...)
	}
	binary.LittleEndian.PutUint32(dst, uint32(len(dst)))
	return dst
}

func bodySection(t testing.TB, d bson.D) []byte {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{0}, b...)
}

// nested is {"0": {"0": ... {}}}, n levels deep, of documents (type 3) or arrays (type 4).
func nested(n int, typ byte) []byte {
	var doc []byte
	for level := n; level > 0; level-- {
		doc = binary.LittleEndian.AppendUint32(doc, uint32(5+8*level))
		doc = append(doc, typ, '0', 0)
	}
	doc = append(doc, 5, 0, 0, 0, 0)
	return append(doc, make([]byte, n)...)
}

// element puts one element of raw bytes beside $db into a command.
func element(name string, typ byte, key string, value []byte) []byte {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, name, "c")
	dst = append(append(append(dst, typ), key...), 0)
	dst = append(dst, value...)
	dst = bson.AppendString(dst, "$db", "t")
	return append([]byte{0}, bson.EndDocument(dst, start)...)
}

func sequence(length int, id string, docs ...byte) []byte {
	dst := append([]byte{1}, 0, 0, 0, 0)
	dst = append(append(dst, id...), 0)
	dst = append(dst, docs...)
	if length == 0 {
		length = len(dst) - 1
	}
	binary.LittleEndian.PutUint32(dst[1:], uint32(length))
	return dst
}

// oldQuery is an OP_QUERY with any document.
func oldQuery(collection string, doc []byte) []byte {
	dst := wire.AppendHeader(nil, wire.Header{RequestID: 7, OpCode: wire.OpQuery})
	dst = append(append(append(dst, 0, 0, 0, 0), collection...), 0)
	dst = append(append(dst, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff), doc...)
	binary.LittleEndian.PutUint32(dst, uint32(len(dst)))
	return dst
}

// Whatever a stranger sends, the answer is an error or a closed connection, soon; the member and its other clients go on.
func TestAnyBytesAreAnsweredOrCostTheConnection(t *testing.T) {
	var log logBook
	s := Run(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ping := bodySection(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "t"}})
	insert := bodySection(t, bson.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "t"}})
	empty := []byte{5, 0, 0, 0, 0}
	for name, msg := range map[string][]byte{
		"nesting of 199":                message(0, element("find", 3, "filter", nested(199, 3))),
		"nesting of 250":                message(0, element("find", 3, "filter", nested(250, 3))),
		"nesting of 100,000":            message(0, element("find", 3, "filter", nested(100000, 3))),
		"nested arrays":                 message(0, element("find", 4, "x", nested(1000, 4))),
		"deep document in a sequence":   message(0, insert, sequence(0, "documents", nested(300, 3)...)),
		"invalid UTF-8 in a value":      message(0, element("find", 2, "x", append([]byte{3, 0, 0, 0}, 0xff, 0xfe, 0))),
		"invalid UTF-8 in a key":        message(0, element("find", 8, "\xff\xfe", []byte{1})),
		"string without its end":        message(0, element("find", 2, "x", append([]byte{3, 0, 0, 0}, 'a', 'b', 'c'))),
		"string of length 0":            message(0, element("find", 2, "x", []byte{0, 0, 0, 0})),
		"string of negative length":     message(0, element("find", 2, "x", []byte{0xff, 0xff, 0xff, 0xff, 0})),
		"unknown type":                  message(0, element("find", 0x42, "x", []byte{1, 2, 3})),
		"boolean of 2":                  message(0, element("find", 8, "x", []byte{2})),
		"regex without its end":         message(0, element("find", 0x0b, "filter", []byte{'a'})),
		"section kind 2":                message(0, ping, []byte{2, 5, 0, 0, 0, 0}),
		"two bodies":                    message(0, ping, ping),
		"sequence over the end":         message(0, insert, sequence(4000, "documents", empty...)),
		"sequence of length 3":          message(0, insert, sequence(3, "documents", empty...)),
		"sequence of negative length":   message(0, insert, sequence(-1, "documents", empty...)),
		"sequence with half a document": message(0, insert, sequence(0, "documents", 5, 0, 0)),
		"sequence twice":                message(0, insert, sequence(0, "documents", empty...), sequence(0, "documents", empty...)),
		"sequence nobody asked for":     message(0, ping, sequence(0, "documents", empty...)),
		"sequence beside the field":     message(0, bodySection(t, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}, {Key: "$db", Value: "t"}}), sequence(0, "documents", empty...)),
		"empty body":                    message(0, append([]byte{0}, empty...)),
		"only $db":                      message(0, bodySection(t, bson.D{{Key: "$db", Value: "t"}})),
		"exhaust for a ping":            message(wire.ExhaustAllowed, ping),
		"query of nothing":              oldQuery("", empty),
		"query without a dot":           oldQuery("admin", empty),
		"query of a collection":         oldQuery("t.c", empty),
		"query of $cmd.sys.inprog":      oldQuery("admin.$cmd.sys.inprog", empty),
		"query of nowhere":              oldQuery(".$cmd", empty),
		"query of bytes":                oldQuery("\xff\xfe.$cmd", empty),
		"query with half a document":    oldQuery("admin.$cmd", empty[:3]),
		"query with two documents":      oldQuery("admin.$cmd", append(append([]byte(nil), empty...), empty...)),
		"query with an empty $query":    oldQuery("admin.$cmd", nested(1, 3)),
		"checksum that is wrong":        message(wire.ChecksumPresent, ping, []byte{1, 2, 3, 4}),
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", s.Member(0).Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := nc.Write(msg); err != nil {
				t.Fatal(err)
			}
			_ = nc.SetReadDeadline(time.Now().Add(5 * time.Second))
			head := make([]byte, wire.HeaderLen)
			if _, err := io.ReadFull(nc, head); isTimeout(err) {
				t.Error("neither an answer nor a closed connection")
			} else if err == nil {
				if to := int32(binary.LittleEndian.Uint32(head[8:])); to != 7 {
					t.Errorf("an answer to %d", to)
				}
			}
		})
	}
	dialRaw(t, s, 0, "app").must(t, "admin", bson.D{{Key: "ping", Value: 1}})
	if strings.Contains(log.String(), "panic") {
		t.Errorf("something panicked: %s", log.String())
	}
}

// Valid messages with a few bytes changed reach deeper than random ones.
func TestDamagedMessagesNeverReachTheHost(t *testing.T) {
	var log logBook
	s := Run(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	rnd := rand.New(rand.NewPCG(1, 2))
	id := bson.NewObjectID()
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: append(id[:], 1, 2, 3, 4)}}}
	var seeds [][]byte
	for _, d := range []bson.D{
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1, "x", nil}}}}}, {Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(3)}},
		{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "a.$[i]", Value: 2}}}}}, {Key: "arrayFilters", Value: bson.A{bson.D{{Key: "i", Value: 1}}}}}}}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "$gt", Value: 1}}}}}}}, {Key: "sort", Value: bson.D{{Key: "a", Value: -1}}}, {Key: "projection", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$slice", Value: 1}}}}}, {Key: "batchSize", Value: 1}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$a"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}}, bson.D{{Key: "$limit", Value: 3}}}}, {Key: "cursor", Value: bson.D{}}},
		{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: id}, {Key: "counter", Value: int64(1)}}}, {Key: "maxAwaitTimeMS", Value: int64(1)}, {Key: "client", Value: bson.D{{Key: "driver", Value: bson.D{{Key: "name", Value: "x"}, {Key: "version", Value: "1"}}}}}},
		{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a_1"}, {Key: "partialFilterExpression", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: 1}}}}}}}}},
		{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{}}, {Key: "update", Value: bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "z", Value: "$a"}}}}}}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: 5}}}},
		{{Key: "getMore", Value: int64(77)}, {Key: "collection", Value: "c"}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}, {Key: "afterClusterTime", Value: bson.Timestamp{T: 1, I: 1}}}}, {Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 1, I: 1}}}}},
		{{Key: "replSetReconfig", Value: bson.D{{Key: "_id", Value: "rs0"}, {Key: "version", Value: 2}, {Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: "a:1"}}}}}}},
	} {
		seeds = append(seeds, message(0, bodySection(t, append(d, bson.E{Key: "$db", Value: "admin"}))))
	}
	const each = 400
	for _, seed := range seeds {
		var nc net.Conn
		for range each {
			if nc == nil {
				var err error
				if nc, err = net.Dial("tcp", s.Member(0).Addr()); err != nil {
					t.Fatalf("the listener is gone: %v", err)
				}
			}
			msg := append([]byte(nil), seed...)
			for range 1 + rnd.IntN(3) {
				switch at := 16 + rnd.IntN(len(msg)-16); rnd.IntN(3) {
				case 0:
					msg[at] = byte(rnd.IntN(256))
				case 1:
					msg[at] ^= 1 << rnd.IntN(8)
				case 2:
					copy(msg[at:], []byte{0xff, 0xff, 0xff, 0x7f}[:min(4, len(msg)-at)])
				}
			}
			if binary.LittleEndian.Uint32(msg[16:])&uint32(wire.MoreToCome) != 0 {
				continue
			}
			_, _ = nc.Write(msg)
			_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
			head := make([]byte, wire.HeaderLen)
			_, err := io.ReadFull(nc, head)
			if err == nil {
				_, err = io.CopyN(io.Discard, nc, int64(binary.LittleEndian.Uint32(head))-wire.HeaderLen)
			}
			if isTimeout(err) {
				t.Fatalf("no answer to %x", msg)
			}
			if err != nil {
				nc.Close()
				nc = nil
			}
		}
		if nc != nil {
			nc.Close()
		}
	}
	if text := log.String(); strings.Contains(text, "panicked") || strings.Contains(text, "could not be encoded") {
		i := max(strings.Index(text, "panicked"), strings.Index(text, "could not be encoded"))
		t.Errorf("the log tells of an internal error: %.1500s", text[max(0, i-300):])
	}
	dialRaw(t, s, 0, "app").must(t, "admin", bson.D{{Key: "ping", Value: 1}})
}

func TestThousandConnectionsThatComeAndGoLeaveNothing(t *testing.T) {
	s := Run(t)
	good := dialRaw(t, s, 0, "app")
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for g := range 20 {
		wg.Go(func() {
			for k := range 50 {
				nc, err := net.Dial("tcp", s.Member(0).Addr())
				if err != nil {
					t.Errorf("connection %d: %v", k, err)
					return
				}
				switch (g + k) % 4 {
				case 0:
					_, _ = nc.Write([]byte{1})
				case 1:
					_, _ = nc.Write(message(0, bodySection(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "t"}}))[:30])
				case 2:
					_, _ = nc.Write(message(0, bodySection(t, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})))
				}
				nc.Close()
			}
		})
	}
	for range 50 {
		good.must(t, "t", bson.D{{Key: "ping", Value: 1}})
	}
	wg.Wait()
	within(t, 5*time.Second, "the connections to be gone", func() bool {
		open, _ := good.must(t, "admin", bson.D{{Key: "serverStatus", Value: 1}}).Lookup("connections", "current").AsInt64OK()
		return open == 1 && runtime.NumGoroutine() <= before
	})
}

func TestSlowBytesAreServedAndHinderNobody(t *testing.T) {
	s := Run(t)
	nc, err := net.Dial("tcp", s.Member(0).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	quickOne := dialRaw(t, s, 0, "app")
	for _, b := range message(0, bodySection(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "t"}})) {
		if _, err := nc.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
		quickOne.must(t, "t", bson.D{{Key: "ping", Value: 1}})
	}
	_ = nc.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.ReadFull(nc, make([]byte, wire.HeaderLen)); err != nil {
		t.Errorf("the slow client got no answer: %v", err)
	}
}

// A client that asks and never reads must not keep the set from closing.
func TestClientThatNeverReadsDoesNotHoldUpClose(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	big := strings.Repeat("x", 8<<20)
	c.must(t, "t", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: big}}}}})
	for range 3 {
		if err := c.send(0, "t", bson.D{{Key: "find", Value: "c"}}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	begun := time.Now()
	s.Close()
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
}
