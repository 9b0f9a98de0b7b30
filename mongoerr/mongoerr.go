// Package mongoerr holds every failure a caller of sextant can meet: one error type that travels unchanged from
// the socket to the caller, the server's table of error codes, and the predicates that ask about an error.
//
// An Error says which command failed, on which server, after how many attempts, and at which stage of its journey.
// Ask questions with the predicates (IsTimeout, IsDuplicateKey, HasLabel ...): they look through wrapping, as
// errors.As does. The embedded server makes its refusals with Server, so both wings speak of failures in one way.
//
// Values of this package own no goroutine. An Error may be read by many goroutines; whoever makes one fills it in
// before handing it on.
package mongoerr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/bson"
)

// Stage is the step of an operation's journey at which it failed.
type Stage string

// The stages, in the order in which an operation passes them.
const (
	StageConfig    Stage = "config"    // the URI, the options or the arguments are wrong
	StageEncode    Stage = "encode"    // a Go value could not become BSON
	StageSelection Stage = "selection" // no member could serve the operation in time
	StageCheckout  Stage = "checkout"  // no connection could be had from the member's pool
	StageProxy     Stage = "proxy"     // the way through the SOCKS5 proxy, which is not reached or gives no connection
	StageDial      Stage = "dial"      // name resolution or the TCP connection
	StageTLS       Stage = "tls"       // the TLS handshake
	StageHandshake Stage = "handshake" // the hello that opens a connection
	StageAuth      Stage = "auth"      // the authentication conversation
	StageWrite     Stage = "write"     // sending the command
	StageRead      Stage = "read"      // waiting for the reply, or reading it
	StageServer    Stage = "server"    // the server answered with an error
	StageDecode    Stage = "decode"    // a reply could not become the wanted Go value, or is a MalformedReply
)

// Sentinels. They are compared with errors.Is; an Error may carry one as its Cause.
var (
	// ErrNoDocuments says that FindOne and its kin matched nothing.
	ErrNoDocuments = errors.New("no document matches")
	// ErrClientClosed says that the client was closed before or during the call.
	ErrClientClosed = errors.New("the client is closed")
	// ErrNilDocument says that nil was given where a document is needed.
	ErrNilDocument = errors.New("a document is needed, not nil")
	// ErrCursorClosed says that a closed cursor was asked for more.
	ErrCursorClosed = errors.New("the cursor is closed")
	// ErrPoolCleared says that a pool was paused after a failure and hands out no connection until its member is
	// seen again (CMAP, PoolClearedError). It never makes a server Unknown.
	ErrPoolCleared = errors.New("the connection pool is paused after a failure")
	// ErrPoolClosed says that the member's pool is gone: the member left the topology or the client closed.
	ErrPoolClosed = errors.New("the connection pool is closed")
	// ErrNoCredentials says that the keys or the token to log in with could not be had: from the environment, a metadata
	// service or a callback. It is a failure of authentication, never one of the MongoDB server's network.
	ErrNoCredentials = errors.New("no credentials could be had")
)

// Error is a failed operation. Empty fields are unknown or do not apply.
type Error struct {
	Op       string // the command's name as sent: "find"
	NS       string // "db.coll", or "db" for a command on a database
	Server   string // address of the member that failed
	Attempts int    // how often the command was tried; 0 and 1 both mean once
	Stage    Stage
	Code     int32  // the server's code; 0 if the server gave none
	CodeName string // the server's name for it
	Message  string // the server's errmsg, or in plain words what went wrong; its first line can stand alone
	Labels   []string
	Cause    error // what Unwrap returns
	TimedOut bool  // a time limit of the client or of the socket ran out

	WriteErrors       []WriteError       // failures of single writes, in order of Index
	WriteConcernError *WriteConcernError // the write happened but its write concern was not met
	// WriteConcernErrors are those of all commands, if a call took several and more than one was not met; the last is also
	// WriteConcernError. Else nil.
	WriteConcernErrors []*WriteConcernError
	Response           bson.Raw // the server's whole reply, where there is one
}

// WriteError is the failure of one write of a batch.
type WriteError struct {
	Index    int // position in what the caller gave
	Code     int32
	CodeName string
	Message  string
	Details  bson.Raw // errInfo; nil if absent
}

// Error says in one line which write failed and why.
func (w WriteError) Error() string {
	return fmt.Sprintf("write %d: %s%s", w.Index, OneLine(w.Message), codeSuffix(w.Code, w.CodeName))
}

// WriteConcernError says that a write was done but not confirmed as the write concern asked.
type WriteConcernError struct {
	Code    int32
	Name    string // codeName
	Message string
	Details bson.Raw // errInfo; nil if absent
}

// Error says in one line why the write concern was not met.
func (w *WriteConcernError) Error() string {
	return "write concern not met: " + OneLine(w.Message) + codeSuffix(w.Code, w.Name)
}

