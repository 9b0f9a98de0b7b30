package sextant_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// scripted is the address of a standalone server that answers command number n, greetings not counted, with what the
// script says, well-formed or not. Its hello has more fields if there are any.
func scripted(t *testing.T, script func(n int, command string) bson.Raw, more ...bson.E) string {
	t.Helper()
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	hello := must[[]byte](t)(bson.Marshal(append(bson.D{
		{Key: "isWritablePrimary", Value: true}, {Key: "helloOk", Value: true}, {Key: "maxWireVersion", Value: 21},
		{Key: "logicalSessionTimeoutMinutes", Value: 30}, {Key: "ok", Value: 1},
	}, more...)))
	var mu sync.Mutex // guards n
	n := 0
	answer := func(command string) bson.Raw {
		if command == "hello" || command == "isMaster" {
			return hello
		}
		mu.Lock()
		defer mu.Unlock()
		n++
		return script(n, command)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { defer c.Close(); converse(c, answer) })
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return l.Addr().String()
}

// converse answers each message on a connection until it ends.
func converse(c net.Conn, answer func(command string) bson.Raw) {
	for {
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		head := make([]byte, 16)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		body := make([]byte, binary.LittleEndian.Uint32(head)-16)
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		command := ""
		for command = range bson.Raw(body[5:]).All() {
			break
		}
		reply := answer(command)
		msg := binary.LittleEndian.AppendUint32(nil, uint32(21+len(reply)))
		msg = append(append(msg, 0, 0, 0, 0), head[4:8]...)
		msg = append(binary.LittleEndian.AppendUint32(msg, 2013), 0, 0, 0, 0, 0)
		if _, err := c.Write(append(msg, reply...)); err != nil {
			return
		}
	}
}

func TestOneMalformedReplyDoesNotSpoilTheClient(t *testing.T) {
	ok := must[[]byte](t)(bson.Marshal(bson.D{{Key: "n", Value: 3}, {Key: "ok", Value: 1}}))
	clock := bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 9, I: 9}}, {Key: "signature", Value: "s"}}
	spoilt := must[[]byte](t)(bson.Marshal(bson.D{{Key: "n", Value: 3}, {Key: "$clusterTime", Value: clock}, {Key: "ok", Value: 1}}))
	for i := range spoilt {
		if string(spoilt[i:i+9]) == "signature" {
			spoilt[i] = 0xff
			break
		}
	}
	cut := append(bson.Raw(nil), ok...)
	cut[4] = 0x7e // no type
	addr := scripted(t, func(n int, _ string) bson.Raw {
		switch n {
		case 1:
			return spoilt
		case 3, 4:
			return cut
		}
		return ok
	})
	c := connect(t, "mongodb://"+addr).Database("shop").Collection("people")
	count := func() error { _, err := c.EstimatedDocumentCount(testContext(t)); return err }
	for range 2 {
		if err := count(); err != nil {
			t.Fatalf("a command after a malformed $clusterTime: %v", err)
		}
	}
	refuse(t, count, mongoerr.IsNetwork, "malformed")
	if err := count(); err != nil {
		t.Errorf("a command after a malformed reply: %v", err)
	}
}

func TestWordsOfAStrangerDoNotBreakTheFirstLine(t *testing.T) {
	addr := scripted(t, func(int, string) bson.Raw { return nil },
		bson.E{Key: "setName", Value: "odd\nname"}, bson.E{Key: "hosts", Value: bson.A{"evil\n:1", "127.0.0.1:1"}})
	cl := connect(t, "mongodb://"+addr, func(c *sextant.Config) { c.ServerSelectionTimeout = time.Second })
	refuse(t, ping(cl), mongoerr.IsSelection, `odd\nname`, "is not in its own list of members", "refused")
	if members := cl.Hosts().Members; len(members) != 1 || members[0].Address != "127.0.0.1:1" {
		t.Errorf("members: %v", members)
	}
}
