// Package readpref says which members of a deployment may serve a read: a mode, tag sets in order of preference, and
// how stale a secondary may be (specifications "server selection" and "max staleness").
//
// A *ReadPref is immutable and may be shared between goroutines, clients and calls. A nil one means "unset": the
// setting is inherited, and in the end the primary serves.
package readpref

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// Mode says which kinds of members may serve.
type Mode uint8

// The five modes.
const (
	PrimaryMode            Mode = iota // the primary alone
	PrimaryPreferredMode               // the primary; a secondary while there is none
	SecondaryMode                      // a secondary alone
	SecondaryPreferredMode             // a secondary; the primary while there is none
	NearestMode                        // primary or secondary, whoever is near
)

var modeNames = [...]string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}

// String is the mode as URIs and commands write it: "secondaryPreferred".
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "mode(" + strconv.Itoa(int(m)) + ")"
}

// ParseMode reads a mode as URIs write it. Case does not matter.
func ParseMode(s string) (Mode, error) {
	for i, name := range modeNames {
		if strings.EqualFold(s, name) {
			return Mode(i), nil
		}
	}
	return 0, mongoerr.New(mongoerr.StageConfig, "read preference mode %q is none of %s", s, strings.Join(modeNames[:], ", "))
}

// ReadPref is a read preference. Make one with Primary, Nearest and their like, or with New.
type ReadPref struct {
	mode         Mode
	tagSets      []TagSet
	maxStaleness time.Duration // 0 is no limit
	err          error         // what was wrong with the options; Validate reports it
}

// Option changes a read preference while it is made.
type Option func(*ReadPref)

// Tags adds a tag set, given as key, value, key, value. Several Tags are tried in their order. Tags() without
// arguments is the empty set, which every member matches: put it last to say "else any".
func Tags(kv ...string) Option {
	return func(p *ReadPref) {
		if len(kv)%2 != 0 {
			p.fail("tags %q: a key without a value", kv)
			return
		}
		set := make(TagSet, 0, len(kv)/2)
		for i := 0; i < len(kv); i += 2 {
			set = append(set, Tag{kv[i], kv[i+1]})
		}
		TagSets(set)(p)
	}
}

// TagSets adds tag sets, tried in their order.
func TagSets(sets ...TagSet) Option {
	return func(p *ReadPref) {
		for _, set := range sets {
			if key, twice := set.duplicate(); twice {
				p.fail("tag set %v names %q twice", set, key)
			}
			p.tagSets = append(p.tagSets, slices.Clone(set))
		}
	}
}

// MaxStaleness sets how far a secondary may lag behind, in whole seconds. At selection 90 s, and the heartbeat
// interval plus 10 s, are the least (specification "max staleness"). Leave the option out for no limit.
func MaxStaleness(d time.Duration) Option {
	return func(p *ReadPref) {
		if d <= 0 || d%time.Second != 0 {
			p.fail("max staleness %v: a positive number of whole seconds is needed", d)
			return
		}
		p.maxStaleness = d
	}
}

func (p *ReadPref) fail(format string, args ...any) {
	if p.err == nil {
		p.err = mongoerr.New(mongoerr.StageConfig, "read preference: "+format, args...)
	}
}

var primary = &ReadPref{}

// Primary reads from the primary alone; it is the default.
func Primary() *ReadPref { return primary }

// PrimaryPreferred reads from the primary, and from a secondary while there is none.
func PrimaryPreferred(opts ...Option) *ReadPref { return build(PrimaryPreferredMode, opts) }

// Secondary reads from secondaries alone.
func Secondary(opts ...Option) *ReadPref { return build(SecondaryMode, opts) }

// SecondaryPreferred reads from secondaries, and from the primary while there is none.
func SecondaryPreferred(opts ...Option) *ReadPref { return build(SecondaryPreferredMode, opts) }

// Nearest reads from the primary or a secondary, whoever is within the latency window.
func Nearest(opts ...Option) *ReadPref { return build(NearestMode, opts) }

// New makes a read preference of any mode and refuses what makes no sense: see Validate.
func New(mode Mode, opts ...Option) (*ReadPref, error) {
	p := build(mode, opts)
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func build(mode Mode, opts []Option) *ReadPref {
	p := &ReadPref{mode: mode}
	for _, o := range opts {
		if o == nil {
			p.fail("an option is nil")
			continue
		}
		o(p)
	}
	return p
}

// Validate reports an ill-formed option, an unknown mode, or a primary mode with tags or max staleness. A client
// validates each read preference it is given; the short constructors leave it to that moment.
func (p *ReadPref) Validate() error {
	switch {
	case p == nil:
		return nil
	case p.err != nil:
		return p.err
	case p.mode > NearestMode:
		return mongoerr.New(mongoerr.StageConfig, "read preference: unknown mode %d", p.mode)
	case p.mode == PrimaryMode && p.narrows():
		return mongoerr.New(mongoerr.StageConfig, "read preference: mode primary can not have tags")
	case p.mode == PrimaryMode && p.maxStaleness != 0:
		return mongoerr.New(mongoerr.StageConfig, "read preference: mode primary can not have a max staleness")
	}
	return nil
}

// narrows says whether a tag set other than the empty one is there.
func (p *ReadPref) narrows() bool {
	return slices.ContainsFunc(p.tagSets, func(t TagSet) bool { return len(t) > 0 })
}

// Mode returns the mode; that of nil is primary.
func (p *ReadPref) Mode() Mode {
	if p == nil {
		return PrimaryMode
	}
	return p.mode
}

// TagSets returns the tag sets in order. Do not change what it returns.
func (p *ReadPref) TagSets() []TagSet {
	if p == nil {
		return nil
	}
	return p.tagSets
}

// MaxStaleness returns the limit and whether there is one.
func (p *ReadPref) MaxStaleness() (d time.Duration, set bool) {
	if p == nil {
		return 0, false
	}
	return p.maxStaleness, p.maxStaleness != 0
}

// IsPlain says whether the mode is all there is: no tags, no max staleness.
func (p *ReadPref) IsPlain() bool { return p == nil || len(p.tagSets) == 0 && p.maxStaleness == 0 }

// String is the preference in words: `mode secondary, tags [{dc: "east"}, {}], max staleness 90 s`.
func (p *ReadPref) String() string {
	s := "mode " + p.Mode().String()
	if p == nil {
		return s
	}
	if len(p.tagSets) > 0 {
		s += ", tags " + FormatTagSets(p.tagSets)
	}
	if p.maxStaleness != 0 {
		s += fmt.Sprintf(", max staleness %d s", p.maxStaleness/time.Second)
	}
	return s
}

// Document is the $readPreference document that goes to a server: mode, and tags and maxStalenessSeconds if set.
func (p *ReadPref) Document() bson.Raw {
	dst, start := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "mode", p.Mode().String())
	if p != nil && len(p.tagSets) > 0 {
		dst = p.appendTags(dst)
	}
	if p != nil && p.maxStaleness != 0 {
		dst = bson.AppendInt64(dst, "maxStalenessSeconds", int64(p.maxStaleness/time.Second))
	}
	return bson.Raw(bson.EndDocument(dst, start))
}

func (p *ReadPref) appendTags(dst []byte) []byte {
	dst, list := bson.BeginArrayElement(dst, "tags")
	for i, set := range p.tagSets {
		var doc int
		dst, doc = bson.BeginDocumentElement(dst, strconv.Itoa(i))
		for _, t := range set {
			dst = bson.AppendString(dst, t.Key, t.Value)
		}
		dst = bson.EndDocument(dst, doc)
	}
	return bson.EndDocument(dst, list)
}
