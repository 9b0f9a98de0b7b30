package conn

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
)

// DriverInfo is what a library that wraps the driver says of itself (handshake specification, "Supporting Wrapping
// Libraries"). The version and the platform may be empty.
type DriverInfo struct{ Name, Version, Platform string }

// Metadata is the client document of a client's hellos, to which wrapping libraries may append. It is safe for concurrent
// use; no other goroutine waits for one that appends.
type Metadata struct {
	document atomic.Pointer[bson.Raw]

	mu    sync.Mutex // guards all below
	parts metadata
	infos []DriverInfo
}

// ClientMetadata builds the client document of hello from the process's surroundings: application, driver, operating
// system, Go version, cloud function and container (handshake specification, "Hello command"). It is never longer than
// the 512 bytes that a server takes; an appName over 128 bytes is cut.
func ClientMetadata(appName string) *Metadata {
	m := &Metadata{parts: surveyed(appName)}
	doc := m.parts.document()
	m.document.Store(&doc)
	return m
}

// Document is the client document for the next hello.
func (m *Metadata) Document() bson.Raw { return *m.document.Load() }

// Append puts a library's description behind what is there, for the connections made from now on. The same description
// again changes nothing. One that cannot be sent is an error and leaves everything as it is.
func (m *Metadata) Append(d DriverInfo) error {
	if err := d.check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.infos, d) {
		return nil
	}
	parts := m.parts
	parts.name, parts.version = parts.name+joined(d.Name), parts.version+joined(d.Version)
	parts.platform += joined(d.Platform)
	doc := parts.document()
	if len(doc) > maxMetadata {
		return fmt.Errorf("with the library %.40q the client's metadata has %d bytes, even without what may be left out: a server takes %d", d.Name, len(doc), maxMetadata)
	}
	m.parts, m.infos = parts, append(m.infos, d)
	m.document.Store(&doc)
	return nil
}

// delimiter stands between the descriptions in one field.
const delimiter = "|"

func joined(s string) string {
	if s == "" {
		return ""
	}
	return delimiter + s
}

func (d DriverInfo) check() error {
	if d.Name == "" {
		return errors.New("the library that wraps the driver has no name")
	}
	for what, s := range map[string]string{"name": d.Name, "version": d.Version, "platform": d.Platform} {
		switch {
		case strings.Contains(s, delimiter):
			return fmt.Errorf("the %s %.40q of the library that wraps the driver holds a %q, which separates such texts", what, s, delimiter)
		case !utf8.ValidString(s):
			return fmt.Errorf("the %s of the library that wraps the driver is not UTF-8", what)
		}
	}
	return nil
}
