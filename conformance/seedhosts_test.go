package conformance

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/conformance/corpus"
	"github.com/sextantdb/sextant/replset"
)

// TestSeedlistsLeadToTheSet does with the cases of a replica set what the pure suite leaves out: it connects by DNS to a
// set of three, which calls itself localhost as the specification wants, and compares the hosts that the client finds.
func TestSeedlistsLeadToTheSet(t *testing.T) {
	network := replset.NewMemoryNetwork()
	replset.Run(t, replset.Options{SetName: "repl0", Host: "localhost", Network: network, Config: []replset.MemberOptions{{Port: 27017}, {Port: 27018}, {Port: 27019}}})
	if ran := seedlistsLead(t, "replica-set", network); ran < 15 {
		t.Errorf("only %d cases connect", ran)
	}
}

// TestSeedlistsLeadToTheLoadBalancer does the same with those of a load balancer.
func TestSeedlistsLeadToTheLoadBalancer(t *testing.T) {
	network := replset.NewMemoryNetwork()
	replset.Run(t, replset.Options{Network: network, LoadBalancer: &replset.LoadBalancerOptions{Name: "localhost", Port: 8000}})
	if ran := seedlistsLead(t, "load-balanced", network); ran < 4 {
		t.Errorf("only %d cases connect", ran)
	}
}

// seedlistsLead runs the cases of a directory that are to connect, and counts them.
func seedlistsLead(t *testing.T, sub string, network *replset.MemoryNetwork) (ran int) {
	t.Helper()
	dir := filepath.Join(corpus.Need(t, "initial-dns-seedlist-discovery"), sub)
	z, err := readZone()
	corpus.Check(t, err)
	files, err := corpus.Files(dir)
	corpus.Check(t, err)
	for _, path := range files {
		var test struct {
			seedlistTest
			Hosts []string
			Ping  *bool
		}
		data, err := os.ReadFile(path)
		corpus.Check(t, err)
		corpus.Check(t, json.Unmarshal(data, &test))
		if test.Error || test.Hosts == nil {
			continue
		}
		ran++
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			cfg, err := sextant.ParseURI(test.URI)
			corpus.Check(t, err)
			cfg.Resolver, cfg.TLS = z, false
			cfg.Dial = func(ctx context.Context, proto, addr string) (net.Conn, error) {
				_, port, _ := net.SplitHostPort(addr) // the names of DNS are all one host
				return network.Dial(ctx, proto, "localhost:"+port)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cl, err := sextant.ConnectConfig(ctx, cfg)
			corpus.Check(t, err)
			defer cl.Close(context.Background())
			// Monitors do not log in: the hosts are found whoever the string names.
			for found := []string(nil); !slices.Equal(found, test.Hosts); time.Sleep(time.Millisecond) {
				corpus.Check(t, cl.Refresh(ctx))
				found = nil
				for _, m := range cl.Hosts().Members {
					found = append(found, m.Address)
				}
				slices.Sort(found)
				if ctx.Err() != nil {
					t.Fatalf("hosts %q, wanted %q", found, test.Hosts)
				}
			}
			if test.Ping == nil || *test.Ping {
				_, err := cl.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}})
				corpus.Check(t, err)
			}
		})
	}
	return ran
}
