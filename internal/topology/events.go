package topology

import (
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
)

// Event is something that the owner of a Description heard.
type Event interface{ isEvent() }

// HelloReply is a good answer to hello, from a monitor or from the handshake of a pool's connection.
type HelloReply struct {
	Server   *Server // made by ParseHello
	FromPool bool    // it came with a pool's connection, which is now ready: the pool's last error is over
}

// CheckFailed says that a monitor's check failed: no connection, no answer, or an answer without ok: 1.
type CheckFailed struct {
	Addr    string
	Err     error
	Timeout bool // the network's time limit ran out: operations in flight hang too and must be interrupted
}

// AppError is a failure of a pool's connection, while it was made or while it ran a command.
type AppError struct {
	Addr              string
	Err               error
	Generation        uint64         // the pool's generation when the connection was begun
	CurrentGeneration uint64         // the pool's generation now
	BeforeHandshake   bool           // the connection was not yet ready for commands
	MaxWire           int32          // of the connection; 0 if not known
	ServiceID         *bson.ObjectID // behind a load balancer: the service that the connection leads to
}

// SRVHosts is a new answer of DNS to the SRV query that the seeds came from: all hosts that may be members. With a limit
// they come in an order of chance, and the first ones for which there is room are taken.
type SRVHosts struct {
	Hosts []string
	Max   int // srvMaxHosts; 0: no limit
}

// RTTSample is a round trip measured apart from the monitor's streamed replies.
type RTTSample struct {
	Addr string
	RTT  time.Duration
}

func (HelloReply) isEvent()  {}
func (CheckFailed) isEvent() {}
func (AppError) isEvent()    {}
func (SRVHosts) isEvent()    {}
func (RTTSample) isEvent()   {}

// Effect is something that the owner must do after it stored the new Description, in the order given. ClearPool and
// ReadyPool belong to the change itself: nobody may select from the new Description before they are done.
type Effect interface{ isEffect() }

// StartMonitor asks for a monitor, and a pool, of a new server.
type StartMonitor struct{ Addr string }

// StopMonitor asks to end the monitor and close the pool of a server that is gone.
type StopMonitor struct{ Addr string }

// ClearPool asks to pause a pool and to let go of its connections.
type ClearPool struct {
	Addr      string
	Interrupt bool // close connections in use too
	Err       error
	ServiceID *bson.ObjectID // only the connections of this service; nil for all
}

// ReadyPool asks that a pool hand out connections; a pool that does already stays as it is.
type ReadyPool struct{ Addr string }

// RequestCheck asks the monitor to check as soon as the least interval allows.
type RequestCheck struct{ Addr string }

// CancelCheck asks the monitor to give up the check in progress and its connection, without checking again at once.
type CancelCheck struct{ Addr string }

// Publish asks to tell the user.
type Publish struct{ Event event.TopologyEvent }

func (StartMonitor) isEffect() {}
func (StopMonitor) isEffect()  {}
func (ClearPool) isEffect()    {}
func (ReadyPool) isEffect()    {}
func (RequestCheck) isEffect() {}
func (CancelCheck) isEffect()  {}
func (Publish) isEffect()      {}
