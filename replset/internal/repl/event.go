package repl

import "time"

// Event is something that happened to a node: a message, a timer, a word from its shell.
type Event interface{ event() }

// Tick says that time has passed.
type Tick struct{}

// HeartbeatRequest is another member's heartbeat; the node answers with a HeartbeatAnswer.
type HeartbeatRequest struct {
	From    int
	Term    int64
	Primary int // whom the sender takes for primary, or None
	Commit  OpTime
	Version int32 // of the sender's configuration
}

// HeartbeatReply is the answer to a heartbeat that this node sent.
type HeartbeatReply struct {
	From    int
	Term    int64
	Role    Role
	Applied OpTime
	Durable OpTime
	Commit  OpTime
	Primary int
	Version int32
}

// HeartbeatFailed says that a heartbeat had no answer.
type HeartbeatFailed struct {
	From int
	Why  string
}

// VoteRequest asks for a vote; the node answers with a VoteAnswer. A dry run asks without binding anyone.
type VoteRequest struct {
	From    int
	Term    int64
	Applied OpTime
	DryRun  bool
	Version int32
}

// VoteReply is the answer to a vote request that this node sent.
type VoteReply struct {
	From    int
	Term    int64 // the voter's own
	For     int64 // the term that was asked for
	DryRun  bool
	Granted bool
}

// Position says how far another member has applied the oplog (replSetUpdatePosition), and how much of that would
// outlive a crash.
type Position struct {
	From    int
	Applied OpTime
	Durable OpTime
}

// Applied says how far this member has written or applied its own oplog, and how much of that would outlive a crash:
// all of it where data is in memory alone and nothing outlives the process.
type Applied struct{ OpTime, Durable OpTime }

// Rolled says that this member reverted its oplog to an older entry.
type Rolled struct{ To OpTime }

// PrimaryAlive says that the sync source sent something, and what it knows of the commit point.
type PrimaryAlive struct {
	From   int
	Term   int64
	Commit OpTime
}

// StepUp tells a node to stand for election now: at the set's first start (SkipDryRun), after a hand-over, on command.
type StepUp struct{ SkipDryRun bool }

// AttemptStepDown stops (or allows again) new writes while a step-down waits for a secondary to catch up.
type AttemptStepDown struct{ On bool }

// StepDown makes a primary a secondary that stands for no election before Until. HandTo, unless None, is asked to
// stand at once.
type StepDown struct {
	Until  time.Time
	HandTo int
}

// Freeze forbids candidacies before Until; a zero Until lifts it.
type Freeze struct{ Until time.Time }

// Recover puts a member that is no primary into a role it cannot serve reads in, or back (Role 0).
type Recover struct{ Role Role }

// Drained says that a winner has what it could get and has logged its first entry of the term.
type Drained struct{ OpTime, Durable OpTime }

// Reconfig replaces the configuration; an older version is ignored.
type Reconfig struct{ Config *Config }

func (Tick) event()             {}
func (HeartbeatRequest) event() {}
func (HeartbeatReply) event()   {}
func (HeartbeatFailed) event()  {}
func (VoteRequest) event()      {}
func (VoteReply) event()        {}
func (Position) event()         {}
func (Applied) event()          {}
func (Rolled) event()           {}
func (PrimaryAlive) event()     {}
func (StepUp) event()           {}
func (AttemptStepDown) event()  {}
func (StepDown) event()         {}
func (Freeze) event()           {}
func (Recover) event()          {}
func (Drained) event()          {}
func (Reconfig) event()         {}

// Effect is something that the shell must do.
type Effect interface{ effect() }

type effects []Effect

func (e *effects) add(x Effect) { *e = append(*e, x) }

// SendHeartbeat sends Request to a member.
type SendHeartbeat struct {
	To      int
	Request HeartbeatRequest
}

// HeartbeatAnswer answers the HeartbeatRequest of this step.
type HeartbeatAnswer struct{ Reply HeartbeatReply }

// SendVote asks a member for its vote.
type SendVote struct {
	To      int
	Request VoteRequest
}

// VoteAnswer answers the VoteRequest of this step. Reason is empty when the vote is granted.
type VoteAnswer struct {
	Reply  VoteReply
	Reason string
}

// SaveVote stores a vote before anything else is done.
type SaveVote struct{ Vote Vote }

// SendStepUp asks a member to stand for election without a dry run.
type SendStepUp struct{ To int }

// Drain tells a winner to take no more from others, to log its first entry of the term and to report Drained.
type Drain struct{ Term int64 }

// FetchConfig tells the member to ask another one for its newer configuration.
type FetchConfig struct{ From int }

func (SendHeartbeat) effect()   {}
func (HeartbeatAnswer) effect() {}
func (SendVote) effect()        {}
func (VoteAnswer) effect()      {}
func (SaveVote) effect()        {}
func (SendStepUp) effect()      {}
func (Drain) effect()           {}
func (FetchConfig) effect()     {}
