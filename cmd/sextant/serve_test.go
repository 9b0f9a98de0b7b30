package main

import (
	"bufio"
	"context"
	"io"
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
