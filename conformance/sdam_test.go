package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/mongoerr"
)

// sdamFile is a case of server-discovery-and-monitoring, without those of the unified format.
type sdamFile struct {
	URI    string      `json:"uri"`
	Phases []sdamPhase `json:"phases"`
}

type sdamPhase struct {
	Responses [][2]json.RawMessage `json:"responses"` // address, reply; an empty reply is a network error
	AppErrors []sdamAppError       `json:"applicationErrors"`
	Outcome   sdamOutcome          `json:"outcome"`
}

type sdamAppError struct {
	Address    string          `json:"address"`
	Generation *uint64         `json:"generation"`
	MaxWire    int32           `json:"maxWireVersion"`
	When       string          `json:"when"`
	Type       string          `json:"type"`
	Response   json.RawMessage `json:"response"`
}

type sdamOutcome struct {
	Kind           string                `json:"topologyType"`
	SetName        *string               `json:"setName"`
	SessionTimeout *int64                `json:"logicalSessionTimeoutMinutes"`
	MaxSetVersion  *int64                `json:"maxSetVersion"`
	MaxElectionID  *oidJSON              `json:"maxElectionId"`
	Compatible     *bool                 `json:"compatible"`
	Servers        map[string]sdamServer `json:"servers"`
	Events         []json.RawMessage     `json:"events"`
}

type sdamServer struct {
	Type            string   `json:"type"`
	SetName         *string  `json:"setName"`
	SetVersion      *int64   `json:"setVersion"`
	ElectionID      *oidJSON `json:"electionId"`
	SessionTimeout  *int64   `json:"logicalSessionTimeoutMinutes"`
	MinWire         *int32   `json:"minWireVersion"`
	MaxWire         *int32   `json:"maxWireVersion"`
	Error           string   `json:"error"`
	TopologyVersion *struct {
		ProcessID oidJSON `json:"processId"`
		Counter   struct {
			N int64 `json:"$numberLong,string"`
		} `json:"counter"`
	} `json:"topologyVersion"`
	Pool *struct {
		Generation uint64 `json:"generation"`
	} `json:"pool"`
	keys map[string]json.RawMessage // which fields the file names: null is an expectation, absence is none
}

func (s *sdamServer) UnmarshalJSON(data []byte) error {
	type plain sdamServer
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	return json.Unmarshal(data, &s.keys)
}

type oidJSON struct {
	Hex string `json:"$oid"`
}

func loadSDAM(dir string) ([]Case, error) {
	var cases []Case
	for _, sub := range []string{"errors", "load-balanced", "monitoring", "rs", "sharded", "single"} {
		more, err := load(dir, sub, oneCase((*sdamFile).run))
		if err != nil {
			return nil, err
		}
		cases = append(cases, more...)
	}
	return cases, nil
}

// client plays the owner of a topology: it counts pool generations and keeps the published events.
type client struct {
	d           *topology.Description
	generations map[string]uint64
	events      []event.TopologyEvent
	now         time.Time
}

func newClient(uri string) (*client, error) {
	cfg, err := configOf(uri)
	if err != nil {
		return nil, err
	}
	c := &client{generations: map[string]uint64{}, now: time.UnixMilli(0)}
	c.d = topology.New(cfg, c.now)
	c.perform(c.d.Open())
	return c, nil
}

func (c *client) apply(ev topology.Event) {
	var effects []topology.Effect
	c.d, effects = c.d.Apply(ev, c.now)
	c.perform(effects)
}

func (c *client) perform(effects []topology.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case topology.ClearPool:
			c.generations[e.Addr]++
		case topology.Publish:
			c.events = append(c.events, e.Event)
		}
	}
}

func (f *sdamFile) run() error {
	c, err := newClient(f.URI)
	if err != nil {
		return err
	}
	for i, p := range f.Phases {
		if err := c.play(p); err != nil {
			return fmt.Errorf("phase %d: %w", i, err)
		}
		c.now = c.now.Add(time.Second)
	}
	return nil
}

func (c *client) play(p sdamPhase) error {
	for _, r := range p.Responses {
		var addr string
		if err := json.Unmarshal(r[0], &addr); err != nil {
			return err
		}
		if err := c.respond(addr, r[1]); err != nil {
			return err
		}
	}
	for _, e := range p.AppErrors {
		ev, err := c.appError(e)
		if err != nil {
			return err
		}
		c.apply(ev)
	}
	if p.Outcome.Events != nil {
		published := c.events
		c.events = nil
		return compareEvents(p.Outcome.Events, published)
	}
	return c.compare(p.Outcome)
}

