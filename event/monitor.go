package event

import (
	"context"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// Monitor is a set of callbacks; nil ones are not called. A callback that panics is cut off: the panic does not reach
// the operation.
type Monitor struct {
	CommandStarted   func(context.Context, *CommandStartedEvent)
	CommandSucceeded func(context.Context, *CommandSucceededEvent)
	CommandFailed    func(context.Context, *CommandFailedEvent)
	Pool             func(*PoolEvent)
	Heartbeat        func(*HeartbeatEvent)
	TopologyChanged  func(*TopologyEvent)
	Selection        func(*SelectionEvent)
	PinMoved         func(*PinEvent)
}

// CommandStartedEvent says that a command is about to be sent. Sensitive commands show no body.
type CommandStartedEvent struct {
	Name               string // "find"
	DB                 string
	Command            bson.Raw // whole, document sequences included; valid during the callback only
	RequestID          int64
	OperationID        int64 // the same for every attempt of one call
	Server             string
	ConnectionID       int64          // the client's number of the connection
	ServerConnectionID int64          // the server's; 0 if it told none
	ServiceID          *bson.ObjectID // behind a load balancer: the service that the connection leads to; else nil
}

// CommandSucceededEvent says that the server answered ok: 1.
type CommandSucceededEvent struct {
	Name               string
	DB                 string
	Reply              bson.Raw // valid during the callback only
	Duration           time.Duration
	RequestID          int64
	OperationID        int64
	Server             string
	ConnectionID       int64
	ServerConnectionID int64
	ServiceID          *bson.ObjectID // behind a load balancer
}

// CommandFailedEvent says that the server answered with an error, or that no answer came.
type CommandFailedEvent struct {
	Name               string
	DB                 string
	Err                error
	Duration           time.Duration
	RequestID          int64
	OperationID        int64
	Server             string
	ConnectionID       int64
	ServerConnectionID int64
	ServiceID          *bson.ObjectID // behind a load balancer
}

// PoolEventType says what happened in a pool (CMAP, Events).
type PoolEventType string

// What can happen in a pool.
const (
	PoolCreated        PoolEventType = "ConnectionPoolCreated"
	PoolReady          PoolEventType = "ConnectionPoolReady"
	PoolCleared        PoolEventType = "ConnectionPoolCleared"
	PoolClosed         PoolEventType = "ConnectionPoolClosed"
	ConnectionCreated  PoolEventType = "ConnectionCreated"
	ConnectionReady    PoolEventType = "ConnectionReady"
	ConnectionClosed   PoolEventType = "ConnectionClosed"
	CheckOutStarted    PoolEventType = "ConnectionCheckOutStarted"
	CheckOutFailed     PoolEventType = "ConnectionCheckOutFailed"
	ConnectionCheckOut PoolEventType = "ConnectionCheckedOut"
	ConnectionCheckIn  PoolEventType = "ConnectionCheckedIn"
	// A caller gave up before the reply had come; the connection drains and is used again, or is closed.
	PendingResponseStarted   PoolEventType = "ConnectionPendingResponseStarted"
	PendingResponseSucceeded PoolEventType = "ConnectionPendingResponseSucceeded"
	PendingResponseFailed    PoolEventType = "ConnectionPendingResponseFailed"
)

// Reasons of ConnectionClosed, CheckOutFailed and PendingResponseFailed.
const (
	ReasonStale           = "stale"           // the pool was cleared since it was opened
	ReasonIdle            = "idle"            // unused for longer than maxIdleTime
	ReasonError           = "error"           // the connection failed
	ReasonPoolClosed      = "poolClosed"      // the pool is closed
	ReasonSurplus         = "surplus"         // it was being opened in the place of one that drained in time
	ReasonTimeout         = "timeout"         // no connection came free in time; the late reply did not come in time
	ReasonConnectionError = "connectionError" // opening a connection failed, or the pool is paused
)

// PoolEvent is one event of one pool; which fields are set depends on Type.
type PoolEvent struct {
	Type         PoolEventType
	Address      string
	ConnectionID int64
	Reason       string // ConnectionClosed, CheckOutFailed, PendingResponseFailed
	Err          error  // PoolCleared, ConnectionClosed for the reason "error", CheckOutFailed, PendingResponseFailed
	Duration     time.Duration
	Interrupt    bool           // PoolCleared: connections in use are closed too
	ServiceID    *bson.ObjectID // PoolCleared: behind a load balancer, the service whose connections are given up; else nil
	Generation   uint64         // with a ServiceID, that of the service
	// The settings of the pool: of PoolCreated alone.
	MaxSize       int // 0: no limit
	MinSize       int
	MaxConnecting int
	MaxIdle       time.Duration // 0: no limit
	WaitTimeout   time.Duration // 0: no limit
}

// HeartbeatType says how far a check of a member has come.
type HeartbeatType string

// The steps of a check.
const (
	HeartbeatStarted   HeartbeatType = "ServerHeartbeatStarted"
	HeartbeatSucceeded HeartbeatType = "ServerHeartbeatSucceeded"
	HeartbeatFailed    HeartbeatType = "ServerHeartbeatFailed"
)

// HeartbeatEvent is one step of a check of one member by its monitor.
type HeartbeatEvent struct {
	Type               HeartbeatType
	Address            string
	ConnectionID       int64 // the client's number of the connection, which HeartbeatStarted may tell before it is open
	ServerConnectionID int64 // the server's; 0 as long as it has told none
	Duration           time.Duration
	Reply              bson.Raw // HeartbeatSucceeded
	Err                error    // HeartbeatFailed
	Awaited            bool     // the server holds its answer until something changes
}

// TopologyEventType says what changed (SDAM monitoring, Events).
type TopologyEventType string

// What can change in a topology.
const (
	TopologyOpened  TopologyEventType = "TopologyOpening"
	TopologyClosed  TopologyEventType = "TopologyClosed"
	TopologyUpdated TopologyEventType = "TopologyDescriptionChanged"
	MemberOpened    TopologyEventType = "ServerOpening"
	MemberClosed    TopologyEventType = "ServerClosed"
	MemberUpdated   TopologyEventType = "ServerDescriptionChanged"
)

// TopologyEvent is one change of the client's view. Before and After are set for TopologyUpdated, Address for the
// member events, MemberBefore and MemberAfter for MemberUpdated.
type TopologyEvent struct {
	Type                      TopologyEventType
	TopologyID                bson.ObjectID // the same in all events of a client, and in no other's
	Address                   string
	Before, After             Topology
	MemberBefore, MemberAfter Member
}

// SelectionType says how far the selection of a member has come.
type SelectionType string

// The steps of a selection.
const (
	SelectionStarted   SelectionType = "ServerSelectionStarted"
	SelectionWaiting   SelectionType = "ServerSelectionWaiting" // nobody suitable yet; once an operation
	SelectionSucceeded SelectionType = "ServerSelectionSucceeded"
	SelectionFailed    SelectionType = "ServerSelectionFailed"
)

// SelectionEvent is one step of a selection.
type SelectionEvent struct {
	Type        SelectionType
	Operation   string // the command's name
	OperationID int64
	Want        string
	Topology    Topology      // as it was at this step
	Server      string        // SelectionSucceeded
	Verdict     Verdict       // SelectionWaiting, SelectionFailed
	Remaining   time.Duration // SelectionWaiting: how long it will wait yet
	Err         error         // SelectionFailed
}

// PinEvent says that a pinned reader went to another member.
type PinEvent struct {
	Want     string // what the pin is for: "a read with mode secondary"
	From, To string // addresses
	Reason   string // why the former member was left: "is RSOther, secondary wanted", "switched by the caller"
}
