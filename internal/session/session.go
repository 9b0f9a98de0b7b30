// Package session keeps what a client must remember between commands: the server sessions it may use again, and the
// highest cluster time it has seen.
//
// The package is pure. Nothing here locks: the executor that owns a Pool and a Clock guards them, and a Session is used
// by one operation at a time. Time and chance come in as arguments.
package session

import (
	"time"

	"github.com/sextantdb/sextant/bson"
)

// Server is a server session: an identity that the server remembers, with the numbers of the retryable writes made
// under it. The number goes on counting when the session is used again by somebody else.
type Server struct {
	id      bson.Raw // {id: UUID}, the lsid of commands
	txn     int64
	lastUse time.Time
	dirty   bool
	own     Session // the Session of an implicit use, kept here so that an operation allocates none
}

// newServer makes a session of 16 random bytes, which become a version 4 UUID.
func newServer(random [16]byte) *Server {
	random[6] = random[6]&0x0f | 0x40
	random[8] = random[8]&0x3f | 0x80
	id, start := bson.BeginDocument(make([]byte, 0, 40))
	id = bson.AppendBinary(id, "id", 0x04, random[:])
	return &Server{id: bson.EndDocument(id, start)}
}

// expired says whether less than a minute is left of the server's memory of the session: it might forget it before the
// next command arrives (specification "driver sessions", "algorithm to acquire a server session").
func (s *Server) expired(now time.Time, timeout time.Duration) bool {
	return !s.lastUse.IsZero() && now.Sub(s.lastUse) > timeout-time.Minute
}

// Session is what the operations of one caller share: a server session, once one is needed. A Session is not safe for
// concurrent use.
type Session struct {
	server *Server
	// Implicit sessions are made by the driver for one operation, or one cursor, and given back by it.
	Implicit bool
	kept     bool
}

// Bind gives the session its server session. A session that has one keeps it.
func (s *Session) Bind(server *Server) {
	if s.server == nil {
		s.server = server
	}
}

// Server is the server session, nil before the first command.
func (s *Session) Server() *Server { return s.server }

// ID is the lsid document, nil before the first command. It must not be changed.
func (s *Session) ID() bson.Raw {
	if s == nil || s.server == nil {
		return nil
	}
	return s.server.id
}

// NextTxn takes the next transaction number, from 1. All attempts of one retryable write carry the same number.
func (s *Session) NextTxn() int64 {
	s.server.txn++
	return s.server.txn
}

// Used notes that a command was sent at the time now.
func (s *Session) Used(now time.Time) {
	if s != nil && s.server != nil {
		s.server.lastUse = now
	}
}

// MarkDirty notes a network error: the server may still be at work under this identity, so that nobody may use it again.
func (s *Session) MarkDirty() {
	if s != nil && s.server != nil {
		s.server.dirty = true
	}
}

// Keep says that the session outlives the operation that made it, as a cursor's does. Whoever keeps it gives it back.
func (s *Session) Keep() { s.kept = true }

// Kept says whether somebody keeps the session.
func (s *Session) Kept() bool { return s.kept }
