package command

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
	"github.com/sextantdb/sextant/replset/internal/store"
)

// maxSeconds is as good as for ever, and no overflow of a duration.
const maxSeconds = 1 << 31

func replSetStepDown(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	secs, catchUp := int64(60), int64(10)
	if v := r.Field("replSetStepDown"); v.IsNumber() {
		n, _ := v.AsFloat64OK()
		if n < 0 {
			return nil, mongoerr.Server(mongoerr.CodeBadValue, "stepdown period must be a positive integer")
		}
		if n > 0 { // 0 means the default
			secs = int64(min(n, maxSeconds))
		}
	}
	force, _ := r.Field("force").BooleanOK()
	if v := r.Field("secondaryCatchUpPeriodSecs"); v.IsNumber() {
		catchUp = intOf(r.Body, "secondaryCatchUpPeriodSecs")
	} else if force {
		catchUp = 0
	} else {
		catchUp = min(catchUp, secs)
	}
	if catchUp < 0 || secs < catchUp {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	return nil, m.StepDown(ctx, time.Duration(secs)*time.Second, time.Duration(catchUp)*time.Second, force)
}

// StepDown makes a primary a secondary that stands for no election for the time of freeze. It takes no writes while it
// waits, up to catchUp, until a majority and an electable member have everything, and hands over to that member. With
// force it goes without an heir when catchUp is over.
func (m *Member) StepDown(ctx context.Context, freeze, catchUp time.Duration, force bool) error {
	if !m.steppingDown.CompareAndSwap(false, true) {
		return mongoerr.Server(mongoerr.CodeConflictingOperationInProgress, "This node is already in the process of stepping down")
	}
	defer m.steppingDown.Store(false)
	if _, ok := m.WritablePrimary(); !ok {
		return mongoerr.Server(mongoerr.CodeNotWritablePrimary, "not primary so can't step down")
	}
	begun := time.Now()
	if _, err := m.ask(ctx, repl.AttemptStepDown{On: true}); err != nil {
		return err
	}
	heir, err := m.awaitHeir(ctx, begun.Add(catchUp), force)
	if err != nil {
		_, _ = m.ask(context.WithoutCancel(ctx), repl.AttemptStepDown{On: false})
		return err
	}
	_, err = m.ask(ctx, repl.StepDown{Until: begun.Add(freeze), HandTo: heir})
	return err
}

// awaitHeir waits for a member that can take over. No write is accepted any more; those in progress end with the
// writer's lock, which the empty write here waits for.
func (m *Member) awaitHeir(ctx context.Context, until time.Time, force bool) (int, error) {
	last, err := m.Store.Write(nil, func(*store.Tx) error { return nil })
	if err != nil {
		return repl.None, err
	}
	m.wrote()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		changed := m.progress.Load().changed
		var heir int
		var enough bool
		if err := m.look(ctx, func(n *repl.Node) { heir, enough = n.Heir(repl.OpTime(last)) }); err != nil {
			return repl.None, err
		}
		if heir != repl.None && enough {
			return heir, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			if force {
				return heir, nil
			}
			return repl.None, mongoerr.Server(mongoerr.CodeExceededTimeLimit, "No electable secondaries caught up as of %s. Please use the "+
				"replSetStepDown command with the argument {force: true} to force node to step down.", time.Now().UTC().Format(time.RFC3339))
		case <-ctx.Done():
			return repl.None, context.Cause(ctx)
		}
	}
}

func replSetFreeze(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	secs := intOf(r.Body, "replSetFreeze")
	if secs < 0 {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "frozen seconds must be >=0")
	}
	if state, busy := m.candidacy(ctx); busy {
		return nil, mongoerr.Server(mongoerr.CodeNotSecondary, "cannot freeze node when primary or running for election. state: %s", state)
	}
	var until time.Time
	if secs = min(secs, maxSeconds); secs > 0 {
		until = time.Now().Add(time.Duration(secs) * time.Second)
	}
	if _, err := m.ask(ctx, repl.Freeze{Until: until}); err != nil {
		return nil, err
	}
	switch secs {
	case 0:
		return bson.D{{Key: "info", Value: "unfreezing"}}, nil
	case 1:
		return bson.D{{Key: "warning", Value: "you really want to freeze for only 1 second?"}}, nil
	}
	return nil, nil
}

// candidacy says whether the member is primary or stands for election, in the server's words.
func (m *Member) candidacy(ctx context.Context) (state string, busy bool) {
	if m.state.Load().Role == repl.RolePrimary {
		return "Primary", true
	}
	_ = m.look(ctx, func(n *repl.Node) { busy = n.Standing() })
	return "Running-Election", busy
}
