package topology

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// Explain runs the rules of Candidates and keeps, for every member, why it stays or falls.
func (d *Description) Explain(w Want, now time.Time) event.Verdict { return d.ExplainWith(w, now, nil) }

// ExplainWith is Explain by one who also knows, of a server that was never heard of, how far its connection has come.
func (d *Description) ExplainWith(w Want, now time.Time, stage func(addr string) mongoerr.Stage) event.Verdict {
	t := trial{d: d, w: &w, why: make([]reason, len(d.Servers)), now: now, stage: stage}
	found := t.run()
	v := event.Verdict{Want: w.String(), Topology: d.Kind, SetName: d.SetName, Cause: t.cause(len(found))}
	for i, s := range d.Servers {
		m := event.MemberVerdict{Address: s.Addr, Kind: s.Kind, RTT: s.RTT, Tags: s.Tags, Rule: mongoerr.OneLine(t.text(i, now))}
		m.Eligible = t.why[i].rule.stays()
		m.Lag, m.LagKnown = d.knownLag(s)
		v.Members = append(v.Members, m)
	}
	v.Sentence = mongoerr.OneLine(t.sentence(len(found)))
	return v
}

func (r rule) stays() bool { return r == ruleOnly || r == ruleWindow || r == rulePinned }

// cause is the failure that most likely explains why nobody serves.
func (t *trial) cause(found int) error {
	d := t.d
	if found > 0 {
		return nil
	}
	if err := d.Invalid(*t.w); err != nil {
		return err
	}
	if t.fault != nil {
		return t.fault
	}
	for _, s := range d.Servers {
		if s.Err != nil {
			return s.Err
		}
	}
	return nil
}

// text is the reason of one server in words, with its numbers.
func (t *trial) text(i int, now time.Time) string {
	s, r := t.d.Servers[i], t.why[i]
	dur := event.FormatDuration
	switch r.rule {
	case ruleBlocked:
		return Short(t.d.Invalid(*t.w))
	case ruleOnly:
		return "is the one to ask"
	case ruleWindow:
		return fmt.Sprintf("%s <= %s + %s", dur(r.measured), dur(r.base), dur(r.limit))
	case ruleSlow:
		return fmt.Sprintf("%s > %s + %s", dur(r.measured), dur(r.base), dur(r.limit))
	case rulePinned:
		return "is where the pin is"
	case ruleNotPinned:
		return "would serve, but the pin is at " + t.w.Pinned
	case ruleNotAsked:
		return "is not " + t.w.Address
	case ruleQuarantined:
		return "in quarantine: " + t.d.Quarantined[s.Addr]
	case ruleDeprioritized:
		return "failed in an earlier attempt of this operation, others serve"
	case ruleUnavailable:
		return t.unavailable(s)
	case ruleKind:
		return fmt.Sprintf("is %s, %s wanted", s.Kind, r.wanted)
	case rulePrimaryServes:
		return "is RSSecondary, the preferred primary serves"
	case ruleSecondaryServes:
		return "is RSPrimary, preferred secondaries serve"
	case ruleStale:
		return fmt.Sprintf("%s stale > %s (a heartbeat of %s included)", dur(r.measured), dur(r.limit), dur(t.d.cfg.HeartbeatInterval))
	case ruleTags:
		own := readpref.TagSetOf(s.Tags)
		if r.tags != nil {
			return fmt.Sprintf("tags %v do not match %v, which others match", own, r.tags)
		}
		return fmt.Sprintf("tags %v do not match %s", own, readpref.FormatTagSets(t.w.ReadPref.TagSets()))
	case ruleSelector:
		if t.fault != nil {
			return Short(t.fault)
		}
		return "dropped by the caller's selector"
	}
	return "was not considered"
}

// unavailable says what is wrong with a server that is Unknown, and since when.
func (t *trial) unavailable(s *Server) string {
	if s.Err == nil {
		if s.Kind == event.PossiblePrimary {
			return "not checked yet; another member takes it for the primary"
		}
		text, where := t.unheard(s)
		if where != "" {
			text += " (" + where + ")"
		}
		return text
	}
	text := s.trouble() + " (" + Short(s.Err) + ")"
	if ago := t.now.Sub(s.Since); ago >= time.Second {
		text += " for " + event.FormatDuration(ago.Truncate(time.Second))
	}
	return text
}

