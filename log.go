package sextant

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/operation"
)

// LogLevels are the least levels of what a client logs, by component (logging specification). A level that is nil leaves
// it to the Logger's handler, which always has the last word. An *slog.LevelVar may change while the client is in use.
type LogLevels struct {
	Command         slog.Leveler // commands and their replies: Debug
	Topology        slog.Leveler // monitoring and what it finds: Debug
	ServerSelection slog.Leveler // who is taken for an operation: Debug; that one has to wait: Info
	Connection      slog.Leveler // pools: Debug
}

// Components of records that belong to no event: see cluster for the others.
const (
	logCommand = "command"
	logClient  = "client" // warnings, callbacks that panic
)

// of is the least level of a component, nil if the handler decides alone.
func (l *LogLevels) of(component string) slog.Leveler {
	switch component {
	case logCommand:
		return l.Command
	case cluster.LogTopology:
		return l.Topology
	case cluster.LogSelection:
		return l.ServerSelection
	case cluster.LogConnection:
		return l.Connection
	}
	return nil
}

// DefaultLogMaxDocumentLength is the number of characters after which documents in the log are cut off.
const DefaultLogMaxDocumentLength = 1000

// logbook writes the records of one client.
type logbook struct {
	h        slog.Handler
	levels   LogLevels
	client   slog.Leveler // the least level of the component client; nil: the handler decides
	limit    int          // characters of a document
	topology string       // topologyId
	file     io.Closer    // opened for MONGODB_LOG_PATH; nil: none
}

// newLogbook is nil if nothing is to be logged: without a Logger, and with no variable of the environment that asks for
// it. What the configuration says comes before the environment.
func (c *Config) newLogbook(id bson.ObjectID) *logbook {
	env := environment{}
	l := &logbook{levels: c.LogLevels, limit: c.LogMaxDocumentLength, topology: id.Hex()}
	if l.limit == 0 {
		l.limit = env.length()
	}
	if c.Logger != nil {
		l.h = c.Logger.Handler()
		return l
	}
	if l.levels, l.client = env.levels(); l.levels == (LogLevels{}) {
		return nil
	}
	l.h, l.file = env.handler()
	for _, complaint := range env.complaints {
		l.write(context.Background(), time.Now(), logClient, slog.LevelWarn, complaint)
	}
	return l
}

// close closes the log's own file.
func (l *logbook) close() {
	if l != nil && l.file != nil {
		l.file.Close()
	}
}

// wants says whether a record of the component and level is to be written.
func (l *logbook) wants(ctx context.Context, component string, level slog.Level) (yes bool) {
	defer l.excuse()
	least := l.levels.of(component)
	if component == logClient {
		least = l.client
	}
	if least != nil && level < least.Level() {
		return false
	}
	return l.h.Enabled(ctx, level)
}

// excuse keeps the panic of a handler from the operation.
func (l *logbook) excuse() { _ = recover() }

// write writes a record without asking whether it is wanted.
func (l *logbook) write(ctx context.Context, at time.Time, component string, level slog.Level, message string, attrs ...slog.Attr) {
	defer l.excuse()
	r := slog.NewRecord(at, level, message, 0)
	r.AddAttrs(slog.String("component", component))
	r.AddAttrs(attrs...)
	_ = l.h.Handle(ctx, r)
}

// panicked tells of a callback of the user's that panicked.
func (l *logbook) panicked(callback string, value any) {
	if l == nil || !l.wants(context.Background(), logClient, slog.LevelError) {
		return
	}
	l.write(context.Background(), time.Now(), logClient, slog.LevelError, "A callback panicked",
		slog.String("callback", callback), slog.String("panic", fmt.Sprint(value)), slog.String("stack", string(debug.Stack())))
}

// warn tells of what is odd about the configuration.
func (l *logbook) warn(warnings []Warning) {
	if l == nil || !l.wants(context.Background(), logClient, slog.LevelWarn) {
		return
	}
	for _, w := range warnings {
		l.write(context.Background(), time.Now(), logClient, slog.LevelWarn, "connection string: "+w.String())
	}
}

// forCluster is nil if nothing is logged.
func (l *logbook) forCluster() *cluster.Log {
	if l == nil {
		return nil
	}
	return &cluster.Log{
		Wants: func(component string, level slog.Level) bool { return l.wants(context.Background(), component, level) },
		Take:  l.take,
	}
}

