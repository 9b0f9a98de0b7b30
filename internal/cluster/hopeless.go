package cluster

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// failure is the error of a selection that waited in vain.
func (c *Cluster) failure(w topology.Want, start time.Time, cause error) error {
	if errors.Is(cause, mongoerr.ErrClientClosed) {
		return closedError()
	}
	verdict := c.Explain(w)
	e := selectionError(verdict, waitedFor(start))
	if cause == nil {
		e.TimedOut = true
		return e
	}
	e.TimedOut = errors.Is(cause, context.DeadlineExceeded)
	e.Cause = ended{cause, verdict.Cause}
	return e
}

func waitedFor(start time.Time) string {
	return " (waited " + event.FormatDuration(time.Since(start).Round(time.Millisecond)) + ")"
}

// selectionError prints a verdict: the sentence, a remark, and a line a member. The sentence tells the cause already,
// which is kept for predicates.
func selectionError(v event.Verdict, remark string) *mongoerr.Error {
	e := mongoerr.New(mongoerr.StageSelection, "%s%s", v.Sentence, remark)
	for _, m := range v.Members {
		e.Message += "\n  " + m.String()
	}
	if v.Cause != nil {
		e.Cause = told{v.Cause}
	}
	return e
}

// faultError is the error of a selection whose selector panicked. Should the selector behave when it is asked for the
// verdict, the error is still that of the panic.
func faultError(v event.Verdict, fault error) *mongoerr.Error {
	if v.Cause == nil || topology.Short(v.Cause) != topology.Short(fault) {
		v.Sentence = "no member serves " + v.Want + ": " + topology.Short(fault)
		v.Cause = fault
	}
	return selectionError(v, "")
}

// told is a cause that the message holds already.
type told struct{ cause error }

func (told) Error() string   { return "" }
func (t told) Unwrap() error { return t.cause }

// ended is the context's end, and the trouble that was waited for.
type ended struct{ end, trouble error }

func (e ended) Error() string { return e.end.Error() }

func (e ended) Unwrap() []error {
	if e.trouble == nil {
		return []error{e.end}
	}
	return []error{e.end, e.trouble}
}

// hopeless is the error when waiting can not help, nil if it may.
func (c *Cluster) hopeless(v *view, w topology.Want) error {
	if err := v.desc.Invalid(w); err != nil {
		if e, ok := err.(*mongoerr.Error); ok && e.Stage == mongoerr.StageConfig {
			return e
		}
		return selectionError(v.explain(w, time.Now()), "")
	}
	if err := lockedOut(v.desc); err != nil {
		return err
	}
	gone := w.Address != "" && v.desc.Server(w.Address) == nil
	if gone || v.desc.Hopeless(w) || unresolvable(v.desc) || refused(v.desc) {
		return selectionError(v.explain(w, time.Now()), "")
	}
	if c.cfg.FailFast && incurable(v.desc) {
		return selectionError(v.explain(w, time.Now()), " (FailFast: waiting does not cure this)")
	}
	return nil
}

// incurable says whether all that keeps members from serving is what somebody must mend first: names that do not exist,
// certificates, passwords, a proxy's too, a wrong set. A member that was not heard of yet, or is out of reach, may come; one that answers
// may come to serve.
func incurable(d *topology.Description) bool {
	found := false
	for _, s := range d.Servers {
		switch {
		case s.Kind == event.RSArbiter:
		case s.Kind.Known() || !lasting(s.Err):
			return false
		default:
			found = true
		}
	}
	return found
}

// lasting says whether a failure is of a sort that does not pass by itself. Of TLS only what may be overload does.
func lasting(err error) bool {
	e, ok := errors.AsType[*mongoerr.Error](err)
	switch {
	case !ok || mongoerr.IsCanceled(err):
		return false
	case mongoerr.IsAuth(err) || mongoerr.IsConfig(err) || notFound(err) || conn.IsForeign(err) || conn.IsProxyRefusal(err):
		return true
	}
	return e.Stage == mongoerr.StageTLS && !mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded)
}

func notFound(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}

// failedSince says whether a check of the one member that will do has failed while somebody waited for it. What it is
// waited for, a cursor say, will hardly outlive that; a connection that broke before may have been a matter of itself.
func failedSince(s *topology.Server, start time.Time) bool {
	return s != nil && !s.Kind.Known() && s.Err != nil && s.LastUpdate.After(start)
}

// lockedOut is the refused login of a member that would perhaps serve, if no member is out of reach for another reason. It
// holds until the next check of that member, half a second later; then one more operation may try the password.
func lockedOut(d *topology.Description) (login error) {
	for _, s := range d.Servers {
		if s.Kind.Known() {
			continue
		}
		if !mongoerr.IsLoginRefused(s.Err) {
			return nil
		}
		login = s.Err
	}
	return login
}

// unresolvable says whether no name of the deployment exists. Behind SRV records it may yet come to exist.
func unresolvable(d *topology.Description) bool {
	for _, s := range d.Servers {
		if !notFound(s.Err) {
			return false
		}
	}
	return len(d.Servers) > 0
}

// refused says whether the one server of a direct connection is not of the set that was asked for.
func refused(d *topology.Description) bool {
	return d.Kind == event.Single && len(d.Servers) == 1 && mongoerr.IsConfig(d.Servers[0].Err)
}
