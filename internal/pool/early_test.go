package pool_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/pool"
)

// unready is a pool that has not worked yet.
func unready(m *member, o pool.Options) (*pool.Pool, *journal) {
	j := &journal{}
	o.Publish = j.note
	opts := &conn.Options{Dial: m.dial}
	o.Open = func(ctx context.Context, _ func(bson.ObjectID)) (*conn.Conn, error) {
		return conn.Open(ctx, "db1:27017", opts)
	}
	return pool.New("db1:27017", o), j
}

func TestEarlyDialIsTakenOverByTheFirstThatIsNeeded(t *testing.T) {
	for name, head := range map[string]time.Duration{"under way": time.Second, "done": 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := &member{delay: 2500 * time.Millisecond}
			p, j := unready(m, pool.Options{Max: 5})
			p.Prepare()
			p.Prepare() // does nothing
			time.Sleep(head)
			if s := p.Stats(); s.Total != 0 {
				t.Errorf("%s: stats %+v of a pool that is not ready", name, s)
			}
			p.Ready()
			start := time.Now()
			c := checkOut(t, p)
			if took, want := time.Since(start), max(m.delay-head, 0); took != want || c.ID() != 1 || len(m.socks) != 1 {
				t.Errorf("%s: connection %d of %d after %v, want the first after %v", name, c.ID(), len(m.socks), took, want)
			}
			sameEvents(t, j.take(), "PoolCreated", "PoolReady", "CheckOutStarted", "Created", "Ready", "CheckedOut")
			c.CheckIn()
			closePool(t, p)
		})
	}
}

func TestEarlyDialThatNobodyNeedsIsClosed(t *testing.T) {
	for name, end := range map[string]func(p *pool.Pool){
		"in time":   func(*pool.Pool) { time.Sleep(2 * time.Second) },
		"withdrawn": func(p *pool.Pool) { p.Withdraw() },
		"cleared":   func(p *pool.Pool) { p.Clear(errors.New("down"), false) },
		"closed":    func(p *pool.Pool) { p.Close(context.Background()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &member{}
			p, _ := unready(m, pool.Options{Max: 5})
			p.Prepare()
			synctest.Wait()
			end(p)
			synctest.Wait()
			m.mu.Lock()
			_, err := m.socks[0].Write([]byte{1})
			m.mu.Unlock()
			if err == nil {
				t.Errorf("%s: the socket is open", name)
			}
			p.Ready()
			p.Prepare() // once in a life
			synctest.Wait()
			if len(m.socks) != 1 {
				t.Errorf("%s: %d sockets", name, len(m.socks))
			}
			closePool(t, p)
		})
	}
}

func TestEarlyDialThatFailedBeforeItWasNeededIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{fail: errors.New("refused")}
		p, _ := unready(m, pool.Options{Max: 5})
		p.Prepare()
		synctest.Wait()
		m.fail = nil
		p.Ready()
		checkOut(t, p).CheckIn()
		closePool(t, p)
	})
}

func TestCloseEndsAnEarlyDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{delay: time.Hour}
		p, _ := unready(m, pool.Options{Max: 5})
		p.Prepare()
		synctest.Wait()
		start := time.Now()
		closePool(t, p)
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
}
