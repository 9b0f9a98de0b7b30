package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// giveUp sends a ping and gives up after a second.
func giveUp(t *testing.T, c *Conn, flags uint32) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(time.Second, cancel)
	start := time.Now()
	if _, err := c.RoundTrip(ctx, ping(c, flags)); !errors.Is(err, context.Canceled) {
		t.Fatalf("the ping ended with %v", err)
	}
	if took := time.Since(start); took != time.Second {
		t.Errorf("the caller waited %v", took)
	}
}

// pingAgain is a round trip that must succeed.
func pingAgain(t *testing.T, c *Conn) {
	t.Helper()
	m, err := c.RoundTrip(t.Context(), ping(c, 0))
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := m.Body.Lookup("n").Int32OK(); n != 2 {
		t.Errorf("the reply is %s", m.Body)
	}
}

// The cuts are those of the specification's prose test "recover partially read response": within the length, behind it,
// behind the header, within the body; and before anything.
func TestLateReplyIsDrainedWhateverPartOfItHadCome(t *testing.T) {
	for _, cut := range []int{0, 2, 4, 16, 20} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, played(t, func(p *peer) {
				p.greet()
				m := p.read()
				reply := message(1, m.RequestID, 0, doc("n", 1, "ok", 1.0))
				if cut > 0 { // a pipe hands over writes of nothing, too
					p.write(reply[:cut])
				}
				time.Sleep(1500 * time.Millisecond)
				p.write(reply[cut:])
				p.answer(p.read(), doc("n", 2, "ok", 1.0))
			}))
			giveUp(t, c, 0)
			start := time.Now()
			if err := c.Drain(start.Add(time.Second)); err != nil || c.Owes() || c.Broken() {
				t.Fatalf("cut at %d: %v, owes %v, broken %v", cut, err, c.Owes(), c.Broken())
			}
			if took := time.Since(start); took != 500*time.Millisecond {
				t.Errorf("cut at %d: drained in %v", cut, took)
			}
			pingAgain(t, c)
		})
	}
}

func TestLateReplyIsDrainedUnderTLS(t *testing.T) {
	cert, roots := certificate(t, "db1", time.Now().Add(time.Hour))
	near, far := net.Pipe()
	o := &Options{TLS: &tls.Config{RootCAs: roots}, Dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	done := make(chan struct{})
	gaveUp := make(chan struct{})
	go func() {
		defer close(done)
		p := &peer{t, tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}})}
		p.greet()
		m := p.read()
		reply := message(1, m.RequestID, 0, doc("n", 1, "ok", 1.0))
		p.write(reply[:9])
		<-gaveUp
		p.write(reply[9:])
		p.answer(p.read(), doc("n", 2, "ok", 1.0))
	}()
	c := open(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.RoundTrip(ctx, ping(c, 0)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	close(gaveUp)
	if err := c.Drain(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	pingAgain(t, c)
	<-done
}

func TestDrainEndsInTimeAndMayGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, played(t, func(p *peer) {
			p.greet()
			m := p.read()
			time.Sleep(4 * time.Second)
			p.answer(m, doc("n", 1, "ok", 1.0))
			p.answer(p.read(), doc("n", 2, "ok", 1.0))
		}))
		giveUp(t, c, 0)
		start := time.Now()
		err := c.Drain(start.Add(2 * time.Second))
		if took := time.Since(start); took != 2*time.Second || !mongoerr.IsTimeout(err) || c.Broken() || !c.Owes() {
			t.Errorf("%v after %v, broken %v, owes %v", err, took, c.Broken(), c.Owes())
		}
		if err := c.Drain(start.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		pingAgain(t, c)
	})
}

// A find whose caller has gone opens a cursor that nobody will close; of a later batch the cursor is known.
func TestDrainClosesACursorThatNobodyKnows(t *testing.T) {
	for batch, orphan := range map[string]bool{"firstBatch": true, "nextBatch": false} {
		synctest.Test(t, func(t *testing.T) {
			var killed bson.Raw
			c := open(t, played(t, func(p *peer) {
				p.greet()
				m := p.read()
				time.Sleep(1500 * time.Millisecond)
				reply, err := bson.Marshal(bson.D{{Key: "cursor", Value: bson.D{{Key: batch, Value: bson.A{}}, {Key: "id", Value: int64(77)},
					{Key: "ns", Value: "shop.people.old"}}}, {Key: "ok", Value: 1.0}})
				if err != nil {
					t.Error(err)
				}
				p.answer(m, reply)
				if m = p.read(); m != nil && string(wire.CommandName(message(0, 0, 0, m.Body))) == "killCursors" {
					killed = m.Body.Clone()
					p.answer(m, doc("ok", 1.0))
					m = p.read()
				}
				p.answer(m, doc("n", 2, "ok", 1.0))
			}))
			giveUp(t, c, 0)
			if err := c.Drain(time.Now().Add(time.Minute)); err != nil || c.Owes() {
				t.Fatal(err)
			}
			pingAgain(t, c)
			name, _ := killed.Lookup("killCursors").StringValueOK()
			id, _ := killed.Lookup("cursors", "0").Int64OK()
			db, _ := killed.Lookup("$db").StringValueOK()
			if was := name == "people.old" && id == 77 && db == "shop"; was != orphan {
				t.Errorf("%s: sent %s", batch, killed)
			}
		})
	}
}

func TestDrainRefusesAReplyToAnotherRequest(t *testing.T) {
	for name, flags := range map[string]uint32{"another id": 0, "a stream": wire.MoreToCome} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, played(t, func(p *peer) {
				p.greet()
				m := p.read()
				time.Sleep(1500 * time.Millisecond)
				id := m.RequestID
				if flags == 0 {
					id++
				}
				p.write(message(1, id, flags, doc("ok", 1.0)))
			}))
			giveUp(t, c, 0)
			if err := c.Drain(time.Now().Add(time.Minute)); err == nil || !c.Broken() || !strings.Contains(err.Error(), "late reply") {
				t.Errorf("%s: %v, broken %v", name, err, c.Broken())
			}
		})
	}
}

// A request that was sent in part can not be finished, and a stream may never end.
func TestWhatCannotBeDrainedIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half := open(t, played(t, func(p *peer) {
			p.greet()
			_, _ = p.nc.Read(make([]byte, 10)) // takes ten bytes of the request and no more
			time.Sleep(time.Hour)
		}))
		giveUp(t, half, 0)
		stream := open(t, played(t, func(p *peer) { p.greet(); p.read(); p.hold() }))
		giveUp(t, stream, wire.ExhaustAllowed)
		for name, c := range map[string]*Conn{"half a request": half, "a stream": stream} {
			if !c.Broken() || c.Owes() {
				t.Errorf("%s: broken %v, owes %v", name, c.Broken(), c.Owes())
			}
		}
	})
}

// The context may end at the moment at which the reply comes: whoever wins, the next use must not meet the old deadline.
func TestContextThatEndsWithTheReplyLeavesAUsableConnection(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, played(t, func(p *peer) {
				p.greet()
				m := p.read()
				time.Sleep(time.Second)
				p.answer(m, doc("n", 1, "ok", 1.0))
				p.answer(p.read(), doc("n", 2, "ok", 1.0))
			}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(time.Second, cancel)
			_, err := c.RoundTrip(ctx, ping(c, 0))
			if (err != nil) != c.Owes() || c.Broken() {
				t.Fatalf("%v, owes %v, broken %v", err, c.Owes(), c.Broken())
			}
			if err := c.Drain(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			pingAgain(t, c)
		})
	}
}
