package conn

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/sextantdb/sextant/internal/auth"
)

// keys are SCRAM's derived keys of this process, so that no connection pays for PBKDF2 (milliseconds) a second time.
var keys = &keyCache{}

// maxKeys bounds the cache: a process has few users, and a server that draws a new salt each time must not fill the
// memory.
const maxKeys = 256

type keyCache struct {
	// mu guards entries. It is held for the look-up alone, never while keys are derived.
	mu      sync.Mutex
	entries map[[sha256.Size]byte]*keyEntry
	pepper  [32]byte // makes the map's keys useless outside this process
}

// keyEntry is derived once; whoever comes meanwhile waits for it.
type keyEntry struct {
	once sync.Once
	keys auth.Keys
	err  error
}

func (kc *keyCache) derive(r auth.KeyRequest) (auth.Keys, error) {
	e := kc.entry(r)
	e.once.Do(func() { e.keys, e.err = r.Derive() })
	return e.keys, e.err
}

func (kc *keyCache) entry(r auth.KeyRequest) *keyEntry {
	kc.mu.Lock()
	defer kc.mu.Unlock()
	if kc.entries == nil {
		rand.Read(kc.pepper[:])
		kc.entries = map[[sha256.Size]byte]*keyEntry{}
	}
	id := kc.digest(r)
	e := kc.entries[id]
	if e == nil {
		if len(kc.entries) >= maxKeys {
			clear(kc.entries)
		}
		e = &keyEntry{}
		kc.entries[id] = e
	}
	return e
}

// digest stands for the request without holding the password. Every part goes in with its length.
func (kc *keyCache) digest(r auth.KeyRequest) (id [sha256.Size]byte) {
	h := hmac.New(sha256.New, kc.pepper[:])
	for _, part := range []string{r.Mechanism, r.Secret, string(r.Salt)} {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(r.Iterations)))
	h.Sum(id[:0])
	return id
}
