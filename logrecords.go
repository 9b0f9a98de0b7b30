package sextant

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/cluster"
)

// attributes collects those of a record. What is unknown is left out (logging specification, "omitting null values").
type attributes []slog.Attr

func (a *attributes) text(key, value string) {
	if value != "" {
		*a = append(*a, slog.String(key, value))
	}
}

func (a *attributes) number(key string, value int64) {
	if value != 0 {
		*a = append(*a, slog.Int64(key, value))
	}
}

func (a *attributes) millis(key string, d time.Duration) {
	*a = append(*a, slog.Float64(key, float64(d)/float64(time.Millisecond)))
}

func (a *attributes) failure(key string, err error) {
	if err != nil {
		*a = append(*a, slog.String(key, err.Error()))
	}
}

// server names a member. A Unix socket has no port.
func (a *attributes) server(address string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		a.text("serverHost", address)
		return
	}
	a.text("serverHost", host)
	n, _ := strconv.ParseInt(port, 10, 64)
	a.number("serverPort", n)
}

// service names the service behind a load balancer.
func (a *attributes) service(id *bson.ObjectID) {
	if id != nil {
		a.text("serviceId", id.Hex())
	}
}

// commandAttributes are those that all records of the component command have.
func commandAttributes(name, db string, request, operation, connection, theirs int64, server string, service *bson.ObjectID) attributes {
	a := make(attributes, 0, 12)
	a.text("commandName", name)
	a.text("databaseName", db)
	a.number("requestId", request)
	a.number("operationId", operation)
	a.number("driverConnectionId", connection)
	a.number("serverConnectionId", theirs)
	a.service(service)
	a.server(server)
	return a
}

func (l *logbook) commandStarted(ctx context.Context, e *event.CommandStartedEvent) {
	a := commandAttributes(e.Name, e.DB, e.RequestID, e.OperationID, e.ConnectionID, e.ServerConnectionID, e.Server, e.ServiceID)
	a.text("command", excerpt(e.Command, l.limit))
	l.write(ctx, time.Now(), logCommand, slog.LevelDebug, "Command started", a...)
}

func (l *logbook) commandSucceeded(ctx context.Context, e *event.CommandSucceededEvent) {
	a := commandAttributes(e.Name, e.DB, e.RequestID, e.OperationID, e.ConnectionID, e.ServerConnectionID, e.Server, e.ServiceID)
	a.millis("durationMS", e.Duration)
	a.text("reply", excerpt(e.Reply, l.limit))
	l.write(ctx, time.Now(), logCommand, slog.LevelDebug, "Command succeeded", a...)
}

func (l *logbook) commandFailed(ctx context.Context, e *event.CommandFailedEvent) {
	a := commandAttributes(e.Name, e.DB, e.RequestID, e.OperationID, e.ConnectionID, e.ServerConnectionID, e.Server, e.ServiceID)
	a.millis("durationMS", e.Duration)
	a.failure("failure", e.Err)
	l.write(ctx, time.Now(), logCommand, slog.LevelDebug, "Command failed", a...)
}

var poolMessages = map[event.PoolEventType]string{
	event.PoolCreated: "Connection pool created", event.PoolReady: "Connection pool ready",
	event.PoolCleared: "Connection pool cleared", event.PoolClosed: "Connection pool closed",
	event.ConnectionCreated: "Connection created", event.ConnectionReady: "Connection ready",
	event.ConnectionClosed: "Connection closed", event.CheckOutStarted: "Connection checkout started",
	event.CheckOutFailed: "Connection checkout failed", event.ConnectionCheckOut: "Connection checked out",
	event.ConnectionCheckIn: "Connection checked in",
}

var closeReasons = map[string]string{
	event.ReasonStale:      "Connection became stale because the pool was cleared",
	event.ReasonIdle:       "Connection has been available but unused for longer than the configured max idle time",
	event.ReasonError:      "An error occurred while using the connection",
	event.ReasonPoolClosed: "Connection pool was closed",
}

var checkOutReasons = map[string]string{
	event.ReasonTimeout:         "Wait queue timeout elapsed without a connection becoming available",
	event.ReasonConnectionError: "An error occurred while trying to establish a new connection",
	event.ReasonPoolClosed:      "Connection pool was closed",
}

