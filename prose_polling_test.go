package sextant_test

// The prose tests of the specification "polling SRV records for mongos discovery", by their numbers, on fake time.

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
)

const (
	test1 = "test1.test.build.10gen.cc"
	test3 = "test3.test.build.10gen.cc"
	own22 = "_customname._tcp.test22.test.build.10gen.cc"
)

// at are addresses of the specification's one host.
func at(ports ...string) []string {
	out := make([]string, len(ports))
	for i, p := range ports {
		out[i] = "localhost.test.build.10gen.cc:" + p
	}
	return out
}

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// follower is a client that found mongos in DNS.
type follower struct {
	dns   *dns
	nodes routers
	log   lockedBuffer
	cl    *sextant.Client
}

// follow runs a test with a client of a string, on fake time, that has just found its hosts. change may be nil.
func follow(t *testing.T, uri string, change func(f *follower, cfg *sextant.Config), test func(t *testing.T, f *follower)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &follower{dns: newDNS(test1+" "+strings.Join(at("27017", "27018"), " "), test3+" "+at("27017")[0], own22+" "+strings.Join(at("27017", "27018"), " "))}
		cfg := must[*sextant.Config](t)(sextant.ParseURI(uri))
		cfg.TLS, cfg.Resolver, cfg.Dial, cfg.Logger = false, f.dns, f.nodes.dial, slog.New(slog.NewTextHandler(&f.log, nil))
		if change != nil {
			change(f, cfg)
		}
		f.cl = must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), cfg))
		defer f.cl.Close(context.Background())
		if err := f.cl.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, f)
	})
}

// rescan lets the client look twice.
func (f *follower) rescan() {
	time.Sleep(2 * cluster.SRVInterval)
	synctest.Wait()
}

func (f *follower) hosts() (out []string) {
	for _, m := range f.cl.Hosts().Members {
		out = append(out, m.Address)
	}
	slices.Sort(out)
	return out
}

// becomes changes the records of a name and demands that the client has these hosts after a look, and that those it had
// before were not begun anew.
func (f *follower) becomes(t *testing.T, name string, records, want []string) {
	t.Helper()
	before := f.cl.Hosts()
	f.dns.set(name, records...)
	f.rescan()
	if got := f.hosts(); !slices.Equal(got, want) {
		t.Errorf("hosts %q, want %q", got, want)
	}
	for _, m := range f.cl.Hosts().Members {
		if old, stayed := before.Member(m.Address); stayed && (!old.Since.Equal(m.Since) || m.Kind != event.Mongos) {
			t.Errorf("%s was taken out and put in again: %v since %v", m.Address, m.Kind, m.Since)
		} else if !stayed && m.Kind != event.Mongos {
			t.Errorf("the new host %s is %v", m.Address, m.Kind)
		}
	}
}

// Breaks if Apply does not add hosts that are new in DNS.
func TestPollingProse1AddedRecord(t *testing.T) {
	follow(t, "mongodb+srv://"+test1, nil, func(t *testing.T, f *follower) {
		all := at("27017", "27018", "27019")
		f.becomes(t, test1, all, all)
	})
}

// Breaks if Apply does not remove hosts that are gone from DNS.
func TestPollingProse2RemovedRecord(t *testing.T) {
	follow(t, "mongodb+srv://"+test1, nil, func(t *testing.T, f *follower) { f.becomes(t, test1, at("27017"), at("27017")) })
}

// Breaks if all hosts are removed and added again when some change.
func TestPollingProse3ReplacedRecord(t *testing.T) {
	follow(t, "mongodb+srv://"+test1, nil, func(t *testing.T, f *follower) {
		f.becomes(t, test1, at("27017", "27019"), at("27017", "27019"))
	})
}

// Breaks if new hosts are added only beside one that stays.
func TestPollingProse4AllRecordsReplacedByOne(t *testing.T) {
	follow(t, "mongodb+srv://"+test1, nil, func(t *testing.T, f *follower) { f.becomes(t, test1, at("27019"), at("27019")) })
}

// Breaks as number 4 does.
func TestPollingProse5AllRecordsReplacedByTwo(t *testing.T) {
	follow(t, "mongodb+srv://"+test1, nil, func(t *testing.T, f *follower) {
		f.becomes(t, test1, at("27019", "27020"), at("27019", "27020"))
	})
}

