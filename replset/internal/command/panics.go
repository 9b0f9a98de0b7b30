package command

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
)

// The members live in somebody else's process: no panic of theirs may reach it, be it a mistake of ours or one in the
// network or the logger that the host has given.

// survive, deferred, keeps a panic from the process that hosts the member: what panicked has ended, the log says why.
func (m *Member) survive(what string) {
	if p := recover(); p != nil {
		m.log.Error("panic: "+what+" ended", "member", m.self, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// guard, deferred by a goroutine that the member cannot do without, ends the member when that panics, as a crash would.
func (m *Member) guard(what string) {
	if p := recover(); p != nil {
		m.log.Error("panic: the member ends", "member", m.self, "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		m.stop(true)
	}
}

// shut closes a socket, whatever that does.
func shut(nc net.Conn) {
	defer func() { _ = recover() }()
	_ = nc.Close()
}

// calm is a log handler that a panic of the host's does not get past: it costs a line of the log.
type calm struct{ slog.Handler }

func (h calm) Enabled(ctx context.Context, l slog.Level) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	return h.Handler.Enabled(ctx, l)
}

func (h calm) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the log handler panicked: %v", p)
		}
	}()
	return h.Handler.Handle(ctx, r)
}

func (h calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{h.Handler.WithAttrs(attrs)} }
func (h calm) WithGroup(name string) slog.Handler       { return calm{h.Handler.WithGroup(name)} }
