package sextant_test

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
)

// routers answer hello as mongos do, at whatever address, and every other command with ok: 1 and an empty cursor.
type routers struct {
	reply   bson.D                                      // to hello; nil: that of a mongos
	pause   func(addr string, m bson.Raw) time.Duration // before a command is answered; nil: none
	mu      sync.Mutex
	dialled map[string]int // guarded by mu
}

func (r *routers) dial(_ context.Context, _, addr string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dialled == nil {
		r.dialled = map[string]int{}
	}
	r.dialled[addr]++
	client, server := net.Pipe()
	go r.serve(addr, server)
	return client, nil
}

func (r *routers) dials(addr string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dialled[addr]
}

// nextCommand reads a client's next message.
func nextCommand(sock net.Conn) (wire.Msg, error) {
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(sock, head); err != nil {
		return wire.Msg{}, err
	}
	h, err := wire.CheckHeader(head, wire.MaxMessage)
	if err != nil {
		return wire.Msg{}, err
	}
	whole := append(head, make([]byte, h.Length-wire.HeaderLen)...)
	if _, err := io.ReadFull(sock, whole[wire.HeaderLen:]); err != nil {
		return wire.Msg{}, err
	}
	return wire.ParseMsg(whole)
}

func (r *routers) serve(addr string, sock net.Conn) {
	defer sock.Close()
	for {
		msg, err := nextCommand(sock)
		if err != nil {
			return
		}
		if r.pause != nil {
			time.Sleep(r.pause(addr, msg.Body))
		}
		if _, err := sock.Write(r.answer(msg)); err != nil {
			return
		}
	}
}

func (r *routers) answer(msg wire.Msg) []byte {
	reply := bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "a.b"}, {Key: "firstBatch", Value: bson.A{}}}}, {Key: "ok", Value: 1}}
	_, isHello := msg.Body.Lookup("hello").AsInt64OK()
	_, isMaster := msg.Body.Lookup("isMaster").AsInt64OK()
	if isHello || isMaster {
		if reply = r.reply; reply == nil {
			reply = bson.D{
				{Key: "isWritablePrimary", Value: true}, {Key: "msg", Value: "isdbgrid"}, {Key: "helloOk", Value: true},
				{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "ok", Value: 1},
			}
		}
	}
	body, err := bson.Marshal(reply)
	if err != nil {
		panic(err)
	}
	dst, start := wire.AppendMsgStart(nil, 1, msg.RequestID, 0)
	return wire.EndMsg(append(dst, body...), start)
}