// New makes an Error of a stage with a message in plain words.
func New(stage Stage, format string, args ...any) *Error {
	return &Error{Stage: stage, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error of a stage out of a cause. It is timed out if the cause is.
func Wrap(stage Stage, cause error, format string, args ...any) *Error {
	e := New(stage, format, args...)
	e.Cause, e.TimedOut = cause, isTimeoutCause(cause)
	return e
}

// Server makes a server's refusal: a code, its name from the table, and a message.
func Server(code int32, format string, args ...any) *Error {
	e := New(StageServer, format, args...)
	e.Code, e.CodeName = code, CodeName(code)
	return e
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Timeout says whether a time limit ran out; it makes Error a net.Error-like value.
func (e *Error) Timeout() bool { return e.TimedOut || isTimeoutCode(e.Code) || isTimeoutCause(e.Cause) }

// HasLabel says whether the error carries the label.
func (e *Error) HasLabel(label string) bool { return slices.Contains(e.Labels, label) }

// AddLabel adds labels that the error does not carry yet. It is for those who make errors, before others see them.
func (e *Error) AddLabel(labels ...string) *Error {
	for _, l := range labels {
		if !e.HasLabel(l) {
			e.Labels = append(e.Labels, l)
		}
	}
	return e
}

// BeforeHandshake says whether the connection was not yet ready for commands when the error happened: it was being
// dialled, secured, greeted or authenticated.
func (e *Error) BeforeHandshake() bool {
	switch e.Stage {
	case StageProxy, StageDial, StageTLS, StageHandshake, StageAuth:
		return true
	}
	return false
}

// HasCode says whether the server gave the code anywhere: for the command, a single write or the write concern.
func (e *Error) HasCode(code int32) bool {
	if e.Code == code && code != 0 {
		return true
	}
	if e.WriteConcernError != nil && e.WriteConcernError.Code == code {
		return true
	}
	if slices.ContainsFunc(e.WriteConcernErrors, func(w *WriteConcernError) bool { return w.Code == code }) {
		return true
	}
	return slices.ContainsFunc(e.WriteErrors, func(w WriteError) bool { return w.Code == code })
}

// Error is the failure in words. The first line is a whole sentence: what was tried, where, and why it failed.
// Further lines, if any, are details such as the state of each member. They come of a failed selection alone: what servers
// and other strangers say is printed by OneLine, so that they forge no line of a log. The fields have it as it came.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.subject())
	first, rest, _ := strings.Cut(e.what(), "\n")
	b.WriteString(first)
	b.WriteString(codeSuffix(e.Code, e.CodeName))
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts)", e.Attempts)
	}
	if rest != "" {
		b.WriteString("\n" + rest)
	}
	return b.String()
}

// subject is "find shop.people on db1:27017: read: ", as far as it is known.
func (e *Error) subject() string {
	parts := make([]string, 0, 3)
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	if e.NS != "" {
		parts = append(parts, e.NS)
	}
	if e.Server != "" {
		parts = append(parts, "on "+e.Server)
	}
	s := OneLine(strings.Join(parts, " "))
	if s != "" {
		s += ": "
	}
	switch e.Stage {
	case "", StageServer, StageSelection: // the message says it
		return s
	}
	return s + string(e.Stage) + ": "
}

// what is the message, then the failed writes, the write concern and the cause where they add something.
func (e *Error) what() string {
	var parts []string
	if e.Message != "" {
		parts = append(parts, e.message())
	}
	const shown = 3
	for i, w := range e.WriteErrors {
		if i == shown {
			parts = append(parts, fmt.Sprintf("and %d more failed writes", len(e.WriteErrors)-shown))
			break
		}
		parts = append(parts, w.Error())
	}
	if e.WriteConcernError != nil {
		parts = append(parts, e.WriteConcernError.Error())
		if n := len(e.WriteConcernErrors); n > 1 {
			parts[len(parts)-1] += fmt.Sprintf(", nor those of %d more commands", n-1)
		}
	}
	if e.Cause != nil {
		if c := e.Cause.Error(); !strings.Contains(e.Message, c) {
			parts = insertCause(parts, e.causeText(c))
		}
	}
	if len(parts) == 0 {
		return "failed"
	}
	return strings.Join(parts, ": ")
}

// message is Message to be printed. That of a failed selection has lines, made of texts that are fit for it.
func (e *Error) message() string {
	if e.Stage == StageSelection {
		return escaped(e.Message, "\n")
	}
	return OneLine(e.Message)
}

// causeText is the text of the cause to be printed. Only an Error is known to keep strangers' words inside its lines.
func (e *Error) causeText(text string) string {
	if find(e.Cause) != nil {
		return escaped(text, "\n")
	}
	return OneLine(text)
}

// insertCause puts the cause behind the first line of the last part, so that it is not lost below a list of members.
func insertCause(parts []string, cause string) []string {
	if len(parts) == 0 {
		return []string{cause}
	}
	last := len(parts) - 1
	first, rest, multi := strings.Cut(parts[last], "\n")
	causeFirst, causeRest, causeMulti := strings.Cut(cause, "\n")
	parts[last] = first + ": " + causeFirst
	if multi {
		parts[last] += "\n" + rest
	}
	if causeMulti {
		parts[last] += "\n" + causeRest
	}
	return parts
}

func codeSuffix(code int32, name string) string {
	switch {
	case code == 0 && name == "":
		return ""
	case name == "":
		name = CodeName(code)
	case code == 0:
		return " (" + OneLine(name) + ")"
	}
	return fmt.Sprintf(" (%s %d)", OneLine(name), code)
}

func isTimeoutCause(err error) bool {
	if err == nil {
		return false
	}
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
