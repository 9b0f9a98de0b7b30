package topology

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// Version is a replica set configuration's version, which old or odd servers do not tell. No version is less than any.
type Version struct {
	N   int64
	Set bool
}

func (v Version) less(o Version) bool { return !v.Set && o.Set || v.Set && o.Set && v.N < o.N }

// TopologyVersion says how new a server's word about itself is: which process said it, and the how manieth.
type TopologyVersion struct {
	ProcessID bson.ObjectID
	Counter   int64
	Set       bool
}

// compare is negative, 0 or positive as v is older than, as old as, or newer than o. Words of different processes, and
// missing ones, can not be compared: o is taken for newer.
func (v TopologyVersion) compare(o TopologyVersion) int {
	switch {
	case !v.Set || !o.Set || v.ProcessID != o.ProcessID || v.Counter < o.Counter:
		return -1
	case v.Counter > o.Counter:
		return 1
	}
	return 0
}

// Before says whether both are words of one process and o is the newer one.
func (v TopologyVersion) Before(o TopologyVersion) bool {
	return v.Set && o.Set && v.ProcessID == o.ProcessID && v.Counter < o.Counter
}

// Server is what one server told about itself, or why it told nothing. It never changes.
type Server struct {
	Addr string // as the topology names it: lower case, with port
	Kind event.Kind

	Dialled string // where it was reached, if Config.AddressMap leads elsewhere than to Addr; for reasons

	Err error // why it is Unknown; nil if known or not yet checked

	Me, SetName, Primary      string
	Hosts, Passives, Arbiters []string
	Hidden                    bool
	Tags                      map[string]string
	ElectionID                bson.ObjectID // zero if none
	SetVersion                Version
	MinWire, MaxWire          int32
	SessionTimeoutMinutes     int64 // -1 if none
	LastWrite                 time.Time
	TopologyVersion           TopologyVersion
	HelloOK                   bool // answers the command hello

	RTT, MinRTT time.Duration // average and least round trip; 0 while Unknown (MinRTT until there are two samples)
	LastUpdate  time.Time     // last hello or failure; zero if never checked
	Since       time.Time     // when it came into its Kind
	Hello       bson.Raw      // the last reply whole
	PoolErr     error         // last failure of its pool's connections; nil again once one of them succeeded

	samples rttSamples
}

// unknown is a server of which nothing is known.
func unknown(addr string, since time.Time) *Server {
	return &Server{Addr: addr, SessionTimeoutMinutes: -1, Since: since}
}

// failed is s after a failure: everything it told is forgotten, save its round trips, which a streamed hello without a
// sample of its own will need, and the reply itself, which is for people to read.
func (s *Server) failed(err error, tv TopologyVersion, now time.Time) *Server {
	u := unknown(s.Addr, s.Since)
	if s.Kind.Known() {
		u.Since = now
	}
	u.Err, u.TopologyVersion, u.LastUpdate, u.samples, u.PoolErr, u.Hello = err, tv, now, s.samples, s.PoolErr, s.Hello
	return u
}

// Lists says whether the server counts the address among the members of its set.
func (s *Server) Lists(addr string) bool {
	return slices.Contains(s.Hosts, addr) || slices.Contains(s.Passives, addr) || slices.Contains(s.Arbiters, addr)
}

// way is where the server was dialled, if it was elsewhere, to be added to a reason.
func (s *Server) way() string {
	if s.Dialled == "" {
		return ""
	}
	return " (dialled at " + s.Dialled + ", as AddressMap has it)"
}

// same says whether two descriptions of one server are equal for the purpose of events (SDAM, "Server Description
// Equality").
func (s *Server) same(o *Server) bool {
	kinds := s.Kind == o.Kind || !s.Kind.Known() && !o.Kind.Known() // PossiblePrimary is Unknown
	return kinds && errorText(s.Err) == errorText(o.Err) &&
		s.MinWire == o.MinWire && s.MaxWire == o.MaxWire && s.Me == o.Me &&
		slices.Equal(s.Hosts, o.Hosts) && slices.Equal(s.Passives, o.Passives) && slices.Equal(s.Arbiters, o.Arbiters) &&
		maps.Equal(s.Tags, o.Tags) && s.SetName == o.SetName && s.SetVersion == o.SetVersion &&
		s.ElectionID == o.ElectionID && s.Primary == o.Primary &&
		s.SessionTimeoutMinutes == o.SessionTimeoutMinutes && s.TopologyVersion == o.TopologyVersion
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// older says whether election id a was given before b; none is before any.
func older(a, b bson.ObjectID) bool { return bytes.Compare(a[:], b[:]) < 0 }

// compatError names the first server that speaks no wire version of ours, and what it would need.
func compatError(servers []*Server) error {
	for _, s := range servers {
		switch {
		case !s.Kind.Known() || s.Kind == event.LoadBalancer:
		case s.MinWire > MaxWire:
			return mongoerr.New(mongoerr.StageSelection,
				"server at %s requires wire version %d, but this version of sextant only supports up to %d",
				s.Addr, s.MinWire, MaxWire)
		case s.MaxWire < MinWire:
			return mongoerr.New(mongoerr.StageSelection,
				"server at %s reports wire version %d, but this version of sextant requires at least %d (%s)",
				s.Addr, s.MaxWire, MinWire, minWireNamed)
		}
	}
	return nil
}
