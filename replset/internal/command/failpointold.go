package command

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// The fail points beside failCommand. Not kept to: each fails a command as a whole, never one statement of a batch.
const (
	writePoint   = "onPrimaryTransactionalWrite"    // retryable writes: data failBeforeCommitExceptionCode, closeConnection (true without it)
	getMorePoint = "failGetMoreAfterCursorCheckout" // data errorCode, closeConnection
)

// failPoint is one that is switched on.
type failPoint struct {
	left, skip int // as failPoints has them
	entered    int64
	code       int32
	drop       bool
}

// hit is the fail point if it is on and its turn has come, nil otherwise.
func (p *failPoints) hit(name string) *failPoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.others[name]
	switch {
	case f == nil || f.left == 0:
		return nil
	case f.skip > 0:
		f.skip--
		return nil
	case f.left > 0:
		f.left--
	}
	f.entered++
	hit := *f
	return &hit
}

func (p *failPoints) configure(name string, r *Request) (bson.D, error) {
	mode := r.Field("mode")
	if mode.IsZero() {
		return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "When setting a failpoint, you must supply a 'mode'")
	}
	how := &FailCommand{}
	off, err := how.parseMode(mode)
	if err != nil {
		return nil, err
	}
	f := &failPoint{left: -1, skip: how.Skip, drop: name == writePoint}
	if how.Times > 0 {
		f.left = how.Times
	}
	data, _ := r.Field("data").DocumentOK()
	if err := f.parseData(name, data); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	entered := int64(0)
	if old := p.others[name]; old != nil {
		entered = old.entered
	}
	if f.entered = entered; off {
		f.left = 0
	}
	if p.others == nil {
		p.others = map[string]*failPoint{}
	}
	p.others[name] = f
	return bson.D{{Key: "count", Value: entered}}, nil
}

func (f *failPoint) parseData(name string, data bson.Raw) error {
	codeField := map[string]string{writePoint: "failBeforeCommitExceptionCode", getMorePoint: "errorCode"}[name]
	for key, v := range data.All() {
		ok := true
		switch key {
		case codeField:
			var n int64
			n, ok = v.AsInt64OK()
			f.code = int32(n)
		case "closeConnection":
			f.drop, ok = v.BooleanOK()
		default:
			return mongoerr.Server(mongoerr.CodeBadValue, "%s does not know the data field '%s'", name, key)
		}
		if !ok {
			return mongoerr.Server(mongoerr.CodeTypeMismatch, "%s's data field '%s' has an ill value of type %s", name, key, bsonName(v.Type))
		}
	}
	return nil
}

// beforeCommit is called when a retryable write has something to commit.
func (p *failPoints) beforeCommit(r *Request) error {
	f := p.hit(writePoint)
	r.cut = f != nil && f.drop
	return f.fail(writePoint)
}

// fail is the error that the fail point asks for, nil if it lets the command run.
func (f *failPoint) fail(name string) error {
	if f == nil || f.code == 0 {
		return nil
	}
	return mongoerr.Server(f.code, "Failing command due to '%s' failpoint. The write must not be reflected.", name)
}
