package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestCompressedHoldsAMessageWithoutItsHeader(t *testing.T) {
	msg, start := AppendMsgStart(nil, 7, 3, 0)
	msg = EndMsg(append(msg, emptyDoc...), start)
	b, start := AppendCompressedStart([]byte("head"), msg, 2)
	b = EndCompressed(append(b, "packed"...), start)
	c, err := ParseCompressed(b[4:], MaxMessage)
	if err != nil {
		t.Fatal(err)
	}
	if c.RequestID != 7 || c.ResponseTo != 3 || c.Original != OpMsg || int(c.Size) != len(msg)-HeaderLen || c.Compressor != 2 || string(c.Data) != "packed" {
		t.Errorf("%+v", c)
	}
	if got := append(c.AppendUnpackedHeader(nil), msg[HeaderLen:]...); !bytes.Equal(got, msg) {
		t.Errorf("unpacked % x, want % x", got, msg)
	}
}

var emptyDoc = []byte{5, 0, 0, 0, 0}

func TestCompressedIsRefused(t *testing.T) {
	make := func(original, size int32, more ...byte) []byte {
		b := AppendHeader(nil, Header{OpCode: OpCompressed})
		b = appendInt32(appendInt32(b, original), size)
		return EndCompressed(append(b, more...), 0)
	}
	for name, c := range map[string]struct {
		b    []byte
		says string
	}{
		"no room":       {make(OpMsg, 10), "no room"},
		"negative":      {make(OpMsg, -1, 1), "-1 bytes"},
		"too large":     {make(OpMsg, MaxMessage-HeaderLen+1, 1), "at most"},
		"within itself": {make(OpCompressed, 10, 1), "inside"},
		"another code":  {make(OpMsg, 1, 1)[:HeaderLen], "the header says"},
	} {
		if _, err := ParseCompressed(c.b, MaxMessage); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseCompressed(make(OpMsg, MaxMessage-HeaderLen, 1), MaxMessage); err != nil {
		t.Errorf("the largest message: %v", err)
	}
}

func TestCommandsWithSecretsAreNotCompressible(t *testing.T) {
	msg, start := AppendMsgStart(nil, 1, 0, 0)
	msg = append(msg, 15, 0, 0, 0, 16)
	msg = append(msg, "find\x00\x01\x00\x00\x00\x00"...)
	msg = EndMsg(msg, start)
	if name := CommandName(msg); string(name) != "find" || !Compressible(name) {
		t.Errorf("%q", name)
	}
	for _, name := range []string{"hello", "isMaster", "ismaster", "saslStart", "SASLCONTINUE", "getnonce", "authenticate", "createUser",
		"updateuser", "copydbSaslStart", "copydbgetnonce", "copydb", ""} {
		if Compressible([]byte(name)) {
			t.Errorf("%q may be compressed", name)
		}
	}
	for n := range msg {
		_ = CommandName(msg[:n]) // does not panic
	}
}

func FuzzParseCompressed(f *testing.F) {
	b, start := AppendCompressedStart(nil, make([]byte, HeaderLen), 1)
	f.Add(EndCompressed(append(b, 1, 2, 3), start))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCompressed(b, MaxMessage)
		if err == nil && (c.Size < 0 || len(c.Data) != len(b)-HeaderLen-compressedLen) {
			t.Errorf("%+v of %d bytes", c, len(b))
		}
		_ = CommandName(b)
	})
}
