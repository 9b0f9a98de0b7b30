package command

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

var sessionCommands = []Spec{
	{Name: "startSession", Handler: startSession},
	{Name: "endSessions", Flags: BeforeAuth, Handler: endSessions, Fields: "=:objects"},
	{Name: "refreshSessions", Handler: refreshSessions, Fields: "=:objects"},
	{Name: "killSessions", Handler: endSessions},
	{Name: "killAllSessions", Handler: killAllSessions},
	{Name: "killAllSessionsByPattern", Handler: killAllSessions},
	{Name: "refreshLogicalSessionCacheNow", Handler: refreshSessions},
	{Name: "commitTransaction", Flags: AdminOnly | Writes | TakesTxnNumber, Handler: noTransactions, Fields: "commitTimestamp recoveryToken:object"},
	{Name: "abortTransaction", Flags: AdminOnly | Writes | TakesTxnNumber, Handler: noTransactions, Fields: "recoveryToken:object"},
}

// sessions remembers which server sessions clients use. Retry history lives with the data, not here.
type sessions struct {
	mu   sync.Mutex // guards last
	last map[sessionKey]time.Time
}

// sessionKey is the UUID of an lsid.
type sessionKey [16]byte

// maxSessions bounds what clients can make a member remember; the idle ones go first.
const maxSessions = 100000

func (s *sessions) touch(lsid bson.Raw) {
	if lsid == nil {
		return
	}
	id, err := sessionID(lsid, "lsid")
	if err != nil {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[sessionKey]time.Time{}
	}
	if _, known := s.last[id]; !known && len(s.last) >= maxSessions {
		s.expire(now)
	}
	s.last[id] = now
}

// expire forgets the sessions that timed out, and any one if all are fresh. The caller holds mu.
func (s *sessions) expire(now time.Time) {
	for id, t := range s.last {
		if now.Sub(t) > sessionMinutes*time.Minute {
			delete(s.last, id)
		}
	}
	for id := range s.last {
		if len(s.last) < maxSessions {
			return
		}
		delete(s.last, id)
	}
}

func (s *sessions) end(ids []sessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.last, id)
	}
}

// list returns the sessions and when each was last used.
func (s *sessions) list() map[sessionKey]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[sessionKey]time.Time, len(s.last))
	for id, t := range s.last {
		out[id] = t
	}
	return out
}

// sessionID reads the UUID of {id: UUID}. field is what an error calls the document.
func sessionID(lsid bson.Raw, field string) (sessionKey, error) {
	v := lsid.Lookup("id")
	subtype, data, ok := v.BinaryOK()
	switch {
	case v.IsZero():
		return sessionKey{}, mongoerr.Server(40414, "BSON field '%s.id' is missing but a required field", field)
	case !ok:
		return sessionKey{}, mongoerr.Server(mongoerr.CodeTypeMismatch,
			"BSON field '%s.id' is the wrong type '%s', expected type 'binData'", field, bsonName(v.Type))
	case subtype != 4 || len(data) != 16:
		return sessionKey{}, mongoerr.Server(mongoerr.CodeTypeMismatch,
			"BSON field '%s.id' must be a UUID (binData subtype 4 of 16 bytes), not subtype %d of %d bytes", field, subtype, len(data))
	}
	return sessionKey(data), nil
}

// sessionIDs reads the sessions that the command's own value lists.
func (r *Request) sessionIDs() ([]sessionKey, error) {
	v := r.Field(r.Name)
	if v.IsNumber() && r.Name == "refreshLogicalSessionCacheNow" {
		return nil, nil
	}
	if _, ok := v.ArrayOK(); !ok {
		return nil, mongoerr.Server(10065, "invalid parameter: expected an object (%s)", r.Name)
	}
	docs, _, err := r.Documents(r.Name)
	if err != nil {
		return nil, err
	}
	ids := make([]sessionKey, 0, len(docs))
	for _, d := range docs {
		id, err := sessionID(d, r.Name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func startSession(_ context.Context, m *Member, _ *Request) (bson.D, error) {
	id := newUUID()
	lsid := document(bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id[:]}}})
	m.sessions.touch(lsid)
	return bson.D{{Key: "id", Value: lsid}, {Key: "timeoutMinutes", Value: int32(sessionMinutes)}}, nil
}

func endSessions(_ context.Context, m *Member, r *Request) (bson.D, error) {
	ids, err := r.sessionIDs()
	if err != nil {
		return nil, err
	}
	m.sessions.end(ids)
	if len(ids) > 0 {
		m.cursors.killSessions(ids)
	}
	return nil, nil
}

func refreshSessions(_ context.Context, m *Member, r *Request) (bson.D, error) {
	ids, err := r.sessionIDs()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		m.sessions.touch(document(bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id[:]}}}))
	}
	return nil, nil
}

// checkKilled holds the list to what a server takes.
func checkKilled(r *Request) error {
	a := argument{name: "KillAllSessionsByPatternCmd", types: argumentTypes["objects"], elements: bson.TypeEmbeddedDocument}
	fields := []string{"lsid", "uid", "users", "roles"}
	if r.Name == "killAllSessions" {
		a.name, fields = "KillAllSessionsCmd", []string{"user", "db"}
	}
	v := r.Field(r.Name)
	if value.Nullish(v) {
		return missingField(a.name, r.Name)
	}
	if err := a.check(a.name, r.Name, v); err != nil {
		return err
	}
	for _, e := range v.Array().All() {
		for key := range e.Document().All() {
			if !slices.Contains(fields, key) {
				return unknownField(a.name+"."+r.Name, key)
			}
		}
	}
	return nil
}

// killAllSessions ends every session: the server knows no users of a session here, so a pattern matches all.
func killAllSessions(_ context.Context, m *Member, r *Request) (bson.D, error) {
	if err := checkKilled(r); err != nil {
		return nil, err
	}
	var ids []sessionKey
	for id := range m.sessions.list() {
		ids = append(ids, id)
	}
	m.sessions.end(ids)
	m.cursors.killSessions(nil)
	return nil, nil
}

func noTransactions(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	return nil, mongoerr.Server(mongoerr.CodeNotImplemented, "multi-document transactions are not implemented yet (%s)", r.Name)
}
