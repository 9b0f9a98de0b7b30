package sextant_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/mongoerr"
)

func TestParseURIAsksNobodyAndRemembersTheQuestion(t *testing.T) {
	cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb+srv://joe:pw@Cluster.Example.COM./shop?srvMaxHosts=3&srvServiceName=own&srvAllowedHostsSuffix=.b.c&tls=false"))
	if cfg.SRVHost != "cluster.example.com" || cfg.SRVMaxHosts != 3 || cfg.SRVServiceName != "own" || cfg.SRVAllowedHostsSuffix != ".b.c" || len(cfg.Hosts) > 0 || cfg.TLS {
		t.Errorf("%+v", cfg)
	}
	if cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb+srv://a.b.c")); !cfg.TLS {
		t.Error("mongodb+srv does not imply TLS")
	}
}

func TestTheStringOverridesTheTXTRecord(t *testing.T) {
	d := newDNS("a.b.c db.b.c:1")
	d.txt["a.b.c"] = []string{"replicaSet=rs0&authSource=users&loadBalanced=true"}
	cfg, err := d.resolved(t, "mongodb+srv://a.b.c/shop?loadBalanced=false")
	if err != nil || cfg.ReplicaSet != "rs0" || cfg.AuthSource != "users" || cfg.LoadBalanced == nil || *cfg.LoadBalanced {
		t.Errorf("%v, %+v", err, cfg)
	}
	cfg, err = d.resolved(t, "mongodb+srv://a.b.c/?loadBalanced=false&authSource=x&replicaSet=y")
	if err != nil || cfg.ReplicaSet != "y" || cfg.AuthSource != "x" {
		t.Errorf("%v, %+v", err, cfg)
	}
	if cfg, err = d.resolved(t, "mongodb+srv://a.b.c/?replicaSet=y"); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "loadBalanced=true and replicaSet") {
		t.Errorf("%v, %+v", err, cfg)
	}
}

func TestResolvingErrorsNameWhatWasAskedAndTheCure(t *testing.T) {
	for name, k := range map[string]struct {
		zone   func(d *dns)
		uri    string
		config bool // else of stage dial
		words  []string
	}{
		"no record": {func(*dns) {}, "mongodb+srv://x.b.c", true,
			[]string{"mongodb+srv://x.b.c", "DNS has no SRV record _mongodb._tcp.x.b.c by 10.0.0.53:53", "srvServiceName", "mongodb://"}},
		"other service":   {func(*dns) {}, "mongodb+srv://a.b.c/?srvServiceName=own", true, []string{"_own._tcp.a.b.c"}},
		"an empty answer": {func(d *dns) { d.set("a.b.c") }, "mongodb+srv://a.b.c", true, []string{"DNS has no SRV record"}},
		"SRV timeout": {func(d *dns) { d.fail("_mongodb._tcp.a.b.c", dnsTimeout("a.b.c")) }, "mongodb+srv://a.b.c", false,
			[]string{"did not answer in time by 10.0.0.53:53", "SRV record _mongodb._tcp.a.b.c", "UDP and TCP"}},
		"TXT timeout": {func(d *dns) { d.fail("TXT a.b.c", dnsTimeout("a.b.c")) }, "mongodb+srv://a.b.c", false, []string{"TXT record of a.b.c"}},
		"refused": {func(d *dns) { d.fail("_mongodb._tcp.a.b.c", errors.New("REFUSED")) }, "mongodb+srv://a.b.c", false,
			[]string{"DNS could not be asked for the SRV record _mongodb._tcp.a.b.c", "REFUSED"}},
		"two hosts outside": {func(d *dns) { d.set("a.b.c", "e.vil.org:1", "f.vil.org:1") }, "mongodb+srv://a.b.c", true,
			[]string{"e.vil.org, which is not below b.c", "and 1 other records"}},
		"TXT with tls": {func(d *dns) { d.txt["a.b.c"] = []string{"tls=false"} }, "mongodb+srv://a.b.c", true,
			[]string{"TXT record of a.b.c holds option tls", "authSource, replicaSet and loadBalanced"}},
		"two TXT": {func(d *dns) { d.txt["a.b.c"] = []string{"a=b", "v=spf1"} }, "mongodb+srv://a.b.c", true, []string{"2 TXT records"}},
		"set from TXT and a limit": {func(d *dns) { d.txt["a.b.c"] = []string{"replicaSet=rs0"} }, "mongodb+srv://a.b.c/?srvMaxHosts=1", true,
			[]string{"srvMaxHosts and replicaSet"}},
	} {
		d := newDNS("a.b.c db.b.c:1 db2.b.c:2")
		k.zone(d)
		cfg, err := d.resolved(t, strings.Replace(k.uri, "//", "//joe:s3cr3t@", 1))
		if err == nil || mongoerr.IsConfig(err) != k.config {
			t.Errorf("%s: %v, %+v", name, err, cfg)
			continue
		}
		for _, w := range k.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in %v", name, w, err)
			}
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the password is in %v", err)
		}
	}
}

