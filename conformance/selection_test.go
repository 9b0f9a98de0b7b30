package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/conformance/corpus"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/internal/topology"
	"github.com/sextantdb/sextant/readpref"
)

// selectionFile is a case of server-selection/server_selection or max-staleness.
type selectionFile struct {
	Topology      topologyJSON `json:"topology_description"`
	Operation     string       `json:"operation"`
	ReadPref      readPrefJSON `json:"read_preference"`
	Deprioritized []serverJSON `json:"deprioritized_servers"`
	HeartbeatMS   int64        `json:"heartbeatFrequencyMS"`
	Suitable      []serverJSON `json:"suitable_servers"`
	InWindow      []serverJSON `json:"in_latency_window"`
	Error         bool         `json:"error"`
}

type topologyJSON struct {
	Type    string       `json:"type"`
	Servers []serverJSON `json:"servers"`
}

type serverJSON struct {
	Address        string            `json:"address"`
	Type           string            `json:"type"`
	RTT            float64           `json:"avg_rtt_ms"`
	Tags           map[string]string `json:"tags"`
	LastUpdateTime int64             `json:"lastUpdateTime"`
	LastWrite      struct {
		Date struct {
			MS json.Number `json:"$numberLong"`
		} `json:"lastWriteDate"`
	} `json:"lastWrite"`
}

type readPrefJSON struct {
	Mode         string              `json:"mode"`
	TagSets      []map[string]string `json:"tag_sets"`
	MaxStaleness *int64              `json:"maxStalenessSeconds"`
}

func (r readPrefJSON) build() (*readpref.ReadPref, error) {
	mode := readpref.PrimaryMode
	if r.Mode != "" {
		var err error
		if mode, err = readpref.ParseMode(r.Mode); err != nil {
			return nil, err
		}
	}
	var opts []readpref.Option
	for _, tags := range r.TagSets {
		opts = append(opts, readpref.TagSets(readpref.TagSetOf(tags)))
	}
	if r.MaxStaleness != nil {
		opts = append(opts, readpref.MaxStaleness(time.Duration(*r.MaxStaleness)*time.Second))
	}
	return readpref.New(mode, opts...)
}

func loadMaxStaleness(dir string) ([]Case, error) { return loadSelection(dir, "") }

func loadServerSelection(dir string) ([]Case, error) {
	selection, err := loadSelection(dir, "server_selection")
	if err != nil {
		return nil, err
	}
	rtt, err := loadRTT(dir)
	if err != nil {
		return nil, err
	}
	window, err := loadInWindow(dir)
	return slices.Concat(selection, rtt, window), err
}

// load decodes every file below dir/sub and collects the cases that it holds. Their names begin with the file's name
// below dir, without its ending.
func load[F any](dir, sub string, cases func(name string, file *F) []Case) ([]Case, error) {
	files, err := corpus.Files(filepath.Join(dir, sub))
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file := new(F)
		if err := json.Unmarshal(data, file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, err
		}
		out = append(out, cases(strings.TrimSuffix(filepath.ToSlash(name), ".json"), file)...)
	}
	return out, nil
}

// oneCase is for load: the file is one case.
func oneCase[F any](run func(*F) error) func(string, *F) []Case {
	return func(name string, file *F) []Case {
		return []Case{{Name: name, Run: func() error { return run(file) }}}
	}
}

func loadSelection(dir, sub string) ([]Case, error) {
	return load(dir, sub, oneCase((*selectionFile).run))
}

func (f *selectionFile) run() error {
	pref, err := f.ReadPref.build()
	if err != nil {
		return expectError(f.Error, err)
	}
	d, err := f.Topology.build(f.HeartbeatMS)
	if err != nil {
		return err
	}
	want := topology.Want{Write: f.Operation == "write", ReadPref: pref}
	for _, s := range f.Deprioritized {
		want.Deprioritized = append(want.Deprioritized, s.Address)
	}
	if err := d.Invalid(want); err != nil || f.Error {
		return expectError(f.Error, err)
	}
	wide := want
	wide.LocalThreshold = new(time.Hour)
	if err := expectServers("suitable", d, wide, f.Suitable); err != nil {
		return err
	}
	return expectServers("in latency window", d, want, f.InWindow)
}

