package repl

import "time"

// Event is something that happened to a node: a message, a timer, a word from its shell. Members are named by their
// number (MemberConfig.ID) in the sender's configuration.
type Event interface{ event() }

// Tick says that time has passed.
type Tick struct{}

// HeartbeatRequest is another member's heartbeat; the node answers with a HeartbeatAnswer.
type HeartbeatRequest struct {
	From    int    // None: a member that is in no configuration
	Host    string // the sender's
	Term    int64
	Primary int // whom the sender takes for primary, or None
	Commit  OpTime
	Config  ConfigID // of the sender's configuration
}

// HeartbeatReply is the answer to a heartbeat that this node sent.
type HeartbeatReply struct {
	From    int
	Host    string // the sender's
	Term    int64
	Role    Role
	Applied OpTime
	Durable OpTime
	Commit  OpTime
	Primary int
	Config  ConfigID
	Source  int           // whom the member pulls from, or None
	Elected OpTime        // its first entry as primary
	Ping    time.Duration // how long the heartbeat took
}

// HeartbeatFailed says that a heartbeat had no answer.
type HeartbeatFailed struct {
	From int
	Host string // that does not answer
	Why  string
}

// VoteRequest asks for a vote; the node answers with a VoteAnswer. A dry run asks without binding anyone.
type VoteRequest struct {
	From    int
	Term    int64
	Applied OpTime
	DryRun  bool
	Config  ConfigID
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
// outlive a crash. It may have come by way of a third.
type Position struct {
	From    int
	Direct  bool  // the member itself said so
	Term    int64 // the sender's: who has voted in a later term must not help an old primary to commit
	Version int32 // of the configuration in which the member has that number
	Applied OpTime
	Durable OpTime
}

// Applied says how far this member has written or applied its own oplog, and how much of that would outlive a crash:
// all of it where data is in memory alone and nothing outlives the process.
type Applied struct{ OpTime, Durable OpTime }

// SourceAlive says that the sync source sent something, what it knows of the commit point, and whom it sees as primary.
type SourceAlive struct {
	From    int
	Term    int64
	Applied OpTime
	Commit  OpTime
	Primary int
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

// Freeze forbids candidacies before Until, if they are not forbidden for longer; a zero Until lifts it.
type Freeze struct{ Until time.Time }

// RollingBack says that this member goes back to an entry that its source has too. Rolled ends it.
type RollingBack struct{}

// Copying says that this member has no data that means anything and copies all of another's. Rolled ends it.
type Copying struct{}

// Rolled says that this member's newest entry is now To: it has gone back, or has copied everything.
type Rolled struct{ To, Durable OpTime }

// Stale says that no source's oplog reaches back to this member's newest entry (or that one does again).
type Stale struct{ On bool }

// Maintenance takes a member that is no primary out of service, or back. It counts: as often as it was taken out it must
// be put back.
type Maintenance struct{ On bool }

// SyncFrom asks for a sync source other than the usual one. It holds until that one is lost, or falls behind.
type SyncFrom struct{ Source int }

// Drained says that a winner has what it could get and has logged its first entry of the term.
type Drained struct{ OpTime, Durable OpTime }

// Reconfig replaces the configuration; one that is not newer is ignored. Lead, unless 0, is the term in which this member
// must be primary for it. What another member sent, or was forced, may make a primary a secondary.
type Reconfig struct {
	Config *Config
	Lead   int64
}

func (Tick) event()             {}
func (HeartbeatRequest) event() {}
func (HeartbeatReply) event()   {}
func (HeartbeatFailed) event()  {}
func (VoteRequest) event()      {}
func (VoteReply) event()        {}
func (Position) event()         {}
func (Applied) event()          {}
func (SourceAlive) event()      {}
func (StepUp) event()           {}
func (AttemptStepDown) event()  {}
func (StepDown) event()         {}
func (Freeze) event()           {}
func (RollingBack) event()      {}
func (Copying) event()          {}
func (Rolled) event()           {}
func (Stale) event()            {}
func (Maintenance) event()      {}
func (SyncFrom) event()         {}
func (Drained) event()          {}
func (Reconfig) event()         {}

// Effect is something that the shell must do.
type Effect interface{ effect() }

type effects []Effect

func (e *effects) add(x Effect) { *e = append(*e, x) }

// SendHeartbeat sends Request to a member.
type SendHeartbeat struct {
	To      int
	Host    string
	Request HeartbeatRequest
}

// HeartbeatAnswer answers the HeartbeatRequest of this step.
type HeartbeatAnswer struct{ Reply HeartbeatReply }

// SendVote asks a member for its vote.
type SendVote struct {
	To      int
	Host    string
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
type SendStepUp struct {
	To   int
	Host string
}

// Drain tells a winner to take no more from others, to log its first entry of the term and to report Drained.
type Drain struct{ Term int64 }

// FetchConfig tells the member to ask the one at Host for its newer configuration.
type FetchConfig struct{ Host string }

// PassOn tells the member that a position came which its own source should hear of.
type PassOn struct{}

func (SendHeartbeat) effect()   {}
func (HeartbeatAnswer) effect() {}
func (SendVote) effect()        {}
func (VoteAnswer) effect()      {}
func (SaveVote) effect()        {}
func (SendStepUp) effect()      {}
func (Drain) effect()           {}
func (FetchConfig) effect()     {}
func (PassOn) effect()          {}