func (l *logbook) pool(at time.Time, e *event.PoolEvent) {
	var a attributes
	a.server(e.Address)
	a.number("driverConnectionId", e.ConnectionID)
	switch e.Type {
	case event.PoolCreated:
		a.number("maxIdleTimeMS", e.MaxIdle.Milliseconds())
		a.number("minPoolSize", int64(e.MinSize))
		a.number("maxPoolSize", int64(e.MaxSize))
		a.number("maxConnecting", int64(e.MaxConnecting))
		a.number("waitQueueTimeoutMS", e.WaitTimeout.Milliseconds())
	case event.PoolCleared:
		a.service(e.ServiceID)
		if e.Interrupt {
			a = append(a, slog.Bool("interruptInUseConnections", true))
		}
		a.failure("error", e.Err)
	case event.ConnectionClosed:
		a.text("reason", closeReasons[e.Reason])
		a.failure("error", e.Err)
	case event.CheckOutFailed:
		a.text("reason", checkOutReasons[e.Reason])
		a.failure("error", e.Err)
		a.millis("durationMS", e.Duration)
	case event.ConnectionReady, event.ConnectionCheckOut:
		a.millis("durationMS", e.Duration)
	}
	l.write(context.Background(), at, cluster.LogConnection, slog.LevelDebug, poolMessages[e.Type], a...)
}

func (l *logbook) heartbeat(at time.Time, e *event.HeartbeatEvent) {
	var a attributes
	a.text("topologyId", l.topology)
	a.server(e.Address)
	a.number("driverConnectionId", e.ConnectionID)
	a.number("serverConnectionId", e.ServerConnectionID)
	a = append(a, slog.Bool("awaited", e.Awaited))
	message := "Server heartbeat started"
	switch e.Type {
	case event.HeartbeatSucceeded:
		message = "Server heartbeat succeeded"
		a.millis("durationMS", e.Duration)
		a.text("reply", excerpt(e.Reply, l.limit))
	case event.HeartbeatFailed:
		message = "Server heartbeat failed"
		a.millis("durationMS", e.Duration)
		a.failure("failure", e.Err)
	}
	l.write(context.Background(), at, cluster.LogTopology, slog.LevelDebug, message, a...)
}

// topologyEvent logs all but changes of one server: those of the topology say the same (SDAM logging, "log messages").
func (l *logbook) topologyEvent(at time.Time, e *event.TopologyEvent) {
	var a attributes
	a.text("topologyId", l.topology)
	message := ""
	switch e.Type {
	case event.TopologyOpened:
		message = "Starting topology monitoring"
	case event.TopologyClosed:
		message = "Stopped topology monitoring"
	case event.MemberOpened:
		message = "Starting server monitoring"
		a.server(e.Address)
	case event.MemberClosed:
		message = "Stopped server monitoring"
		a.server(e.Address)
	case event.TopologyUpdated:
		message = "Topology description changed"
		a.text("previousDescription", e.Before.String())
		a.text("newDescription", e.After.String())
	default:
		return
	}
	l.write(context.Background(), at, cluster.LogTopology, slog.LevelDebug, message, a...)
}

func (l *logbook) selection(at time.Time, e *event.SelectionEvent) {
	var a attributes
	a.text("selector", e.Want)
	a.number("operationId", e.OperationID)
	a.text("operation", e.Operation)
	a.text("topologyDescription", e.Topology.String())
	level, message := slog.LevelDebug, "Server selection started"
	switch e.Type {
	case event.SelectionWaiting:
		level, message = slog.LevelInfo, "Waiting for suitable server to become available"
		a = append(a, slog.Int64("remainingTimeMS", e.Remaining.Milliseconds()))
		a.text("verdict", e.Verdict.Sentence)
	case event.SelectionSucceeded:
		message = "Server selection succeeded"
		a.server(e.Server)
	case event.SelectionFailed:
		message = "Server selection failed"
		why, _, _ := strings.Cut(e.Err.Error(), "\n") // the lines below are the topology again
		a.text("failure", why)
	}
	l.write(context.Background(), at, cluster.LogSelection, level, message, a...)
}

// pinMoved logs what the specification knows nothing of, under the names that it has for such things.
func (l *logbook) pinMoved(at time.Time, e *event.PinEvent) {
	var a attributes
	a.text("selector", e.Want)
	a.text("previousServer", e.From)
	a.server(e.To)
	a.text("reason", e.Reason)
	l.write(context.Background(), at, cluster.LogSelection, slog.LevelInfo, "Pin moved to another server", a...)
}
