package sextant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// TestCloseEndsThePauseBeforeARetry: who waits until an overloaded server may be asked again learns of Close at once.
func TestCloseEndsThePauseBeforeARetry(t *testing.T) {
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Members, c.MaxAdaptiveRetries = 1, new(1000)
	}, func(t *testing.T, b *bubble) {
		b.set.FailCommand(0, &replset.FailCommand{Commands: []string{"count"}, ErrorCode: 462,
			ErrorLabels: []string{mongoerr.LabelSystemOverloaded, mongoerr.LabelRetryable}})
		done := make(chan error, 1)
		go func() {
			_, err := b.cl.Database("d").Collection("c").EstimatedDocumentCount(context.Background())
			done <- err
		}()
		time.Sleep(20 * time.Second)
		start := time.Now()
		if err := b.cl.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, sextant.ErrClientClosed) || !mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("%v after Close", took)
		}
	})
}
