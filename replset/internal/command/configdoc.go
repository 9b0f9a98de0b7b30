package command

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/repl"
)

func replSetGetConfig(_ context.Context, m *Member, r *Request) (bson.D, error) {
	st := m.state.Load()
	if st.Role == repl.RoleStartup {
		return nil, mongoerr.Server(mongoerr.CodeNotYetInitialized, "no replset config has been received")
	}
	d := bson.D{{Key: "config", Value: configDocument(st.Config)}}
	if ask, _ := r.Field("commitmentStatus").BooleanOK(); ask {
		if !st.Writable {
			return nil, mongoerr.Server(mongoerr.CodeNotWritablePrimary, "commitmentStatus is only supported on primary.")
		}
		d = append(d, bson.E{Key: "commitmentStatus", Value: m.progress.Load().Settled})
	}
	return d, nil
}

// configDocument is the configuration as replSetGetConfig shows it.
func configDocument(cfg *Config) bson.D {
	members := make([]bson.D, len(cfg.Members))
	for i, mc := range cfg.Members {
		members[i] = bson.D{
			{Key: "_id", Value: int32(mc.ID)},
			{Key: "host", Value: mc.Host},
			{Key: "arbiterOnly", Value: mc.Arbiter},
			{Key: "buildIndexes", Value: true},
			{Key: "hidden", Value: mc.Hidden},
			{Key: "priority", Value: mc.Priority},
			{Key: "tags", Value: tagsDocument(mc.Tags)},
			{Key: "secondaryDelaySecs", Value: seconds(mc.Delay)},
			{Key: "votes", Value: int32(mc.Votes)},
		}
	}
	modes := bson.D{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Modes)) {
		var d bson.D
		for _, tag := range slices.Sorted(maps.Keys(cfg.Modes[name])) {
			d = append(d, bson.E{Key: tag, Value: int32(cfg.Modes[name][tag])})
		}
		modes = append(modes, bson.E{Key: name, Value: d})
	}
	return bson.D{
		{Key: "_id", Value: cfg.SetName},
		{Key: "version", Value: cfg.Version},
		{Key: "term", Value: cfg.Term},
		{Key: "members", Value: members},
		{Key: "protocolVersion", Value: int64(1)},
		{Key: "writeConcernMajorityJournalDefault", Value: true},
		{Key: "settings", Value: bson.D{
			{Key: "chainingAllowed", Value: !cfg.NoChaining},
			{Key: "heartbeatIntervalMillis", Value: int32(cfg.HeartbeatInterval.Milliseconds())},
			{Key: "heartbeatTimeoutSecs", Value: int32(max(cfg.ElectionTimeout/time.Second, 1))},
			{Key: "electionTimeoutMillis", Value: int32(cfg.ElectionTimeout.Milliseconds())},
			{Key: "catchUpTimeoutMillis", Value: int32(cfg.CatchUpTimeout.Milliseconds())},
			{Key: "getLastErrorModes", Value: modes},
			{Key: "getLastErrorDefaults", Value: bson.D{{Key: "w", Value: int32(1)}, {Key: "wtimeout", Value: int32(0)}}},
		}},
	}
}

// maxMillis is the longest time-out, 24 days and some, that a configuration tells.
const maxMillis = math.MaxInt32

// seconds is a delay as a server shows it; the fraction that only sets of this package know is a double.
func seconds(d time.Duration) any {
	if d%time.Second == 0 {
		return int64(d / time.Second)
	}
	return d.Seconds()
}

// configReader reads a configuration document and keeps the first thing that is wrong with it.
type configReader struct{ err error }

func (c *configReader) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// readConfig reads a configuration as replSetGetConfig shows it, and checks it. Unlike on a server, settings that it does
// not mention are not the defaults but those of like.
func readConfig(doc bson.Raw, like *Config) (*Config, error) {
	var c configReader
	cfg := &Config{ElectionTimeout: like.ElectionTimeout, HeartbeatInterval: like.HeartbeatInterval, CatchUpTimeout: like.CatchUpTimeout,
		NoChaining: like.NoChaining, Modes: like.Modes}
	for key, v := range doc.All() {
		c.top(cfg, key, v)
	}
	if c.err == nil && doc.Lookup("members").IsZero() {
		c.fail("Missing expected field \"members\"")
	}
	if cfg.HeartbeatInterval >= cfg.ElectionTimeout {
		c.fail("electionTimeoutMillis must be greater than heartbeatIntervalMillis")
	}
	if c.err != nil {
		return nil, c.err
	}
	return cfg, cfg.Validate()
}

