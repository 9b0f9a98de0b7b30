package sextant

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// Client knows one deployment: it watches its members, keeps connections to them, and routes each operation. One per
// program and deployment is enough: it is safe for concurrent use. Close it at the end.
type Client struct {
	cluster  *cluster.Cluster
	exec     *operation.Executor
	set      settings
	cfg      *Config
	metadata *conn.Metadata // what the client says of itself in hello
	log      *logbook       // nil: nothing is logged

	start  sync.Once
	closed atomic.Bool
	done   chan struct{} // closed when Close has finished
}

// String names the client's seeds. It also keeps fmt from walking into the configuration, which holds the password.
func (cl *Client) String() string {
	if cl.empty() {
		return "sextant client that was not made by Connect"
	}
	return "sextant client of " + strings.Join(cl.cfg.Hosts, ",")
}

// empty says whether Connect has not made the client.
func (cl *Client) empty() bool { return cl == nil || cl.cluster == nil }

func (cl *Client) settings() settings {
	if cl == nil {
		return settings{}
	}
	return cl.set
}

// ReadPreference is the read preference of the client: that of the configuration, else primary.
func (cl *Client) ReadPreference() *readpref.ReadPref { return cl.settings().effectiveReadPref() }

// ReadConcern is the read concern of the client; nil is the server's default.
func (cl *Client) ReadConcern() *concern.Read { return cl.settings().readConcern }

// WriteConcern is the write concern of the client; nil is the server's default.
func (cl *Client) WriteConcern() *concern.Write { return cl.settings().writeConcern }

// BSONOptions are the options by which values are encoded and decoded: Config.BSON.
func (cl *Client) BSONOptions() bson.Options { return cl.settings().bson }

// Warnings are the remarks on the client's configuration: see Config.Warnings.
func (cl *Client) Warnings() []Warning {
	if cl.empty() {
		return nil
	}
	return cl.cfg.Warnings
}

// DriverInfo is what a library built on this driver says of itself to the servers, for their logs. The version and the
// platform may be empty; no text may hold a "|".
type DriverInfo struct{ Name, Version, Platform string }

// AppendMetadata puts a library's description behind what this client says of itself in the handshake of its connections,
// for those made from now on (handshake specification, "Metadata updates after MongoClient initialization"). The same
// description a second time changes nothing. A text with a "|" in it, a missing name, and more than the 512 bytes that a
// server takes are errors.
func (cl *Client) AppendMetadata(d DriverInfo) error {
	if cl.empty() {
		return cl.ready("AppendMetadata", "")
	}
	if err := cl.metadata.Append(conn.DriverInfo(d)); err != nil {
		return argument("AppendMetadata", "", "%v", err)
	}
	return nil
}

// DroppedEvents is the number of events that the callbacks of Config.Monitor were not told of, since they are too slow:
// 4,096 may wait. Commands are never dropped.
func (cl *Client) DroppedEvents() int64 {
	if cl.empty() {
		return 0
	}
	return cl.cluster.Dropped()
}

// ready starts the watching of the members, at the first use, and says whether the client may still be used.
func (cl *Client) ready(op, ns string) error {
	if cl.empty() {
		return argument(op, ns, "the client is nil or empty: Connect makes one")
	}
	if cl.closed.Load() {
		return &mongoerr.Error{Op: op, NS: ns, Stage: mongoerr.StageSelection, Message: ErrClientClosed.Error(), Cause: ErrClientClosed}
	}
	cl.start.Do(cl.cluster.Start)
	return nil
}

// endTimeout bounds how long Close tells a server that does not answer which sessions are over.
const endTimeout = 2 * time.Second

// Close ends the client: it tells the servers which sessions are over, closes all connections and waits until
// every goroutine of the client has ended, or ctx has. Operations under way fail with ErrClientClosed or an error of
// their connection. A function of the configuration that does not return, such as Dial, is waited for until a second after
// ctx, and no longer than eleven seconds; then the error says so. That is what a Close inside a callback of an event or a
// log's handler comes to, since it waits for that callback: begin it on another goroutine there. Closing again does nothing
// but wait as well.
func (cl *Client) Close(ctx context.Context) error {
	if ctx == nil {
		return argument("Close", "", "the context is nil")
	}
	if cl.empty() {
		return cl.ready("Close", "")
	}
	if !cl.closed.CompareAndSwap(false, true) {
		select {
		case <-cl.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer close(cl.done)
	clients.leave(cl.cfg.crowdKey())
	started := true
	cl.start.Do(func() { started = false })
	if started {
		end, cancel := context.WithTimeout(ctx, endTimeout)
		cl.exec.EndSessions(end)
		cancel()
	}
	err := cl.cluster.Close(ctx)
	cl.log.close()
	return err
}
