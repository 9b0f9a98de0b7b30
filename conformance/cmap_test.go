package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/pool"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// The pool tests of the specification "connection monitoring and pooling", unit and integration. Both kinds run over an
// embedded member on a network in memory and on fake time, so that "wait 400 ms" costs nothing.

// cmapFile is one file of either style.
type cmapFile struct {
	Style       string           `json:"style"`
	FailPoint   json.RawMessage  `json:"failPoint"`
	PoolOptions cmapOptions      `json:"poolOptions"`
	Operations  []cmapOperation  `json:"operations"`
	Error       *cmapError       `json:"error"`
	Events      []map[string]any `json:"events"`
	Ignore      []string         `json:"ignore"`
}

// cmapOptions leaves out backgroundThreadIntervalMS: the maintainer works when there is something to do, not by intervals.
type cmapOptions struct {
	AppName            string `json:"appName"`
	MaxPoolSize        *int   `json:"maxPoolSize"`
	MinPoolSize        int    `json:"minPoolSize"`
	MaxConnecting      int    `json:"maxConnecting"`
	MaxIdleTimeMS      int    `json:"maxIdleTimeMS"`
	WaitQueueTimeoutMS int    `json:"waitQueueTimeoutMS"`
}

type cmapOperation struct {
	Name       string `json:"name"`
	Thread     string `json:"thread"`
	Target     string `json:"target"`
	Label      string `json:"label"`
	Connection string `json:"connection"`
	Event      string `json:"event"`
	Count      int    `json:"count"`
	Timeout    int    `json:"timeout"`
	MS         int    `json:"ms"`
	Interrupt  bool   `json:"interruptInUseConnections"`
}

// cmapError names the kind of an error. Its message is the wording of one driver and is held to nothing.
type cmapError struct {
	Type string `json:"type"`
}

func loadCMAP(style string) func(dir string) ([]Case, error) {
	return func(dir string) ([]Case, error) {
		return load(dir, "cmap-format", func(name string, f *cmapFile) []Case {
			if f.Style != style {
				return nil
			}
			return []Case{{Name: name, Run: f.run, Timed: true}}
		})
	}
}

// flipCMAP makes a file expect another last event.
func flipCMAP(name string, file map[string]any) []string {
	events, ok := file["events"].([]any)
	if !ok {
		return nil
	}
	events[len(events)-1].(map[string]any)["type"] = "Flipped"
	return []string{name}
}

// cmapRun is a file being played.
type cmapRun struct {
	pool    *pool.Pool
	threads map[string]*cmapThread
	closing sync.WaitGroup

	mu     sync.Mutex // guards what follows
	conns  map[string]*pool.Conn
	out    []*pool.Conn
	events []event.PoolEvent
	told   chan struct{} // closed and replaced at each event
}

type cmapThread struct {
	ops  chan cmapOperation
	done chan struct{}
	err  error // of the first operation that failed; read after done
}

func (f cmapFile) run() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	network := replset.NewMemoryNetwork()
	set, err := replset.Start(ctx, replset.Options{Network: network})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	if err := f.enableFailPoint(ctx, set, network); err != nil {
		return err
	}
	r := &cmapRun{threads: map[string]*cmapThread{}, conns: map[string]*pool.Conn{}, told: make(chan struct{})}
	r.pool = pool.New(set.Member(0).Addr(), f.options(r, set.Member(0).Addr(), network))
	r.pool.Create()
	defer r.end()
	failure := r.play(ctx, f.Operations)
	if err := f.Error.match(failure); err != nil {
		return err
	}
	return r.compare(f.Events, f.Ignore)
}

func (f *cmapFile) options(r *cmapRun, addr string, network *replset.MemoryNetwork) pool.Options {
	o := pool.Options{
		Max: deref(f.PoolOptions.MaxPoolSize, 100), Min: f.PoolOptions.MinPoolSize, MaxConnecting: f.PoolOptions.MaxConnecting,
		MaxIdle:     time.Duration(f.PoolOptions.MaxIdleTimeMS) * time.Millisecond,
		WaitTimeout: time.Duration(f.PoolOptions.WaitQueueTimeoutMS) * time.Millisecond,
		Publish:     r.note,
	}
	co := &conn.Options{Dial: network.Dial, AppName: f.PoolOptions.AppName}
	o.Open = func(ctx context.Context, _ func(bson.ObjectID)) (*conn.Conn, error) { return conn.Open(ctx, addr, co) }
	// What the cluster makes of a member that refuses a handshake; it keeps the pool when the member is only overloaded.
	o.Failed = func(err error, _ uint64, _ *bson.ObjectID) {
		if !mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) {
			r.pool.Clear(err, false)
		}
	}
	return o
}

func (f *cmapFile) enableFailPoint(ctx context.Context, set *replset.Set, network *replset.MemoryNetwork) error {
	if f.FailPoint == nil {
		return nil
	}
	command, err := rawOf(f.FailPoint)
	if err != nil {
		return err
	}
	cl, err := sextant.ConnectConfig(ctx, &sextant.Config{Hosts: []string{set.Member(0).Addr()}, DirectConnection: true, Dial: network.Dial})
	if err != nil {
		return err
	}
	_, err = cl.Database("admin").RunCommand(ctx, command)
	return errors.Join(err, cl.Close(ctx))
}

