package conn

import (
	"context"
	"time"
)

// limit is the time that opening a connection may take. Fetching credentials, for which a person may have to log in, has
// limits of its own and does not count: the time begins anew after it.
type limit struct {
	outer  context.Context // of the caller
	d      time.Duration   // connectTimeoutMS; 0: only the caller's context limits it
	ctx    context.Context
	cancel context.CancelFunc
}

func newLimit(ctx context.Context, d time.Duration) *limit {
	l := &limit{d: d}
	l.restart(ctx)
	return l
}

func (l *limit) restart(ctx context.Context) {
	l.outer, l.cancel = ctx, func() {}
	l.renew()
}

// renew begins the time anew.
func (l *limit) renew() {
	l.cancel()
	if l.d > 0 {
		l.ctx, l.cancel = context.WithTimeoutCause(l.outer, l.d, connectTimeout(l.d))
	} else {
		l.ctx, l.cancel = context.WithCancel(l.outer)
	}
}

// end gives back what the time holds, the caller's context too.
func (l *limit) end() {
	l.cancel()
	l.outer, l.ctx = nil, nil
}