// unmoved demands that a look which fails changes nothing, is logged, and is repeated after a heartbeat until it succeeds.
func unmoved(t *testing.T, fail func(f *follower), mend func(f *follower)) {
	t.Helper()
	follow(t, "mongodb+srv://"+test1+"/?heartbeatFrequencyMS=3000", nil, func(t *testing.T, f *follower) {
		fail(f)
		f.rescan()
		if got := f.hosts(); !slices.Equal(got, at("27017", "27018")) {
			t.Errorf("hosts %q", got)
		}
		if log := f.log.String(); !strings.Contains(log, "mongodb+srv") || !strings.Contains(log, "_mongodb._tcp."+test1) {
			t.Errorf("logged: %q", log)
		}
		mend(f)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := f.hosts(); !slices.Equal(got, at("27019")) {
			t.Errorf("a heartbeat after DNS was mended the hosts are %q", got)
		}
		asked := f.dns.times("_mongodb._tcp." + test1)
		time.Sleep(cluster.SRVInterval - time.Second)
		if again := f.dns.times("_mongodb._tcp." + test1); again != asked {
			t.Errorf("after a success DNS was asked %d times within the interval", again-asked)
		}
	})
}

// Breaks if a failed lookup empties the topology, or if the next one comes a minute later.
func TestPollingProse6LookupTimeout(t *testing.T) {
	name := "_mongodb._tcp." + test1
	unmoved(t, func(f *follower) { f.dns.fail(name, dnsTimeout(name)) },
		func(f *follower) { f.dns.fail(name, nil); f.dns.set(test1, at("27019")...) })
}

// Breaks as number 6 does, if "no such name" were believed.
func TestPollingProse7LookupFailure(t *testing.T) {
	name := "_mongodb._tcp." + test1
	unmoved(t, func(f *follower) { f.dns.fail(name, noSuchName(name)) },
		func(f *follower) { f.dns.fail(name, nil); f.dns.set(test1, at("27019")...) })
}

// Breaks if an answer without records is one.
func TestPollingProse8AllRecordsRemoved(t *testing.T) {
	unmoved(t, func(f *follower) { f.dns.set(test1) }, func(f *follower) { f.dns.set(test1, at("27019")...) })
}

// Breaks if the client follows DNS whatever the topology is, or asks for a second host at its start.
func TestPollingProse9BehindALoadBalancerDNSIsNotFollowed(t *testing.T) {
	follow(t, "mongodb+srv://"+test3+"/?loadBalanced=true", nil, func(t *testing.T, f *follower) {
		asked := f.dns.times("_mongodb._tcp." + test3)
		f.dns.set(test3, at("27017", "27018")...)
		f.rescan()
		if again := f.dns.times("_mongodb._tcp."+test3) - asked; again != 0 || !slices.Equal(f.hosts(), at("27017")) {
			t.Errorf("asked %d times more, hosts %q", again, f.hosts())
		}
	})
}

// Breaks if srvMaxHosts=0 is a limit.
func TestPollingProse10NoLimitTakesAllRecords(t *testing.T) {
	follow(t, "mongodb+srv://"+test1+"/?srvMaxHosts=0", nil, func(t *testing.T, f *follower) {
		f.becomes(t, test1, at("27017", "27019", "27020"), at("27017", "27019", "27020"))
	})
}

// Breaks if hosts that are to go count against the limit.
func TestPollingProse11AsManyRecordsAsTheLimit(t *testing.T) {
	follow(t, "mongodb+srv://"+test1+"/?srvMaxHosts=2", nil, func(t *testing.T, f *follower) {
		f.becomes(t, test1, at("27019", "27020"), at("27019", "27020"))
	})
}

// Breaks if the limit does not hold later, if a host that is still listed gives way to a new one, or if new ones are taken
// in the order of the answer.
func TestPollingProse12NewHostsAreAMatterOfChance(t *testing.T) {
	second := map[string]int{}
	for range 60 {
		follow(t, "mongodb+srv://"+test1+"/?srvMaxHosts=2", nil, func(t *testing.T, f *follower) {
			f.dns.set(test1, at("27017", "27019", "27020")...)
			f.rescan()
			got := f.hosts()
			if len(got) != 2 || got[0] != at("27017")[0] {
				t.Fatalf("hosts %q", got)
			}
			second[got[1]]++
		})
	}
	if len(second) != 2 || second[at("27018")[0]] > 0 {
		t.Errorf("the second hosts were %v", second)
	}
}