// play performs the operations until one fails on the main thread.
func (r *cmapRun) play(ctx context.Context, ops []cmapOperation) error {
	for _, op := range ops {
		if op.Thread != "" {
			r.threads[op.Thread].ops <- op
			continue
		}
		if err := r.perform(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

func (r *cmapRun) perform(ctx context.Context, op cmapOperation) error {
	switch op.Name {
	case "start":
		th := &cmapThread{ops: make(chan cmapOperation, 10), done: make(chan struct{})}
		r.threads[op.Target] = th
		go r.serve(ctx, th)
	case "waitForThread":
		return r.join(op.Target)
	case "wait":
		time.Sleep(time.Duration(op.MS) * time.Millisecond)
	case "waitForEvent":
		return r.await(op)
	case "checkOut":
		c, err := r.pool.CheckOut(ctx)
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.conns[op.Label], r.out = c, append(r.out, c)
	case "checkIn":
		r.mu.Lock()
		c := r.conns[op.Connection]
		r.mu.Unlock()
		c.CheckIn()
	case "clear":
		r.pool.Clear(errors.New("the test clears the pool"), op.Interrupt)
	case "ready":
		r.pool.Ready()
	case "close":
		// Close also waits for the connections in use, which the test returns later.
		r.closing.Go(func() { r.pool.Close(ctx) })
		return r.await(cmapOperation{Event: string(event.PoolClosed), Count: 1})
	default:
		return fmt.Errorf("unknown operation %q", op.Name)
	}
	return nil
}

func (r *cmapRun) serve(ctx context.Context, th *cmapThread) {
	defer close(th.done)
	for op := range th.ops {
		if err := r.perform(ctx, op); err != nil && th.err == nil {
			th.err = err
		}
	}
}

// join ends a thread and is its error.
func (r *cmapRun) join(name string) error {
	th := r.threads[name]
	delete(r.threads, name)
	close(th.ops)
	<-th.done
	return th.err
}

// end gives back what is still in use, closes the pool and ends the threads.
func (r *cmapRun) end() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.pool.Close(ctx)
	for name := range r.threads {
		_ = r.join(name) // what the test wanted to know of it, it has asked
	}
	r.mu.Lock()
	out := r.out
	r.mu.Unlock()
	for _, c := range out {
		c.CheckIn()
	}
	r.closing.Wait()
}

func (r *cmapRun) note(e *event.PoolEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, *e)
	close(r.told)
	r.told = make(chan struct{})
}

// await waits until an event has occurred so many times since the start of the test.
func (r *cmapRun) await(op cmapOperation) error {
	limit := 10 * time.Second
	if op.Timeout > 0 {
		limit = time.Duration(op.Timeout) * time.Millisecond
	}
	late := time.After(limit)
	for {
		r.mu.Lock()
		n, told := 0, r.told
		for _, e := range r.events {
			if string(e.Type) == op.Event {
				n++
			}
		}
		r.mu.Unlock()
		if n >= op.Count {
			return nil
		}
		select {
		case <-told:
		case <-late:
			return fmt.Errorf("%d times %s within %v, want %d", n, op.Event, limit, op.Count)
		}
	}
}

// match says whether the error is of the kind that the file names, and names the server.
func (want *cmapError) match(err error) error {
	if want == nil {
		return err
	}
	e, _ := errors.AsType[*mongoerr.Error](err)
	checkout := e != nil && e.Stage == mongoerr.StageCheckout
	kinds := map[string]bool{
		"PoolClosedError":       checkout && errors.Is(err, mongoerr.ErrPoolClosed),
		"WaitQueueTimeoutError": checkout && mongoerr.IsTimeout(err) && !mongoerr.IsNetwork(err),
	}
	if !kinds[want.Type] || e.Server == "" {
		return fmt.Errorf("the error is %w, want a %s", err, want.Type)
	}
	return nil
}

// compare holds the events that are not ignored to those of the file, which may be fewer.
func (r *cmapRun) compare(want []map[string]any, ignore []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []map[string]any
	for _, e := range r.events {
		if !slices.Contains(ignore, string(e.Type)) {
			got = append(got, cmapEvent(e))
		}
	}
	for i, w := range want {
		if i >= len(got) {
			return fmt.Errorf("event %d is missing: %v\ngot %v", i, w, got)
		}
		if !matches(w, got[i]) {
			return fmt.Errorf("event %d is %v, want %v\nall: %v", i, got[i], w, got)
		}
	}
	return nil
}

// cmapEvent writes an event as the files do, with the fields that its type has, set or not.
func cmapEvent(e event.PoolEvent) map[string]any {
	out := map[string]any{"type": string(e.Type), "address": e.Address}
	switch e.Type {
	case event.PoolCreated:
		out["options"] = map[string]any{"maxPoolSize": float64(e.MaxSize), "minPoolSize": float64(e.MinSize),
			"maxIdleTimeMS": float64(e.MaxIdle.Milliseconds())}
	case event.PoolCleared:
		out["interruptInUseConnections"] = e.Interrupt
	case event.CheckOutFailed:
		out["reason"], out["duration"] = e.Reason, float64(e.Duration.Milliseconds())
	case event.ConnectionReady, event.ConnectionCheckOut:
		out["connectionId"], out["duration"] = float64(e.ConnectionID), float64(e.Duration.Milliseconds())
	case event.ConnectionClosed:
		out["connectionId"], out["reason"] = float64(e.ConnectionID), e.Reason
	case event.ConnectionCreated, event.ConnectionCheckIn:
		out["connectionId"] = float64(e.ConnectionID)
	}
	return out
}

// matches is the specification's MATCH: 42 is anything that is there, objects may have more fields.
func matches(want, got any) bool {
	if want == 42.0 || want == "42" {
		return got != nil && got != ""
	}
	fields, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(want, got)
	}
	have, ok := got.(map[string]any)
	for key, w := range fields {
		if !ok || !matches(w, have[key]) {
			return false
		}
	}
	return ok
}
