// Package concern holds read concern and write concern: what a read may see, and when a write counts as done.
//
// Values are immutable once given to a client, database, collection or call, and may be shared. A nil pointer means
// "unset": the setting is inherited, and in the end the server's default holds.
package concern

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// Levels of read concern.
const (
	LevelLocal        = "local"
	LevelAvailable    = "available"
	LevelMajority     = "majority"
	LevelLinearizable = "linearizable"
	LevelSnapshot     = "snapshot"
)

// WMajority is the W of a write that a majority of the voting members must confirm.
const WMajority = "majority"

// Read is a read concern. Unknown levels are sent as they are: a later server may know them.
type Read struct {
	Level string // "" is the server's default, and nothing is sent
}

// Local reads what the member has, though it may be rolled back.
func Local() *Read { return &Read{LevelLocal} }

// Available is Local, without a promise about orphaned documents on a sharded cluster.
func Available() *Read { return &Read{LevelAvailable} }

// ReadMajority reads what a majority of the set has confirmed.
func ReadMajority() *Read { return &Read{LevelMajority} }

// Linearizable reads from the primary what was confirmed by a majority before the read began.
func Linearizable() *Read { return &Read{LevelLinearizable} }

// Snapshot reads majority-confirmed data of one point in time.
func Snapshot() *Read { return &Read{LevelSnapshot} }

// IsDefault says whether nothing is asked beyond the server's default.
func (r *Read) IsDefault() bool { return r == nil || r.Level == "" }

// AppendElement appends the element readConcern to the elements of a command; nothing if the concern is the default.
func (r *Read) AppendElement(dst []byte) []byte {
	if r.IsDefault() {
		return dst
	}
	dst, start := bson.BeginDocumentElement(dst, "readConcern")
	dst = bson.AppendString(dst, "level", r.Level)
	return bson.EndDocument(dst, start)
}

// String is the level, or "default".
func (r *Read) String() string {
	if r.IsDefault() {
		return "default"
	}
	return r.Level
}

// Write is a write concern. The zero value is the server's default, and nothing is sent.
type Write struct {
	W        any           // nil, an int (members that must confirm; 0 asks for no answer) or a string ("majority", a tag of the set's configuration)
	Journal  *bool         // the write must be in the journal; nil is the server's default
	WTimeout time.Duration // how long the server waits for W, in whole milliseconds; 0 is without limit
}

// Majority asks that a majority of the voting members confirm.
func Majority() *Write { return &Write{W: WMajority} }

// W asks that so many members, or the members of that tag, confirm.
func W[T int | string](w T) *Write { return &Write{W: w} }

// Unacknowledged asks for no answer: failures stay unseen.
func Unacknowledged() *Write { return &Write{W: 0} }

// Acknowledged says whether the server will answer.
func (w *Write) Acknowledged() bool {
	if w == nil {
		return true
	}
	n, ok := w.number()
	return !ok || n != 0 || w.Journal != nil && *w.Journal
}

// IsDefault says whether nothing is asked beyond the server's default.
func (w *Write) IsDefault() bool {
	return w == nil || w.W == nil && w.Journal == nil && w.WTimeout == 0
}

// Validate refuses what no server could honour: a negative W or WTimeout, a W that is neither number nor string, and
// W 0 with Journal.
func (w *Write) Validate() error {
	if w == nil {
		return nil
	}
	n, isNumber := w.number()
	s, isString := w.W.(string)
	switch {
	case w.W != nil && !isNumber && !isString:
		return mongoerr.New(mongoerr.StageConfig, "write concern: w is a %T; a number or a string is needed", w.W)
	case isNumber && (n < 0 || n > 1<<31-1):
		return mongoerr.New(mongoerr.StageConfig, "write concern: w is %d; 0 or more is needed", n)
	case isString && s == "":
		return mongoerr.New(mongoerr.StageConfig, "write concern: w is an empty string")
	case isString && !utf8.ValidString(s):
		return mongoerr.New(mongoerr.StageConfig, "write concern: w is %q, which is not UTF-8", s)
	case w.WTimeout < 0:
		return mongoerr.New(mongoerr.StageConfig, "write concern: wtimeout is %v; 0 or more is needed", w.WTimeout)
	case isNumber && n == 0 && w.Journal != nil && *w.Journal:
		return mongoerr.New(mongoerr.StageConfig, "write concern: w 0 asks for no answer, journal true needs one")
	}
	return nil
}

func (w *Write) number() (int64, bool) {
	switch n := w.W.(type) {
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

// AppendElement appends the element writeConcern to the elements of a command; nothing if the concern is the default.
// The concern must be valid.
func (w *Write) AppendElement(dst []byte) []byte {
	if w.IsDefault() {
		return dst
	}
	dst, start := bson.BeginDocumentElement(dst, "writeConcern")
	if n, ok := w.number(); ok {
		dst = bson.AppendInt32(dst, "w", int32(n))
	} else if s, ok := w.W.(string); ok {
		dst = bson.AppendString(dst, "w", s)
	}
	if w.Journal != nil {
		dst = bson.AppendBoolean(dst, "j", *w.Journal)
	}
	if w.WTimeout != 0 {
		dst = bson.AppendInt64(dst, "wtimeout", w.WTimeout.Milliseconds())
	}
	return bson.EndDocument(dst, start)
}

// String is the concern in words: "w majority, journal, wtimeout 5s".
func (w *Write) String() string {
	if w.IsDefault() {
		return "default"
	}
	s := ""
	if w.W != nil {
		s = fmt.Sprintf("w %v", w.W)
	}
	if w.Journal != nil {
		s = join(s, map[bool]string{true: "journal", false: "no journal"}[*w.Journal])
	}
	if w.WTimeout != 0 {
		s = join(s, fmt.Sprintf("wtimeout %v", w.WTimeout))
	}
	return s
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}