func expectError(expected bool, err error) error {
	switch {
	case expected && err == nil:
		return errors.New("an error was expected")
	case !expected && err != nil:
		return fmt.Errorf("unexpected error: %w", err)
	}
	return nil
}

// expectServers holds Candidates, and Explain with it, to the expected addresses.
func expectServers(what string, d *topology.Description, w topology.Want, expected []serverJSON) error {
	var want, got []string
	for _, s := range expected {
		want = append(want, s.Address)
	}
	for _, s := range d.Candidates(w, time.Time{}) {
		got = append(got, s.Addr)
	}
	verdict := d.Explain(w, time.Time{})
	explained := verdict.Eligible()
	for _, list := range [][]string{want, got, explained} {
		slices.Sort(list)
	}
	if !slices.Equal(want, got) || !slices.Equal(got, explained) {
		return fmt.Errorf("%s: got %v, explained %v, want %v\n%s", what, got, explained, want, verdict)
	}
	return nil
}

// build brings a topology into the state of the file in the way that a client comes to it: by replies to hello.
func (tj *topologyJSON) build(heartbeatMS int64) (*topology.Description, error) {
	cfg := topology.Config{HeartbeatInterval: time.Duration(heartbeatMS) * time.Millisecond}
	for _, s := range tj.Servers {
		cfg.Seeds = append(cfg.Seeds, s.Address)
	}
	switch tj.Type {
	case "ReplicaSetWithPrimary", "ReplicaSetNoPrimary":
		cfg.SetName = "rs"
	case "Single":
		cfg.Direct = true
	case "LoadBalanced":
		cfg.LoadBalanced = true
	}
	epoch := time.UnixMilli(0)
	d := topology.New(cfg, epoch)
	for _, s := range tj.Servers {
		if s.Type == "Unknown" || s.Type == "PossiblePrimary" || s.Type == "LoadBalancer" {
			continue
		}
		now := time.UnixMilli(s.LastUpdateTime)
		server, err := topology.ParseHello(s.Address, s.hello(cfg.Seeds), ms(s.RTT), now)
		if err != nil {
			return nil, err
		}
		d, _ = d.Apply(topology.HelloReply{Server: server}, now)
	}
	if d.Kind.String() != tj.Type || len(d.Servers) != len(tj.Servers) {
		return nil, fmt.Errorf("the topology became %v, %s was wanted", d.View(), tj.Type)
	}
	return d, nil
}

func ms(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }

// hello is the reply that makes a server of the wanted kind.
func (s *serverJSON) hello(hosts []string) bson.Raw {
	dst, doc := bson.BeginDocument(nil)
	dst = bson.AppendDouble(dst, "ok", 1)
	dst = bson.AppendInt32(dst, "minWireVersion", 0)
	dst = bson.AppendInt32(dst, "maxWireVersion", 21)
	if s.Type == event.Mongos.String() {
		dst = bson.AppendString(dst, "msg", "isdbgrid")
	}
	if s.Type == event.RSGhost.String() {
		dst = bson.AppendBoolean(dst, "isreplicaset", true)
	}
	if s.Type == event.RSPrimary.String() || s.Type == event.RSSecondary.String() {
		dst = bson.AppendString(dst, "setName", "rs")
		dst = bson.AppendBoolean(dst, "isWritablePrimary", s.Type == event.RSPrimary.String())
		dst = bson.AppendBoolean(dst, "secondary", s.Type == event.RSSecondary.String())
		var list int
		dst, list = bson.BeginArrayElement(dst, "hosts")
		for i, h := range hosts {
			dst = bson.AppendString(dst, fmt.Sprint(i), h)
		}
		dst = bson.EndDocument(dst, list)
	}
	dst, tags := bson.BeginDocumentElement(dst, "tags")
	for k, v := range s.Tags {
		dst = bson.AppendString(dst, k, v)
	}
	dst = bson.EndDocument(dst, tags)
	if n, err := s.LastWrite.Date.MS.Int64(); err == nil {
		var last int
		dst, last = bson.BeginDocumentElement(dst, "lastWrite")
		dst = bson.AppendDateTime(dst, "lastWriteDate", n)
		dst = bson.EndDocument(dst, last)
	}
	return bson.EndDocument(dst, doc)
}