func TestAResolverThatFailsForTheTimeBeingIsAskedTwice(t *testing.T) {
	d := newDNS("a.b.c db.b.c:1")
	const name = "_mongodb._tcp.a.b.c"
	d.fail(name, &net.DNSError{Err: "server misbehaving", IsTemporary: true})
	d.fail("TXT a.b.c", dnsTimeout("a.b.c"))
	if _, err := d.resolved(t, "mongodb+srv://a.b.c"); err == nil || d.times(name) != 2 {
		t.Errorf("asked %d times, %v", d.times(name), err)
	}
	if _, err := d.resolved(t, "mongodb+srv://x.b.c"); err == nil || d.times("_mongodb._tcp.x.b.c") != 1 {
		t.Errorf("asked again for what is not there: %v", err)
	}
}

func TestResolvingEndsWithItsContextOrConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDNS()
		d.hang = true
		cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb+srv://a.b.c"))
		cfg.Resolver = d
		start := time.Now()
		_, err := sextant.ConnectConfig(context.Background(), cfg)
		if !mongoerr.IsTimeout(err) || mongoerr.IsConfig(err) || time.Since(start) != 10*time.Second || !strings.Contains(err.Error(), "in time") {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		cfg.ConnectTimeout = new(time.Duration(0))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		start = time.Now()
		if _, err = sextant.ConnectConfig(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel = context.WithCancel(context.Background())
		cancel()
		if _, err = sextant.ConnectConfig(ctx, cfg); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestGivenHostsNeedNoDNS(t *testing.T) {
	d := newDNS()
	cfg := &sextant.Config{SRVHost: "a.b.c", Hosts: []string{"elsewhere:1"}, Resolver: d}
	cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), cfg))
	defer cl.Close(context.Background())
	if m := cl.Hosts().Members; len(d.asked) > 0 || len(m) != 1 || m[0].Address != "elsewhere:1" {
		t.Errorf("asked %q, members %v", d.asked, m)
	}
}

func TestOptionsOfMongoDBSRVAreCheckedInAConfiguration(t *testing.T) {
	for words, cfg := range map[string]sextant.Config{
		"there is no SRVHost":       {Hosts: []string{"a"}, SRVMaxHosts: 1},
		"for mongodb+srv alone":     {Hosts: []string{"a"}, SRVServiceName: "x"},
		"srvMaxHosts is negative":   {SRVHost: "a.b.c", SRVMaxHosts: -1},
		"srvMaxHosts and replica":   {SRVHost: "a.b.c", SRVMaxHosts: 1, ReplicaSet: "rs0"},
		"srvMaxHosts and loadBal":   {SRVHost: "a.b.c", SRVMaxHosts: 1, LoadBalanced: new(true)},
		"directConnection=true":     {SRVHost: "a.b.c", DirectConnection: true},
		"no service name":           {SRVHost: "a.b.c", SRVServiceName: "a_b"},
		`SRVHost "a..b"`:            {SRVHost: "a..b"},
		"srvAllowedHostsSuffix is ": {SRVHost: "a.b.c", SRVAllowedHostsSuffix: "com"},
		"UTF-8":                     {SRVHost: "a\xff.b"},
	} {
		cfg.Resolver = newDNS("a.b.c db.b.c:1")
		if _, err := sextant.ConnectConfig(t.Context(), &cfg); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

func TestWarningsFromTXTAreLoggedAndStrictMakesThemErrors(t *testing.T) {
	d := newDNS("a.b.c db.b.c:1")
	d.txt["a.b.c"] = []string{"loadBalanced=maybe"}
	var log bytes.Buffer
	cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb+srv://a.b.c/?tls=false"))
	cfg.Resolver, cfg.Logger = d, slog.New(slog.NewTextHandler(&log, nil))
	cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), cfg))
	defer cl.Close(context.Background())
	if !strings.Contains(log.String(), "in the TXT record of a.b.c") || len(cl.Warnings()) != 1 || len(cfg.Hosts) > 0 {
		t.Errorf("log %s, warnings %v, hosts of the caller's copy %q", log.String(), cl.Warnings(), cfg.Hosts)
	}
	cfg.Strict = true
	if _, err := sextant.ConnectConfig(t.Context(), cfg); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "TXT record") {
		t.Errorf("%v", err)
	}
}

func TestChanceChoosesTheSeedsWithinSRVMaxHosts(t *testing.T) {
	d, seen := newDNS("a.b.c h1.b.c:1 h2.b.c:1 h3.b.c:1"), map[string]bool{}
	for range 200 {
		cfg, err := d.resolved(t, "mongodb+srv://a.b.c/?srvMaxHosts=2")
		if err != nil || len(cfg.Hosts) != 2 || cfg.Hosts[0] == cfg.Hosts[1] {
			t.Fatalf("%q, %v", cfg.Hosts, err)
		}
		slices.Sort(cfg.Hosts)
		seen[strings.Join(cfg.Hosts, " ")] = true
	}
	if len(seen) != 3 { // missed by chance once in 10^35
		t.Errorf("of three pairs these were chosen: %v", seen)
	}
}
