package sextant_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// cutScene is a set of one member in a bubble, a client of it, and what the client told of itself.
type cutScene struct {
	set      *replset.Set
	cl       *sextant.Client
	people   *sextant.Collection[bson.D]
	attempts atomic.Int64 // commands of interest that were sent
	cleared  atomic.Int64 // pools cleared
	request  atomic.Int64 // cut the next insert after that many bytes of it; -1: do not
}

// newCutScene makes it with the options added to the client's URI.
func newCutScene(t *testing.T, options, command string) *cutScene {
	t.Helper()
	s := &cutScene{}
	s.request.Store(-1)
	network := replset.NewMemoryNetwork()
	s.set = must[*replset.Set](t)(replset.Start(t.Context(), replset.Options{Network: network, Config: []replset.MemberOptions{{Name: "m", Port: 27017}}}))
	c := must[*sextant.Config](t)(sextant.ParseURI(s.set.URI() + options))
	c.Dial = func(ctx context.Context, n, addr string) (net.Conn, error) {
		nc, err := network.Dial(ctx, n, addr)
		return &cutConn{nc, s}, err
	}
	c.Monitor = &event.Monitor{
		CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.Name == command {
				s.attempts.Add(1)
			}
		},
		Pool: func(e *event.PoolEvent) {
			if e.Type == event.PoolCleared {
				s.cleared.Add(1)
			}
		},
	}
	s.cl = must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), c))
	s.people = s.cl.Database("shop").Collection("people")
	return s
}

func (s *cutScene) close(t *testing.T) {
	t.Helper()
	if err := s.cl.Close(context.Background()); err != nil {
		t.Error(err)
	}
	s.set.Close()
}

// cutConn drops the connection in the middle of an insert when the scene says so.
type cutConn struct {
	net.Conn
	s *cutScene
}

func (c *cutConn) Write(b []byte) (int, error) {
	n := c.s.request.Load()
	if n < 0 || !bytes.Contains(b, []byte("\x02insert\x00")) || !c.s.request.CompareAndSwap(n, -1) {
		return c.Conn.Write(b)
	}
	k, _ := c.Conn.Write(b[:min(int(n), len(b))])
	c.Conn.Close()
	return k, syscall.ECONNRESET
}

// perByte calls try with the cut at each byte of an answer, until the answer is over before the cut comes. It returns how
// many bytes the answer has.
func (s *cutScene) perByte(t *testing.T, try func(n int64) error) int64 {
	t.Helper()
	for n := int64(0); ; n++ {
		s.attempts.Store(0)
		s.cleared.Store(0)
		if err := s.set.CutAfter(0, n); err != nil {
			t.Fatal(err)
		}
		err := try(n)
		synctest.Wait()
		if err == nil && s.attempts.Load() == 1 {
			if err := s.set.CutAfter(0, -1); err != nil {
				t.Fatal(err)
			}
			if s.cleared.Load() != 0 {
				t.Errorf("nothing was cut, and the pool was cleared")
			}
			return n
		}
		if s.cleared.Load() != 1 {
			t.Errorf("cut after %d bytes: the pool was cleared %d times", n, s.cleared.Load())
		}
		if t.Failed() {
			t.Fatalf("at byte %d", n)
		}
	}
}

func TestRetryableInsertSurvivesACutAtEveryByteOfItsReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCutScene(t, "", "insert")
		defer s.close(t)
		size := s.perByte(t, func(n int64) error {
			_, err := s.people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: n}})
			if err != nil {
				t.Errorf("cut after %d bytes: %v", n, err)
			}
			return err
		})
		if n, err := s.people.CountDocuments(t.Context(), bson.D{}); err != nil || n != size+1 || size < 100 {
			t.Errorf("%d documents after %d inserts, %v", n, size+1, err)
		}
	})
}

func TestFindSurvivesACutAtEveryByteOfItsReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCutScene(t, "", "find")
		defer s.close(t)
		must[*sextant.InsertOneResult](t)(s.people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 7}}))
		s.perByte(t, func(n int64) error {
			d, err := s.people.FindOne(t.Context(), bson.D{})
			if err != nil || len(d) != 1 {
				t.Errorf("cut after %d bytes: %v, %v", n, d, err)
			}
			return err
		})
	})
}

// A write that must not be tried again is done once, and the caller learns where it was lost.
func TestCutAtEveryByteOfAnUnretryableWriteIsToldAndNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCutScene(t, "", "update")
		defer s.close(t)
		must[*sextant.InsertOneResult](t)(s.people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 7}, {Key: "n", Value: int64(0)}}))
		size := s.perByte(t, func(n int64) error {
			_, err := s.people.UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}})
			if err == nil {
				return nil
			}
			e, ok := err.(*mongoerr.Error)
			if !ok || !mongoerr.IsNetwork(err) || e.Stage != mongoerr.StageRead || e.Server != "m:27017" || e.Attempts > 1 || s.attempts.Load() != 1 {
				t.Errorf("cut after %d bytes: %#v", n, err)
			}
			if words := "closed the connection in the middle of a reply"; n > 0 && !strings.Contains(err.Error(), words) {
				t.Errorf("cut after %d bytes: %v", n, err)
			}
			return err
		})
		d := must[bson.D](t)(s.people.FindOne(t.Context(), bson.D{}))
		if n, _ := d.Get("n"); n != size+1 {
			t.Errorf("incremented %v times by %d updates", n, size+1)
		}
	})
}

func TestWithoutRetriesACutInsertIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCutScene(t, "&retryWrites=false", "insert")
		defer s.close(t)
		size := s.perByte(t, func(n int64) error {
			_, err := s.people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: n}})
			if err != nil && !mongoerr.IsNetwork(err) {
				t.Errorf("cut after %d bytes: %v", n, err)
			}
			return err
		})
		if n, err := s.people.CountDocuments(t.Context(), bson.D{}); err != nil || n != size+1 {
			t.Errorf("%d documents after %d inserts, %v", n, size+1, err)
		}
	})
}

// An insert that is cut off on its way there was never done: it is tried again, and done once.
func TestRetryableInsertSurvivesACutAtEveryByteOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCutScene(t, "", "insert")
		defer s.close(t)
		must[*sextant.InsertOneResult](t)(s.people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: -1}}))
		const size = 150 // the request has more; all of it gets there then, and the answer does not
		for n := range int64(size) {
			s.attempts.Store(0)
			s.request.Store(n)
			if _, err := s.people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: n}}); err != nil || s.attempts.Load() != 2 {
				t.Fatalf("cut after %d bytes: %d attempts, %v", n, s.attempts.Load(), err)
			}
		}
		if n, err := s.people.CountDocuments(t.Context(), bson.D{}); err != nil || n != size+1 {
			t.Errorf("%d documents after %d inserts, %v", n, size+1, err)
		}
	})
}
