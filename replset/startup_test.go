package replset

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// settledGoroutines waits until no more goroutines run than before.
func settledGoroutines(t *testing.T, before int) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}

func TestTwoHundredSetsInARowLeaveNothing(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	run := func(n int) {
		for i := range n {
			s, err := Start(t.Context(), Options{Members: 1 + 2*(i%2)})
			if err != nil {
				t.Fatal(err)
			}
			c, err := tryDial(t.Context(), s, s.Primary().Index(), "app")
			if err != nil {
				t.Fatal(err)
			}
			c.must(t, "t", insert(1, majority()))
			s.Close()
			c.nc.Close()
		}
	}
	run(10)
	goroutines, memory := runtime.NumGoroutine(), heap()
	run(190)
	settledGoroutines(t, goroutines)
	if grown := heap() - memory; grown > 4<<20 {
		t.Errorf("after 190 more sets the heap is %d kB larger", grown>>10)
	}
}

func TestTwentySetsAtOnceAreSeparate(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			// Nothing is to be elected here, however long so many sets make a primary silent.
			s, err := Start(ctx, Options{Members: 1 + 2*(i%2), ElectionTimeout: 10 * time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			p, err := s.WaitPrimary(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			c, err := tryDial(ctx, s, p.Index(), "app")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.nc.Close()
			if _, err := c.run("t", insert(i, w(1))); err != nil {
				t.Error(err)
				return
			}
			if got := c.ids(t); len(got) != 1 {
				t.Errorf("set %d holds %v", i, got)
			}
		})
	}
	wg.Wait()
}

func TestCloseWhileClientsAreBusy(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		s, err := Start(t.Context(), Options{Members: 3})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 8 {
			c, err := tryDial(t.Context(), s, s.Primary().Index(), "app")
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer c.nc.Close()
				for k := 0; ; k++ {
					if _, err := c.run("t", insert(fmt.Sprintf("%d-%d", g, k), majority())); err != nil {
						return
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		begun := time.Now()
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() { s.Close() })
		}
		closers.Wait()
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		wg.Wait()
	}
	settledGoroutines(t, before)
}

func TestKillAndRestartInALoopKeepTheMember(t *testing.T) {
	onFakeTime(t, Options{Members: 3}, func(t *testing.T, s *Set) {
		c := dialRaw(t, s, primaryIndex(t, s), "app")
		c.must(t, "t", insert("first", w(3)))
		for k := range 30 {
			victim := (primaryIndex(t, s) + 1 + k%2) % 3
			if err := s.Kill(victim); err != nil {
				t.Fatal(err)
			}
			if err := s.Restart(victim); err != nil {
				t.Fatal(err)
			}
		}
		dialRaw(t, s, primaryIndex(t, s), "app").must(t, "t", insert("last", bson.D{{Key: "w", Value: 3}, {Key: "wtimeout", Value: 10000}}))
	})
}

func TestKillRestartAndCloseFromManySidesNeitherHangNorPanic(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := Start(t.Context(), Options{Members: 3, ElectionTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for k := range 15 {
				switch (g + k) % 5 {
				case 0:
					_ = s.Kill(k % 3)
				case 1, 2:
					_ = s.Restart((k + g) % 3)
				case 3:
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					_ = s.StepDown(ctx)
					cancel()
				case 4:
					_ = s.Partition([]int{k % 3})
					_ = s.Hang(g%3, true)
					_ = s.Hang(g%3, false)
					s.Heal()
				}
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	s.Close()
	wg.Wait()
	if err := s.Kill(0); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Kill after Close: %v", err)
	}
	settledGoroutines(t, before)
}

func TestPortInUseIsAClearError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, text, _ := net.SplitHostPort(l.Addr().String())
	port, _ := strconv.Atoi(text)
	before := runtime.NumGoroutine()
	_, err = Start(t.Context(), Options{Members: 2, Config: []MemberOptions{{}, {Port: port}}})
	if err == nil || !strings.Contains(err.Error(), "member 1 cannot listen") || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("%v", err)
	}
	settledGoroutines(t, before)
}

func BenchmarkFirstAcknowledgedWrite(b *testing.B) {
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			for b.Loop() {
				s, err := Start(b.Context(), Options{Members: members})
				if err != nil {
					b.Fatal(err)
				}
				c, err := tryDial(b.Context(), s, s.Primary().Index(), "bench")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := c.run("t", insert(1, majority())); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				c.nc.Close()
				s.Close()
				b.StartTimer()
			}
		})
	}
}