func (c *configReader) top(cfg *Config, key string, v bson.RawValue) {
	switch key {
	case "_id":
		cfg.SetName = c.text(key, v)
	case "version":
		n := c.number(key, v)
		if n < 1 || n > math.MaxInt32 {
			c.fail("version field value of %v is out of range", n)
		}
		cfg.Version = int32(n)
	case "term":
		cfg.Term = int64(c.number(key, v))
	case "members":
		arr, ok := v.ArrayOK()
		if !ok {
			c.fail("members must be an array, not a %s", v.Type)
		}
		for i, m := range arr.All() {
			d, ok := m.DocumentOK()
			if !ok {
				c.fail("member %d is a %s", i, m.Type)
			}
			cfg.Members = append(cfg.Members, c.member(d))
		}
	case "settings":
		d, ok := v.DocumentOK()
		if !ok {
			c.fail("settings must be an object, not a %s", v.Type)
		}
		for key, v := range d.All() {
			c.setting(cfg, key, v)
		}
	case "protocolVersion":
		if n := c.number(key, v); n != 1 {
			c.fail("protocolVersion field value of %v is not 1 or is out of range", n)
		}
	case "writeConcernMajorityJournalDefault", "configsvr":
	default:
		c.fail("Unexpected field %s in replica set configuration", key)
	}
}

// member reads one member. What is left out is as in any other member.
func (c *configReader) member(d bson.Raw) MemberConfig {
	mc := MemberConfig{ID: -1, Priority: 1, Votes: 1}
	given := false
	for key, v := range d.All() {
		switch key {
		case "_id":
			mc.ID = int(c.number(key, v))
		case "host":
			mc.Host = strings.ToLower(c.text(key, v))
		case "priority":
			mc.Priority, given = c.number(key, v), true
		case "votes":
			mc.Votes = int(c.number(key, v))
		case "hidden":
			mc.Hidden = c.truth(key, v)
		case "arbiterOnly":
			mc.Arbiter = c.truth(key, v)
		case "buildIndexes":
			if !c.truth(key, v) {
				c.fail("a member without indexes is not supported here")
			}
		case "secondaryDelaySecs", "slaveDelay":
			mc.Delay = c.delay(key, v)
		case "tags":
			mc.Tags = c.tags(v)
		case "horizons", "newlyAdded":
		default:
			c.fail("Unexpected field %s in member configuration", key)
		}
	}
	if mc.Arbiter && !given {
		mc.Priority = 0
	}
	return mc
}

func (c *configReader) tags(v bson.RawValue) (out []Tag) {
	d, ok := v.DocumentOK()
	if !ok {
		c.fail("tags must be an object, not a %s", v.Type)
	}
	for name, t := range d.All() {
		out = append(out, Tag{Name: name, Value: c.text("tags."+name, t)})
	}
	return out
}

func (c *configReader) setting(cfg *Config, key string, v bson.RawValue) {
	switch key {
	case "chainingAllowed":
		cfg.NoChaining = !c.truth(key, v)
	case "electionTimeoutMillis":
		cfg.ElectionTimeout = c.millis(key, v, 10)
	case "heartbeatIntervalMillis":
		cfg.HeartbeatInterval = c.millis(key, v, 1)
	case "catchUpTimeoutMillis":
		if n := c.number(key, v); n >= 0 {
			cfg.CatchUpTimeout = c.millis(key, v, 0)
		} else {
			cfg.CatchUpTimeout = maxMillis * time.Millisecond // -1: for ever
		}
	case "getLastErrorModes":
		d, ok := v.DocumentOK()
		if !ok {
			c.fail("getLastErrorModes must be an object, not a %s", v.Type)
		}
		cfg.Modes = map[string]map[string]int{}
		for name, m := range d.All() {
			c.mode(cfg, name, m)
		}
	case "heartbeatTimeoutSecs", "catchUpTakeoverDelayMillis", "getLastErrorDefaults", "replicaSetId":
	default:
		c.fail("Unexpected field %s in replica set configuration settings", key)
	}
}

func (c *configReader) mode(cfg *Config, name string, v bson.RawValue) {
	d, ok := v.DocumentOK()
	if !ok {
		c.fail("getLastErrorModes.%s must be an object, not a %s", name, v.Type)
	}
	mode := map[string]int{}
	for tag, n := range d.All() {
		mode[tag] = int(c.number("getLastErrorModes."+name+"."+tag, n))
	}
	cfg.Modes[name] = mode
}

func (c *configReader) number(key string, v bson.RawValue) float64 {
	n, ok := v.AsFloat64OK()
	if !ok || math.IsNaN(n) || math.IsInf(n, 0) {
		c.fail("%s must be a number, not a %s", key, v.Type)
		return 0
	}
	return n
}

func (c *configReader) millis(key string, v bson.RawValue, least float64) time.Duration {
	n := c.number(key, v)
	if n < least || n > maxMillis {
		c.fail("%s field value of %v is out of range", key, n)
	}
	return time.Duration(n * float64(time.Millisecond))
}

// delay reads seconds. What no duration can hold becomes the longest, which is too long for a member.
func (c *configReader) delay(key string, v bson.RawValue) time.Duration {
	const most = float64(math.MaxInt64 / 2)
	return time.Duration(min(max(c.number(key, v)*float64(time.Second), -most), most))
}

func (c *configReader) text(key string, v bson.RawValue) string {
	s, ok := v.StringValueOK()
	if !ok {
		c.fail("%s must be a string, not a %s", key, v.Type)
	}
	return s
}

func (c *configReader) truth(key string, v bson.RawValue) bool {
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	if n, ok := v.AsFloat64OK(); ok {
		return n != 0
	}
	c.fail("%s must be a boolean, not a %s", key, v.Type)
	return false
}