func (c *client) respond(addr string, reply json.RawMessage) error {
	raw, err := rawOf(reply)
	if err != nil {
		return err
	}
	if raw.IsEmpty() {
		c.apply(topology.CheckFailed{Addr: addr, Err: mongoerr.Wrap(mongoerr.StageRead, io.EOF, "no answer")})
		return nil
	}
	s, err := topology.ParseHello(addr, raw, time.Millisecond, c.now)
	if err != nil {
		c.apply(topology.CheckFailed{Addr: addr, Err: err})
		return nil
	}
	c.apply(topology.HelloReply{Server: s})
	return nil
}

func (c *client) appError(e sdamAppError) (topology.AppError, error) {
	current := c.generations[e.Address]
	ev := topology.AppError{Addr: e.Address, Generation: current, CurrentGeneration: current, MaxWire: e.MaxWire,
		BeforeHandshake: e.When == "beforeHandshakeCompletes"}
	if e.Generation != nil {
		ev.Generation = *e.Generation
	}
	stage := mongoerr.StageRead
	if ev.BeforeHandshake {
		stage = mongoerr.StageHandshake
	}
	switch e.Type {
	case "network":
		ev.Err = mongoerr.Wrap(stage, io.EOF, "connection lost")
	case "timeout":
		ev.Err = mongoerr.Wrap(stage, os.ErrDeadlineExceeded, "no answer in time")
	case "command":
		reply, err := rawOf(e.Response)
		if err != nil {
			return ev, err
		}
		if err := mongoerr.FromReply(reply); err != nil {
			ev.Err = err
		}
	default:
		return ev, fmt.Errorf("unknown type of error %q", e.Type)
	}
	return ev, nil
}

// compare holds the topology to what the file expects, field by field.
func (c *client) compare(o sdamOutcome) error {
	var faults []string
	check := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			faults = append(faults, fmt.Sprintf("%s is %v, want %v", what, got, want))
		}
	}
	d := c.d
	check("topologyType", d.Kind.String(), o.Kind)
	check("setName", d.SetName, deref(o.SetName, ""))
	check("logicalSessionTimeoutMinutes", d.SessionTimeoutMinutes, deref(o.SessionTimeout, -1))
	if o.MaxSetVersion != nil {
		check("maxSetVersion", d.MaxSetVersion.N, *o.MaxSetVersion)
	}
	if o.MaxElectionID != nil {
		check("maxElectionId", d.MaxElectionID.Hex(), o.MaxElectionID.Hex)
	}
	if o.Compatible != nil {
		check("compatible", d.CompatErr == nil, *o.Compatible)
	}
	check("number of servers", len(d.Servers), len(o.Servers))
	for addr, want := range o.Servers {
		s := d.Server(addr)
		if s == nil {
			faults = append(faults, addr+" is missing")
			continue
		}
		c.compareServer(s, want, check)
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "; "))
	}
	return nil
}

func (c *client) compareServer(s *topology.Server, want sdamServer, check func(string, any, any)) {
	named := func(key string) bool { _, ok := want.keys[key]; return ok }
	check(s.Addr+" type", s.Kind.String(), want.Type)
	if named("setName") {
		check(s.Addr+" setName", s.SetName, deref(want.SetName, ""))
	}
	if named("setVersion") {
		check(s.Addr+" setVersion", s.SetVersion, topology.Version{N: deref(want.SetVersion, 0), Set: want.SetVersion != nil})
	}
	if named("electionId") {
		check(s.Addr+" electionId", s.ElectionID.Hex(), deref(want.ElectionID, oidJSON{bson.NilObjectID.Hex()}).Hex)
	}
	if named("logicalSessionTimeoutMinutes") {
		check(s.Addr+" logicalSessionTimeoutMinutes", s.SessionTimeoutMinutes, deref(want.SessionTimeout, -1))
	}
	if named("minWireVersion") {
		check(s.Addr+" minWireVersion", s.MinWire, deref(want.MinWire, 0))
		check(s.Addr+" maxWireVersion", s.MaxWire, deref(want.MaxWire, 0))
	}
	if named("topologyVersion") {
		check(s.Addr+" has topologyVersion", s.TopologyVersion.Set, want.TopologyVersion != nil)
		if tv := want.TopologyVersion; tv != nil {
			check(s.Addr+" processId", s.TopologyVersion.ProcessID.Hex(), tv.ProcessID.Hex)
			check(s.Addr+" counter", s.TopologyVersion.Counter, tv.Counter.N)
		}
	}
	if want.Error != "" {
		text := fmt.Sprint(s.Err)
		check(s.Addr+" error "+text+" holds "+want.Error, strings.Contains(text, want.Error), true)
	}
	if want.Pool != nil {
		check(s.Addr+" pool generation", c.generations[s.Addr], want.Pool.Generation)
	}
}

