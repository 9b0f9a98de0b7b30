package cluster_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/internal/topology"
)

// records answers with the same records to every question, and counts.
type records struct {
	answer []*net.SRV
	asked  atomic.Int64
}

func (r *records) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	r.asked.Add(1)
	return "", r.answer, nil
}

// Prose test 9 of "polling SRV records for mongos discovery". Breaks if Start begins to follow DNS whatever the topology is.
func TestPollingProse9BehindALoadBalancerDNSIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const host = "test3.test.build.10gen.cc"
		r := &records{answer: []*net.SRV{
			{Target: "localhost.test.build.10gen.cc.", Port: 27017}, {Target: "localhost.test.build.10gen.cc.", Port: 27018},
		}}
		c := cluster.New(cluster.Config{
			Topology: topology.Config{Seeds: []string{"localhost.test.build.10gen.cc:27017"}, LoadBalanced: true, SRV: true},
			SRV:      &cluster.SRV{Lookup: &connstring.Lookup{Host: host}, Resolver: r},
		})
		c.Start()
		defer c.Close(context.Background())
		time.Sleep(2 * cluster.SRVInterval)
		synctest.Wait()
		if m := c.Topology().Members; r.asked.Load() != 0 || len(m) != 1 || m[0].Address != "localhost.test.build.10gen.cc:27017" {
			t.Errorf("asked %d times, members %v", r.asked.Load(), m)
		}
	})
}