// slowAnswer is the time after which a server that was asked and has not answered yet is worth a word.
const slowAnswer = 500 * time.Millisecond

// unheard is what to say of a server that has told nothing yet, nor failed to, and where it hangs: a black hole looks like
// this until the time to connect is up.
func (t *trial) unheard(s *Server) (text, where string) {
	ago := t.now.Sub(s.Since)
	if s.Since.IsZero() || ago < slowAnswer {
		return "not checked yet", ""
	}
	if t.stage != nil {
		where = hangsIn[t.stage(s.Addr)]
	}
	return "silent for " + event.FormatDuration(ago.Truncate(100*time.Millisecond)), where
}

// hangsIn says what it looks like when nothing comes in a stage of opening a connection.
var hangsIn = map[mongoerr.Stage]string{
	mongoerr.StageProxy:     "the SOCKS5 proxy gives no connection",
	mongoerr.StageDial:      "the connection is not there yet",
	mongoerr.StageTLS:       "in the TLS handshake: is it a port without TLS?",
	mongoerr.StageHandshake: "connected, but hello is not answered",
}

// Sorts of trouble.
const (
	troubleLogin  = "refuses the login"
	troubleState  = "changes its state"
	troubleReach  = "unreachable"
	troubleOthers = "unusable"
)

// trouble is the sort of failure that made a server Unknown.
func (s *Server) trouble() string {
	e, ok := errors.AsType[*mongoerr.Error](s.Err)
	switch {
	case mongoerr.IsAuth(s.Err):
		return troubleLogin
	case mongoerr.IsStateChange(s.Err):
		return troubleState
	case mongoerr.IsNetwork(s.Err) || mongoerr.IsTimeout(s.Err) || !ok:
		return troubleReach
	case e.Stage == mongoerr.StageTLS || e.Stage == mongoerr.StageDial || e.Stage == mongoerr.StageHandshake:
		return troubleReach
	}
	return troubleOthers
}

// tlsTrouble says what kept TLS from being agreed on. The message knows more than the cause, which is of a library's words;
// where it does not, or a limit ran out, both are told.
func tlsTrouble(e *mongoerr.Error, cause string) string {
	line, _, _ := strings.Cut(e.Message, "\n")
	if e.TimedOut || strings.HasSuffix(line, "failed") || strings.HasSuffix(line, "not valid") {
		return line + ": " + cause
	}
	return line
}

// isLimit says whether a cause names the limit that ran out, and nothing else.
func isLimit(cause string) bool { return strings.Contains(cause, "ran out") }

// Short is the heart of an error: its innermost cause, one line.
func Short(err error) string {
	var around *mongoerr.Error // the innermost
	for {
		if e, ok := err.(*mongoerr.Error); ok {
			around = e
		}
		inner := errors.Unwrap(err)
		if inner == nil || inner.Error() == "" {
			break
		}
		err = inner
	}
	text := err.Error()
	if e, ok := err.(*mongoerr.Error); ok && e.Message != "" {
		if text = e.Message; e.Stage != mongoerr.StageSelection { // else its lines are its own
			text = mongoerr.OneLine(text)
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	line = mongoerr.OneLine(line)
	switch {
	case around == nil || around.Message == "":
	case around.Stage == mongoerr.StageTLS:
		return tlsTrouble(around, line)
	case around.Stage == mongoerr.StageProxy, // the cause alone would be taken for the member's
		around.Stage == mongoerr.StageHandshake && around.TimedOut && isLimit(line): // it does not say what was waited for
		message, _, _ := strings.Cut(around.Message, "\n")
		return message + ": " + line
	}
	switch line {
	case "context deadline exceeded", "i/o timeout":
		line = "timed out"
	case "EOF", "unexpected EOF", "connection reset by peer", "broken pipe":
		line = "connection closed by the server"
	default:
		return line
	}
	if around != nil && around.BeforeHandshake() && around.Message != "" {
		line, _, _ = strings.Cut(around.Message, "\n") // which says what was going on, and what is commonly behind it
	}
	return line
}