func deref[T any](p *T, none T) T {
	if p == nil {
		return none
	}
	return *p
}

// compareEvents holds published events to the file's, in order.
func compareEvents(want []json.RawMessage, got []event.TopologyEvent) error {
	for i, w := range want {
		if i >= len(got) {
			return fmt.Errorf("%d events were published, want %d: the first missing one is %s", len(got), len(want), w)
		}
		var expected map[string]map[string]any
		if err := json.Unmarshal(w, &expected); err != nil {
			return err
		}
		for _, body := range expected {
			delete(body, "topologyId") // a number of the file's own
			for _, d := range []string{"previousDescription", "newDescription"} {
				if t, ok := body[d].(map[string]any); ok {
					sortServers(t)
				}
			}
		}
		// Through JSON once, so that both sides have the same Go types.
		data, err := json.Marshal(eventJSON(got[i]))
		if err != nil {
			return err
		}
		var published map[string]map[string]any
		if err := json.Unmarshal(data, &published); err != nil {
			return err
		}
		if !reflect.DeepEqual(published, expected) {
			return fmt.Errorf("event %d is %s, want %s", i, data, w)
		}
	}
	if len(got) > len(want) {
		return fmt.Errorf("%d events were published, want %d: the first one too many is %s of %s", len(got), len(want),
			got[len(want)].Type, got[len(want)].Address)
	}
	return nil
}

func sortServers(t map[string]any) {
	servers, _ := t["servers"].([]any)
	address := func(v any) string { m, _ := v.(map[string]any); s, _ := m["address"].(string); return s }
	slices.SortFunc(servers, func(a, b any) int { return strings.Compare(address(a), address(b)) })
}

// eventJSON writes an event as the files do.
func eventJSON(e event.TopologyEvent) map[string]any {
	body := map[string]any{}
	name := map[event.TopologyEventType]string{
		event.TopologyOpened: "topology_opening_event", event.TopologyClosed: "topology_closed_event",
		event.TopologyUpdated: "topology_description_changed_event", event.MemberOpened: "server_opening_event",
		event.MemberClosed: "server_closed_event", event.MemberUpdated: "server_description_changed_event",
	}[e.Type]
	switch e.Type {
	case event.TopologyUpdated:
		body["previousDescription"], body["newDescription"] = viewJSON(e.Before), viewJSON(e.After)
	case event.MemberUpdated:
		body["address"] = e.Address
		body["previousDescription"], body["newDescription"] = memberJSON(e.MemberBefore), memberJSON(e.MemberAfter)
	case event.MemberOpened, event.MemberClosed:
		body["address"] = e.Address
	}
	return map[string]any{name: body}
}

func viewJSON(t event.Topology) map[string]any {
	servers := []map[string]any{}
	members := slices.Clone(t.Members)
	slices.SortFunc(members, func(a, b event.Member) int { return strings.Compare(a.Address, b.Address) })
	for _, m := range members {
		servers = append(servers, memberJSON(m))
	}
	out := map[string]any{"topologyType": t.Kind.String(), "servers": servers}
	if t.SetName != "" {
		out["setName"] = t.SetName
	}
	return out
}

func memberJSON(m event.Member) map[string]any {
	list := func(s []string) []string { return append([]string{}, s...) }
	out := map[string]any{"address": m.Address, "type": m.Kind.String(),
		"hosts": list(m.Hosts), "passives": list(m.Passives), "arbiters": list(m.Arbiters)}
	if m.Primary != "" {
		out["primary"] = m.Primary
	}
	if m.SetName != "" {
		out["setName"] = m.SetName
	}
	return out
}
