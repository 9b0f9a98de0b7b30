package sextant_test

// The prose tests of the specification "initial DNS seedlist discovery", by their numbers. 11 is for languages that
// cannot know before they run that a validator is a func.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/mongoerr"
)

// Breaks if the host of a string must have three parts.
func TestSeedlistProse1HostsOfOneOrTwoPartsAreAllowed(t *testing.T) {
	for host, seed := range map[string]string{"localhost": "db.localhost:27017", "mongo.local": "db.mongo.local:27017"} {
		cfg, err := newDNS(host+" "+seed).resolved(t, "mongodb+srv://"+host)
		if err != nil || !slices.Equal(cfg.Hosts, []string{seed}) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// refusedTargets demands that DNS which leads from a string to a host is an error that names both.
func refusedTargets(t *testing.T, targets map[string]string) {
	t.Helper()
	for host, target := range targets {
		cfg, err := newDNS(host+" "+target+":27017").resolved(t, "mongodb+srv://joe:s3cr3t@"+host)
		if !mongoerr.IsConfig(err) || len(cfg.Hosts) > 0 {
			t.Errorf("%s to %s: %v, seeds %q", host, target, err, cfg.Hosts)
			continue
		}
		for _, word := range []string{host, target, "_mongodb._tcp." + host, "srvAllowedHostsSuffix"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s to %s: %v lacks %s", host, target, err, word)
			}
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the password is in %v", err)
		}
	}
}

// Breaks if the domain of what DNS returns is not compared.
func TestSeedlistProse2HostsOfOtherDomainsAreRefused(t *testing.T) {
	refusedTargets(t, map[string]string{"localhost": "localhost.mongodb", "mongo.local": "test_1.evil.local", "blogs.mongodb.com": "blogs.evil.com"})
}

// Breaks if a host of fewer than three parts may lead to itself.
func TestSeedlistProse3TheHostOfAShortStringItselfIsRefused(t *testing.T) {
	refusedTargets(t, map[string]string{"localhost": "localhost", "mongo.local": "mongo.local"})
}

// Breaks if domains are compared as text and not label by label.
func TestSeedlistProse4HostsThatOnlyEndLikeTheDomainAreRefused(t *testing.T) {
	refusedTargets(t, map[string]string{
		"localhost": "test_1.cluster_1localhost", "mongo.local": "test_1.my_hostmongo.local", "blogs.mongodb.com": "cluster.testmongodb.com",
	})
}

// judged resolves a string with a validator.
func judged(t *testing.T, host, target string, validate func(string) error) (*sextant.Config, error) {
	t.Helper()
	cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb+srv://" + host))
	cfg.Resolver, cfg.SRVHostValidator = newDNS(host+" "+target+":27017"), validate
	return cfg, cfg.Resolve(t.Context())
}

// Breaks if the domain counts although a validator is given.
func TestSeedlistProse5AValidatorAcceptsWhatTheDomainWouldRefuse(t *testing.T) {
	for host, target := range map[string]string{"blogs.mongodb.com": "blogs.evil.com", "mongo.local": "mongo.local"} {
		cfg, err := judged(t, host, target, func(string) error { return nil })
		if err != nil || !slices.Equal(cfg.Hosts, []string{target + ":27017"}) {
			t.Errorf("%s: %q, %v", host, cfg.Hosts, err)
		}
	}
}

// Breaks if a host of the right domain is not shown to the validator. With 8: the error of the validator must be found
// in the driver's. A panic is an error too.
func TestSeedlistProse6And8ARefusalOfTheValidatorIsWrapped(t *testing.T) {
	no := errors.New("not on my list")
	_, err := judged(t, "blogs.mongodb.com", "cluster.mongodb.com", func(string) error { return no })
	if !mongoerr.IsConfig(err) || !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	_, err = judged(t, "blogs.mongodb.com", "cluster.mongodb.com", func(string) error { panic("help") })
	if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "help") {
		t.Errorf("%v", err)
	}
}

// Breaks if the validator sees the name as DNS wrote it.
func TestSeedlistProse7TheValidatorSeesTheNormalName(t *testing.T) {
	var saw string
	_, err := judged(t, "blogs.mongodb.com", "CLUSTER.MONGODB.COM.", func(host string) error { saw = host; return nil })
	if err != nil || saw != "cluster.mongodb.com" {
		t.Errorf("%q, %v", saw, err)
	}
}

// Breaks if one of the two rules silently wins.
func TestSeedlistProse9SuffixAndValidatorExcludeEachOther(t *testing.T) {
	cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb+srv://blogs.mongodb.com/?srvAllowedHostsSuffix=.mongodb.com"))
	cfg.Resolver, cfg.SRVHostValidator = newDNS(), func(string) error { return nil }
	if _, err := sextant.ConnectConfig(t.Context(), cfg); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "SRVHostValidator") {
		t.Errorf("%v", err)
	}
}

// Breaks if case or the dot at the end keeps a host from matching the suffix.
func TestSeedlistProse10TheSuffixIsComparedWithTheNormalName(t *testing.T) {
	cfg, err := newDNS("blogs.mongodb.com CLUSTER.MONGODB.COM.:27017").resolved(t, "mongodb+srv://blogs.mongodb.com/?srvAllowedHostsSuffix=.mongodb.com")
	if err != nil || !slices.Equal(cfg.Hosts, []string{"cluster.mongodb.com:27017"}) {
		t.Errorf("%q, %v", cfg.Hosts, err)
	}
}

// Breaks if every suffix of one label counts as public.
func TestSeedlistProse12AReservedLabelIsASuffix(t *testing.T) {
	cfg, err := newDNS("cluster.localhost db.cluster.localhost:27017").resolved(t, "mongodb+srv://cluster.localhost/?srvAllowedHostsSuffix=localhost")
	if err != nil || !slices.Equal(cfg.Hosts, []string{"db.cluster.localhost:27017"}) {
		t.Errorf("%q, %v", cfg.Hosts, err)
	}
}

// Breaks if a validator that nobody will ask is passed over.
func TestSeedlistProse13AValidatorNeedsMongoDBSRV(t *testing.T) {
	cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb://localhost:27017"))
	cfg.SRVHostValidator = func(string) error { return nil }
	if _, err := sextant.ConnectConfig(context.Background(), cfg); !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "mongodb+srv alone") {
		t.Errorf("%v", err)
	}
}

// The files srvAllowedHostsSuffix-* that the specification has gained since the copy in which the other files are found. Not
// met: "dr.in" and "abc.nom.br" are public suffixes by the list alone, which this driver does not carry (a SHOULD).
func TestSeedlistFilesOfSRVAllowedHostsSuffix(t *testing.T) {
	for suffix, want := range map[string]string{
		"build.10gen.cc": "localhost.build.10gen.cc:27017", ".build.10gen.cc": "localhost.build.10gen.cc:27017", "10gen.cc": "localhost.build.10gen.cc:27017",
		"uild.10gen.cc": "", "test.build.10gen.cc": "", "cc": "", ".": "", "co.uk": "",
	} {
		cfg, err := sextant.ParseURI("mongodb+srv://test12.test.build.10gen.cc/?srvAllowedHostsSuffix=" + suffix)
		var hosts []string
		if err == nil {
			cfg.Resolver = newDNS("test12.test.build.10gen.cc localhost.build.10gen.cc.:27017")
			err = cfg.Resolve(t.Context())
			hosts = cfg.Hosts
		}
		if strings.Join(hosts, " ") != want || (err == nil) != (want != "") || err != nil && !mongoerr.IsConfig(err) {
			t.Errorf("%s: %q, %v", suffix, hosts, err)
		}
	}
}
