package conn

import "crypto/tls"

// Sessions keeps the TLS sessions of a client, so that its further connections resume them, which spares both sides the
// costly part of the handshake. The package tls would keep them by the name that the certificate is for; the members of a
// set may share a name, so here the address counts too.
type Sessions struct{ tls.ClientSessionCache }

// NewSessions makes an empty cache.
func NewSessions() *Sessions { return &Sessions{tls.NewLRUClientSessionCache(0)} }

// sessionsOf is the part of a cache for one server.
type sessionsOf struct {
	*Sessions
	addr string
}

func (s sessionsOf) Get(key string) (*tls.ClientSessionState, bool) {
	return s.ClientSessionCache.Get(s.addr + " " + key)
}

func (s sessionsOf) Put(key string, state *tls.ClientSessionState) {
	s.ClientSessionCache.Put(s.addr+" "+key, state)
}
