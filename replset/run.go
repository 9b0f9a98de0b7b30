package replset

import (
	"context"
	"testing"
	"time"

	"github.com/sextantdb/sextant/replset/internal/command"
)

// Run starts a set for a test, waits for its primary, and closes it when the test ends. More than one Options is a
// mistake; none is a set of one member.
func Run(t testing.TB, o ...Options) *Set {
	t.Helper()
	if len(o) > 1 {
		t.Fatal("replset.Run takes one Options")
	}
	var opt Options
	if len(o) == 1 {
		opt = o[0]
	}
	if opt.TLS != nil && opt.TLS.Dir == "" {
		withFiles := *opt.TLS
		withFiles.Dir = t.TempDir()
		opt.TLS = &withFiles
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := Start(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// MemberApp is the application name under which member i connects to the others, for Delay.
func MemberApp(i int) string { return command.AppName(i) }