// forCommands is nil if nothing is logged.
func (l *logbook) forCommands() *operation.Log {
	if l == nil {
		return nil
	}
	return &operation.Log{
		Wants:     func(ctx context.Context) bool { return l.wants(ctx, logCommand, slog.LevelDebug) },
		Started:   l.commandStarted,
		Succeeded: l.commandSucceeded,
		Failed:    l.commandFailed,
	}
}

// environment reads the variables of the logging specification. A value that makes no sense counts as none, and is
// complained of in the log itself.
type environment struct{ complaints []string }

func (e *environment) complain(name, value, want string) {
	e.complaints = append(e.complaints, fmt.Sprintf("the environment variable %s=%q is not used: it must be %s", name, value, want))
}

// logNames are the levels of the specification. Those beyond slog's lie between or above its own.
var logNames = map[string]slog.Level{
	"emergency": 20, "alert": 16, "critical": 12, "error": slog.LevelError, "warn": slog.LevelWarn, "notice": slog.LevelInfo + 2,
	"info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": slog.LevelDebug - 4, "off": logOff,
}

// logOff is above every level that is ever used.
const logOff = slog.Level(1 << 20)

func (e *environment) level(name string) slog.Leveler {
	value := os.Getenv(name)
	if value == "" {
		return nil
	}
	if level, ok := logNames[strings.ToLower(value)]; ok {
		return level
	}
	e.complain(name, value, "off, emergency, alert, critical, error, warn, notice, info, debug or trace")
	return nil
}

// levels are the least levels by component, all nil if nothing is to be logged.
func (e *environment) levels() (l LogLevels, client slog.Leveler) {
	all := e.level("MONGODB_LOG_ALL")
	one := func(name string) slog.Leveler {
		if level := e.level(name); level != nil {
			return level
		}
		return all
	}
	l = LogLevels{
		Command: one("MONGODB_LOG_COMMAND"), Topology: one("MONGODB_LOG_TOPOLOGY"),
		ServerSelection: one("MONGODB_LOG_SERVER_SELECTION"), Connection: one("MONGODB_LOG_CONNECTION"),
	}
	off := func(level slog.Leveler) slog.Leveler {
		if level == nil {
			return logOff
		}
		return level
	}
	l = LogLevels{off(l.Command), off(l.Topology), off(l.ServerSelection), off(l.Connection)}
	if l == (LogLevels{logOff, logOff, logOff, logOff}) {
		return LogLevels{}, nil
	}
	if all == nil {
		all = slog.LevelWarn // something is logged: then what is odd is, too
	}
	return l, all
}

func (e *environment) length() int {
	const name = "MONGODB_LOG_MAX_DOCUMENT_LENGTH"
	value := os.Getenv(name)
	if value == "" {
		return DefaultLogMaxDocumentLength
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		e.complain(name, value, "a number that is not negative")
		return DefaultLogMaxDocumentLength
	}
	return n
}

// handler writes to where MONGODB_LOG_PATH says, stderr if it says nothing or something that cannot be written to.
func (e *environment) handler() (h slog.Handler, file io.Closer) {
	const name = "MONGODB_LOG_PATH"
	options := &slog.HandlerOptions{Level: slog.LevelDebug - 4}
	path := os.Getenv(name)
	switch strings.ToLower(path) {
	case "", "stderr":
		return slog.NewTextHandler(os.Stderr, options), nil
	case "stdout":
		return slog.NewTextHandler(os.Stdout, options), nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		e.complain(name, path, "stdout, stderr or a file that can be written: "+err.Error())
		return slog.NewTextHandler(os.Stderr, options), nil
	}
	return slog.NewTextHandler(f, options), f
}

// take logs an event of the cluster.
func (l *logbook) take(at time.Time, e any) {
	switch e := e.(type) {
	case *event.PoolEvent:
		l.pool(at, e)
	case *event.HeartbeatEvent:
		l.heartbeat(at, e)
	case *event.TopologyEvent:
		l.topologyEvent(at, e)
	case *event.SelectionEvent:
		l.selection(at, e)
	case *event.PinEvent:
		l.pinMoved(at, e)
	case cluster.Dropped:
		l.write(context.Background(), at, logClient, slog.LevelWarn, "Records were dropped: the log is too slow", slog.Int64("dropped", int64(e)))
	}
}
