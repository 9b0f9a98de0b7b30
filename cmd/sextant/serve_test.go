package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
)

// serving runs serve with those flags; end interrupts it and waits.
func serving(t *testing.T, flags ...string) (uri string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"serve"}, flags...), w, io.Discard)
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "mongodb://") {
		t.Fatalf("first line %q", lines.Text())
	}
	go io.Copy(io.Discard, r)
	return lines.Text(), func() {
		t.Helper()
		cancel()
		select {
		case code := <-done:
			if code != 0 {
				t.Errorf("exit %d", code)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("serve did not end")
		}
	}
}

func TestServeWithADataFolderGoesOnWithWhatIsThere(t *testing.T) {
	flags := []string{"--members", "1", "--port", "0", "--dbpath", t.TempDir()}
	for want := range int64(2) {
		uri, end := serving(t, flags...)
		client, err := sextant.Connect(t.Context(), uri)
		if err != nil {
			t.Fatal(err)
		}
		kept := client.Database("test").Collection("kept")
		if n, err := kept.CountDocuments(t.Context(), bson.D{}); err != nil || n != want {
			t.Errorf("there are %d documents (%v), want %d", n, err, want)
		}
		if _, err := kept.InsertOne(t.Context(), bson.D{{Key: "n", Value: want}}); err != nil {
			t.Error(err)
		}
		_ = client.Close(context.Background())
		end()
	}
}

func TestServeWithTLSPrintsAURIThatHostsAndExplainCanUse(t *testing.T) {
	for _, flags := range [][]string{
		{"--tls"}, {"--tls-client"}, {"--tls", "--tls-client", "--dbpath", filepath.Join(t.TempDir(), "a folder")},
	} {
		t.Run(strings.Join(flags[:min(len(flags), 2)], " "), func(t *testing.T) {
			t.Parallel() // elections take their time
			uri, end := serving(t, append(flags, "--members", "3", "--port", "0")...)
			cfg, err := sextant.ParseURI(uri)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(cfg.TLSCAFile); err != nil || info.IsDir() {
				t.Errorf("%s: no file of the authority: %v", uri, err)
			}
			for _, command := range []string{"hosts", "explain"} {
				var out, errs bytes.Buffer
				if code := run(t.Context(), []string{command, uri}, &out, &errs); code != 0 || strings.Contains(out.String(), "unreachable") {
					t.Errorf("%v, %s: exit %d\n%s%s", flags, command, code, &out, &errs)
				}
			}
			bare, _, _ := strings.Cut(uri, "&tls")
			var out, errs bytes.Buffer
			if code := run(t.Context(), []string{"hosts", "--timeout", "1s", bare}, &out, &errs); code != 1 || !strings.Contains(errs.String(), "may want TLS") {
				t.Errorf("%v, without TLS: exit %d\n%s%s", flags, code, &out, &errs)
			}
			end()
			if _, err := os.Stat(cfg.TLSCAFile); (err == nil) != (len(flags) > 2) {
				t.Errorf("%v: after the end the authority's file: %v", flags, err)
			}
		})
	}
}

func TestServeClaimsTheVersionAskedFor(t *testing.T) {
	uri, end := serving(t, "--members", "1", "--port", "0", "--version", "4.0")
	defer end()
	client, err := sextant.Connect(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	info, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}})
	if version, _ := info.Lookup("version").StringValueOK(); err != nil || !strings.HasPrefix(version, "4.0.") {
		t.Errorf("version %q, %v", version, err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"serve", "--version", "3.6"}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "4.0") {
		t.Errorf("exit %d, %s", code, &errs)
	}
}

func TestServeWithALoadBalancerPrintsAURIThroughIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		run(ctx, []string{"serve", "--members", "1", "--port", "0", "--load-balancer", "0"}, w, io.Discard)
		w.Close()
		close(done)
	}()
	lines := bufio.NewScanner(r)
	for range 2 {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	_, uri, found := strings.Cut(lines.Text(), "through the load balancer: ")
	if !found {
		t.Fatalf("second line %q", lines.Text())
	}
	go io.Copy(io.Discard, r)
	for _, command := range []string{"hosts", "explain"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{command, uri}, &out, &errs); code != 0 || !strings.Contains(out.String(), "LoadBalancer") {
			t.Errorf("%s: exit %d\n%s%s", command, code, &out, &errs)
		}
	}
	cancel()
	<-done
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"serve", "--load-balancer", "65536"}, &out, &errs); code != 2 || !strings.Contains(errs.String(), "at most 65535") {
		t.Errorf("exit %d, %s", code, &errs)
	}
}
