package replset

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
)

func TestOptionsThatCannotBeSayWhy(t *testing.T) {
	for want, o := range map[string]Options{
		"a time-out of 2562047h47m16.854775807s is too long": {ElectionTimeout: math.MaxInt64},
		"a time-out of 577h0m0s is too long":                 {CatchUpTimeout: 577 * time.Hour, Members: 3},
		`the set name "a\xffb" is not valid UTF-8`:           {SetName: "a\xffb"},
		`the set name "a\x00b" holds control characters`:     {SetName: "a\x00b"},
		`the set name "a/b" may hold no slash`:               {SetName: "a/b"},
		`the tag "a": "\xff" is not valid UTF-8`:             {Config: []MemberOptions{{Tags: map[string]string{"a": "\xff"}}}},
		"an oplog of 1 entries: at least 10, or a member":    {OplogEntries: 1, Members: 3},
		"is longer than 366 days":                            {Config: []MemberOptions{{}, {SecondaryDelay: math.MaxInt64}}},
	} {
		s, err := Start(t.Context(), o)
		if err == nil {
			_ = s.Close()
			t.Errorf("a set started that should say %q", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// TestLongestTimeoutsAreTakenAndKept: with a folder they are read back.
func TestLongestTimeoutsAreTakenAndKept(t *testing.T) {
	o := Options{Members: 3, Dir: t.TempDir(), ElectionTimeout: longest, CatchUpTimeout: longest, Config: []MemberOptions{2: {SecondaryDelay: 366 * 24 * time.Hour}}}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		s, err := Start(ctx, o)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if s.Primary() == nil {
			t.Error("there is no primary")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSetsThatStartTogetherShareOneAuthority: whoever comes first makes it, and the others take it.
func TestSetsThatStartTogetherShareOneAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "tls")
	sets := make([]*Set, 6)
	var wg sync.WaitGroup
	for i := range sets {
		wg.Go(func() {
			var err error
			if sets[i], err = Start(t.Context(), Options{TLS: &TLS{Dir: dir, ClientCertificates: true}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, s := range sets {
		if s == nil {
			continue
		}
		defer s.Close()
		c, err := sextant.Connect(t.Context(), s.URI())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err != nil {
			t.Errorf("set %d: %v", i, err)
		}
		_ = c.Close(t.Context())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("%v was left", left)
	}
}

// TestAuthorityOutlivesACrashInItsMaking: the key alone has come to be, and holds all that it takes.
func TestAuthorityOutlivesACrashInItsMaking(t *testing.T) {
	dir := t.TempDir()
	first, err := authorityIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, err := authorityIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !again.cert.Equal(first.cert) {
			t.Error("it is another authority")
		}
	}
	if err := os.Remove(filepath.Join(dir, "ca-key.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := authorityIn(dir); err == nil || !strings.Contains(err.Error(), "remove ca.pem and ca-key.pem for a new one") {
		t.Errorf("a certificate without its key: %v", err)
	}
}
