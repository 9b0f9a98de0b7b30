package conn_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// TestAuthenticationAgainstTheEmbeddedServer is the driver's SCRAM against the server wing's, which is another's code.
func TestAuthenticationAgainstTheEmbeddedServer(t *testing.T) {
	const password = "p,=ä hunter2"
	set := replset.Run(t, replset.Options{Users: []replset.User{{Name: "a=b,c", Password: password, DB: "shop"}}})
	addr := set.Member(0).Addr()
	for _, mechanism := range []string{"", "SCRAM-SHA-256", "SCRAM-SHA-1"} {
		o := &conn.Options{ConnectTimeout: 10 * time.Second, Credential: &conn.Credential{
			Username: "a=b,c", Password: password, Source: "shop", Mechanism: mechanism}}
		c, err := conn.Open(t.Context(), addr, o)
		if err != nil {
			t.Errorf("mechanism %q: %v", mechanism, err)
			continue
		}
		if reply := command(t, c, "listDatabases"); mongoerr.FromReply(reply) != nil {
			t.Errorf("mechanism %q: %s", mechanism, reply)
		}
		c.Close()
		o.Credential.Password = "wrong"
		_, err = conn.Open(t.Context(), addr, o)
		e, _ := errors.AsType[*mongoerr.Error](err)
		if e == nil || e.Stage != mongoerr.StageAuth || e.Code != mongoerr.CodeAuthenticationFailed {
			t.Errorf("mechanism %q, wrong password: %v", mechanism, err)
		}
	}
	c, err := conn.Open(t.Context(), addr, &conn.Options{Monitor: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if e := mongoerr.FromReply(command(t, c, "listDatabases")); e == nil || e.Code != 13 {
		t.Errorf("without a user: %v", e)
	}
}

func command(t *testing.T, c *conn.Conn, name string) bson.Raw {
	t.Helper()
	msg, start := wire.AppendMsgStart(c.Buffer(), c.NextRequestID(), 0, 0)
	msg, doc := bson.BeginDocument(msg)
	msg = bson.AppendInt32(msg, name, 1)
	msg = bson.AppendString(msg, "$db", "admin")
	m, err := c.RoundTrip(t.Context(), wire.EndMsg(bson.EndDocument(msg, doc), start))
	if err != nil {
		t.Fatal(err)
	}
	return m.Body.Clone()
}

func TestCheckStreamsFromTheEmbeddedServer(t *testing.T) {
	set := replset.Run(t)
	c, err := conn.Open(t.Context(), set.Member(0).Addr(), &conn.Options{Monitor: true, ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	version, ok := c.Hello().Lookup("topologyVersion").DocumentOK()
	if !ok {
		t.Fatalf("no topologyVersion in %s", c.Hello())
	}
	for i := range 3 {
		reply, err := c.Check(t.Context(), version, 20*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if mongoerr.FromReply(reply) != nil || !c.Streaming() {
			t.Errorf("reply %d: %s, streaming %v", i, reply, c.Streaming())
		}
	}
}

// TestServersOfOtherKindsAreNamed dials real sockets behind which something else listens.
func TestServersOfOtherKindsAreNamed(t *testing.T) {
	for greeting, want := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n": "an HTTP answer",
		"SSH-2.0-OpenSSH_9.6\r\n":                               "an SSH greeting",
		"-ERR unknown command\r\n":                              "a Redis error",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			nc, err := l.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			_, _ = bufio.NewReader(nc).Peek(16)
			fmt.Fprint(nc, greeting)
		}()
		_, err = conn.Open(t.Context(), l.Addr().String(), &conn.Options{ConnectTimeout: 10 * time.Second})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", greeting, err)
		}
		l.Close()
		<-served
	}
}