// Breaks if later lookups ask for the service "mongodb".
func TestPollingProse13ServiceOfAnotherName(t *testing.T) {
	follow(t, "mongodb+srv://test22.test.build.10gen.cc/?srvServiceName=customname", nil, func(t *testing.T, f *follower) {
		f.becomes(t, own22, at("27019", "27020"), at("27019", "27020"))
	})
}

func TestPollingTakesNoHostOfAnotherDomainAndSaysSo(t *testing.T) {
	follow(t, "mongodb+srv://"+test1, nil, func(t *testing.T, f *follower) {
		f.becomes(t, test1, append(at("27017", "27019"), "evil.org:27017"), at("27017", "27019"))
		if log := f.log.String(); !strings.Contains(log, "evil.org") || f.nodes.dials("evil.org:27017") != 0 {
			t.Errorf("dialled %d times, logged: %q", f.nodes.dials("evil.org:27017"), log)
		}
		f.becomes(t, test1, []string{"evil.org:27017"}, at("27017", "27019"))
	})
}

func TestPollingJudgesHostsByTheSuffixAndTheValidator(t *testing.T) {
	follow(t, "mongodb+srv://"+test1+"/?srvAllowedHostsSuffix=build.10gen.cc", nil, func(t *testing.T, f *follower) {
		f.becomes(t, test1, []string{"x.build.10gen.cc:1", "evil.org:1"}, []string{"x.build.10gen.cc:1"})
	})
	mine := func(_ *follower, cfg *sextant.Config) { cfg.SRVHostValidator = func(string) error { return nil } }
	follow(t, "mongodb+srv://"+test1, mine, func(t *testing.T, f *follower) {
		f.becomes(t, test1, []string{"vil.org:1"}, []string{"vil.org:1"})
	})
}

func TestPollingLooksOnceAMinute(t *testing.T) {
	follow(t, "mongodb+srv://"+test1, nil, func(t *testing.T, f *follower) {
		time.Sleep(time.Hour)
		if n := f.dns.times("_mongodb._tcp." + test1); n < 60 || n > 61 {
			t.Errorf("%d times in an hour, the first one included", n)
		}
		if n := f.dns.times("TXT " + test1); n != 1 {
			t.Errorf("%d times for the TXT record", n)
		}
	})
}

func TestPollingGoesOnWhileNobodyAnswers(t *testing.T) {
	nobody := func(f *follower, _ *sextant.Config) { f.nodes.reply = bson.D{{Key: "ok", Value: 0}} }
	follow(t, "mongodb+srv://"+test1, nobody, func(t *testing.T, f *follower) {
		f.dns.set(test1, at("27020")...)
		f.rescan()
		if got := f.hosts(); !slices.Equal(got, at("27020")) {
			t.Errorf("hosts %q", got)
		}
	})
}

func TestPollingEndsAtAReplicaSet(t *testing.T) {
	member := func(f *follower, _ *sextant.Config) {
		f.nodes.reply = bson.D{
			{Key: "isWritablePrimary", Value: true}, {Key: "setName", Value: "rs0"}, {Key: "hosts", Value: at("27017")}, {Key: "setVersion", Value: 1},
			{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "helloOk", Value: true}, {Key: "ok", Value: 1},
		}
	}
	follow(t, "mongodb+srv://"+test3, member, func(t *testing.T, f *follower) {
		f.dns.set(test3, at("27018")...)
		f.rescan()
		if n := f.dns.times("_mongodb._tcp." + test3); n != 1 || !slices.Equal(f.hosts(), at("27017")) {
			t.Errorf("asked %d times, hosts %q", n, f.hosts())
		}
	})
}

func TestClosingAClientDoesNotWaitForDNS(t *testing.T) {
	follow(t, "mongodb+srv://"+test1, nil, func(t *testing.T, f *follower) {
		f.dns.mu.Lock()
		f.dns.hang = true
		f.dns.mu.Unlock()
		time.Sleep(cluster.SRVInterval + time.Second)
		start := time.Now()
		if err := f.cl.Close(t.Context()); err != nil || time.Since(start) > 0 || f.dns.times("_mongodb._tcp."+test1) != 2 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
