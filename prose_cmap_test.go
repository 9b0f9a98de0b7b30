package sextant_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// The prose tests of the specification "connection monitoring and pooling". Each says which change of the driver would
// break it.

// poolFields are the pool options of the specification, as fields of Config.
var poolFields = []string{"MaxPoolSize", "MinPoolSize", "MaxIdleTime", "MaxConnecting", "WaitQueueTimeout"}

// pooled is a configuration with a value of its own for each pool option.
func pooled(c *sextant.Config) {
	c.MaxPoolSize, c.MinPoolSize, c.MaxConnecting = new(7), 1, 3
	c.MaxIdleTime, c.WaitQueueTimeout = 90*time.Second, 4*time.Second
}

// Broken by a pool option that is missing in Config, or that a database or a collection could set for itself.
func TestProseCMAP1PoolOptionsBelongToTheClient(t *testing.T) {
	for _, name := range poolFields {
		if _, ok := reflect.TypeFor[sextant.Config]().FieldByName(name); !ok {
			t.Errorf("Config has no %s", name)
		}
		for _, handle := range []reflect.Type{reflect.TypeFor[sextant.DatabaseOptions](), reflect.TypeFor[sextant.CollectionOptions]()} {
			if _, ok := handle.FieldByName(name); ok {
				t.Errorf("%v has %s", handle, name)
			}
		}
	}
}

// Broken by a cluster that makes the pool of one member with other options than those of another, or drops one on the way.
func TestProseCMAP2AllPoolsOfAClientHaveTheSameOptions(t *testing.T) {
	inSet(t, pooled, func(t *testing.T, b *bubble) {
		if err := b.cl.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, m := range b.set.Members() {
			created := b.log.pools(event.PoolCreated, m.Addr(), time.Time{})
			if len(created) != 1 {
				t.Fatalf("%d pools of %s", len(created), m.Addr())
			}
			e := created[0].E
			if e.MaxSize != 7 || e.MinSize != 1 || e.MaxConnecting != 3 || e.MaxIdle != 90*time.Second || e.WaitTimeout != 4*time.Second {
				t.Errorf("the pool of %s has %+v", m.Addr(), e)
			}
		}
	})
}

// Broken by a pool option that the connection string does not know, or that ParseURI does not take over.
func TestProseCMAP3PoolOptionsCanBeGivenInAURI(t *testing.T) {
	got, err := sextant.ParseURI("mongodb://h/?maxPoolSize=7&minPoolSize=1&maxIdleTimeMS=90000&maxConnecting=3&waitQueueTimeoutMS=4000")
	if err != nil {
		t.Fatal(err)
	}
	want := &sextant.Config{}
	pooled(want)
	for _, name := range poolFields {
		g, w := reflect.ValueOf(*got).FieldByName(name), reflect.ValueOf(*want).FieldByName(name)
		if !reflect.DeepEqual(g.Interface(), w.Interface()) {
			t.Errorf("%s is %v, want %v", name, g, w)
		}
	}
	if len(got.Warnings) > 0 {
		t.Errorf("warnings %v", got.Warnings)
	}
}

// Broken by a Monitor whose Pool callback does not get the events of a pool, or not in their order.
func TestProseCMAP4PoolEventsAreToldToTheMonitor(t *testing.T) {
	inSet(t, nil, func(t *testing.T, b *bubble) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		b.cl.Close(t.Context())
		synctest.Wait()
		var got []string
		for _, e := range b.log.pool {
			if e.E.Address == b.set.Member(0).Addr() {
				got = append(got, strings.TrimPrefix(string(e.E.Type), "Connection"))
			}
		}
		want := []string{"PoolCreated", "PoolReady", "CheckOutStarted", "Created", "Ready", "CheckedOut", "CheckedIn"}
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) || got[len(got)-1] != "PoolClosed" {
			t.Errorf("events %v", got)
		}
	})
}

// Broken by a pool that tells no CheckOutFailed when the dial for a waiter fails, or one with the reason timeout.
func TestProseCMAP5FailedSetupIsAConnectionErrorOfTheCheckOut(t *testing.T) {
	inSet(t, func(c *sextant.Config) { c.RetryWrites = new(false) }, func(t *testing.T, b *bubble) {
		if err := b.cl.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the monitors have said hello, and no pool has a connection
		b.fail(t, 0, replset.FailCommand{Commands: []string{"isMaster", "hello"}, CloseConnection: true, Times: 1})
		err := b.insert(t)
		if e, ok := errors.AsType[*mongoerr.Error](err); !ok || e.Stage != mongoerr.StageHandshake {
			t.Fatalf("the insert failed with %v", err)
		}
		failed := b.log.pools(event.CheckOutFailed, b.set.Member(0).Addr(), b.start)
		if len(failed) != 1 || failed[0].E.Reason != event.ReasonConnectionError || failed[0].E.Err == nil {
			t.Errorf("check-outs that failed: %+v", failed)
		}
	})
}
