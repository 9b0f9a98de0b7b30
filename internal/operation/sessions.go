package operation

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/session"
	"github.com/sextantdb/sextant/readpref"
)

// sessions is the lock round a client's server sessions and its cluster time.
type sessions struct {
	mu      sync.Mutex // guards what follows
	pool    session.Pool
	clock   session.Clock
	timeout time.Duration // the least that a member has told last; 0 before that
}

func random() (b [16]byte) {
	rand.Read(b[:])
	return b
}

// bind gives a session its server session, or makes an implicit one.
func (s *sessions) bind(ses *session.Session, timeout time.Duration) *session.Session {
	if ses != nil && ses.Server() != nil {
		return ses
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeout = timeout
	if ses == nil {
		return s.pool.Implicit(now, timeout, random)
	}
	ses.Bind(s.pool.Acquire(now, timeout, random))
	return ses
}

func (s *sessions) advance(clusterTime bson.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.Advance(clusterTime)
}

func (s *sessions) appendClusterTime(dst []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.Append(dst)
}

// Release gives back a session that a cursor kept. The session must not be used afterwards.
func (x *Executor) Release(ses *session.Session) {
	if ses == nil {
		return
	}
	s := &x.sessions
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool.Release(ses.Server(), now, s.timeout)
}

// endLimit is the time that EndSessions may take.
const endLimit = 2 * time.Second

// EndSessions tells the deployment that the client's sessions are over, as far as it can be told before ctx ends,
// within two seconds, and without waiting for a member. What fails is passed over: the server forgets sessions by
// itself.
func (x *Executor) EndSessions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for ctx.Err() == nil {
		x.sessions.mu.Lock()
		ids := x.sessions.pool.Drain()
		x.sessions.mu.Unlock()
		if len(ids) == 0 || !x.o.Cluster.Reachable() {
			return
		}
		if err := x.endSessions(ctx, ids); err != nil {
			return
		}
	}
}

func (x *Executor) endSessions(ctx context.Context, ids []bson.Raw) error {
	return x.Run(ctx, &Op{
		Name: "endSessions", DB: "admin", Kind: Command, ReadPref: readpref.PrimaryPreferred(), outside: true,
		Append: func(dst []byte, _ Target) ([]byte, error) {
			dst, start := bson.BeginArrayElement(dst, "endSessions")
			for i, id := range ids {
				dst = bson.AppendDocument(dst, indexKey(i), id)
			}
			return bson.EndDocument(dst, start), nil
		},
	})
}
