package sextant_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// persona is a set of three that claims a version, in a bubble, and a client that counts what its pools do.
type persona struct {
	set              *replset.Set
	cl               *sextant.Client
	people           *sextant.Collection[bson.D]
	cleared, created atomic.Int64
	awaited          atomic.Int64 // heartbeats that waited on the server
	attempts         atomic.Int64 // inserts
}

// inVersions runs a test for a server of old that closes and labels nothing, and for one of today.
func inVersions(t *testing.T, options string, test func(t *testing.T, p *persona, old bool)) {
	t.Helper()
	for _, version := range []string{"4.0", "4.2", "8.0"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &persona{}
				network := replset.NewMemoryNetwork()
				p.set = must[*replset.Set](t)(replset.Start(t.Context(), replset.Options{Network: network, Version: version,
					Config: []replset.MemberOptions{{Name: "m0", Port: 27017}, {Name: "m1", Port: 27017}, {Name: "m2", Port: 27017}}}))
				defer p.set.Close()
				c := must[*sextant.Config](t)(sextant.ParseURI(p.set.URI() + options))
				c.Dial = network.Dial
				c.Monitor = &event.Monitor{
					Pool: func(e *event.PoolEvent) {
						switch e.Type {
						case event.PoolCleared:
							p.cleared.Add(1)
						case event.ConnectionCreated:
							p.created.Add(1)
						}
					},
					CommandStarted: func(_ context.Context, e *event.CommandStartedEvent) {
						if e.Name == "insert" {
							p.attempts.Add(1)
						}
					},
					Heartbeat: func(e *event.HeartbeatEvent) {
						if e.Awaited {
							p.awaited.Add(1)
						}
					},
				}
				p.cl = must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), c))
				defer p.cl.Close(context.Background())
				p.people = p.cl.Database("shop").Collection("people")
				p.insert(t, 0)
				test(t, p, version == "4.0")
			})
		})
	}
}

func (p *persona) insert(t *testing.T, id int) {
	t.Helper()
	if _, err := p.people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
		t.Fatal(err)
	}
}

// A server before 4.2 closes the connections of clients when it ceases to be primary: the pool is of no use then. A later
// one keeps them (server discovery and monitoring, "not writable primary and node is recovering").
func TestNotWritablePrimaryClearsThePoolOfOldServersOnly(t *testing.T) {
	inVersions(t, "", func(t *testing.T, p *persona, old bool) {
		if err := p.set.FailCommand(0, &replset.FailCommand{Commands: []string{"insert"}, ErrorCode: mongoerr.CodeNotWritablePrimary, Times: 1}); err != nil {
			t.Fatal(err)
		}
		p.insert(t, 1)
		synctest.Wait()
		if n := p.cleared.Load(); (n == 1) != old || n > 1 {
			t.Errorf("the pool was cleared %d times", n)
		}
		if n := p.attempts.Load(); n != 3 {
			t.Errorf("%d attempts at two inserts", n)
		}
	})
}

func TestClientSurvivesAStepDownWithAndWithoutItsConnections(t *testing.T) {
	inVersions(t, "", func(t *testing.T, p *persona, old bool) {
		before := p.set.Primary().Index()
		if err := p.set.StepDown(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.insert(t, 1)
		time.Sleep(15 * time.Second)
		created := p.created.Load()
		for p.set.Primary().Index() != before { // back, so that the first one's connections are wanted again
			if err := p.set.StepDown(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(15 * time.Second)
		}
		p.insert(t, 2)
		if again := p.created.Load() > created; again != old {
			t.Errorf("connections were created anew: %v", again)
		}
		if n, err := p.people.CountDocuments(t.Context(), bson.D{}); err != nil || n != 3 {
			t.Errorf("%d documents, %v", n, err)
		}
	})
}

// Servers before 4.4 label nothing: the driver adds the label itself (retryable writes specification).
func TestRetryableWriteErrorIsLabelledWhateverTheServer(t *testing.T) {
	inVersions(t, "", func(t *testing.T, p *persona, old bool) {
		if err := p.set.FailCommand(replset.All, &replset.FailCommand{Commands: []string{"insert"}, ErrorCode: mongoerr.CodePrimarySteppedDown, Times: 2}); err != nil {
			t.Fatal(err)
		}
		_, err := p.people.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
		if !mongoerr.HasLabel(err, mongoerr.LabelRetryableWrite) || p.attempts.Load() != 3 {
			t.Errorf("%d attempts, %v", p.attempts.Load()-1, err)
		}
	})
}

func TestClientPollsServersThatDoNotStream(t *testing.T) {
	inVersions(t, "&heartbeatFrequencyMS=1000", func(t *testing.T, p *persona, _ bool) {
		time.Sleep(10 * time.Second)
		if streams, want := p.awaited.Load() > 0, strings.HasSuffix(t.Name(), "8.0"); streams != want {
			t.Errorf("heartbeats that waited: %d", p.awaited.Load())
		}
	})
}
