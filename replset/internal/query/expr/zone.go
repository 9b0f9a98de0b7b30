package expr

import (
	"fmt"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// zone finds a time zone: UTC, an offset like +05:45, +0545 or +05, or a name of the Olson database.
func (e *Env) zone(name string) (*time.Location, error) {
	if name == "UTC" || name == "GMT" {
		return time.UTC, nil
	}
	if off, ok := parseOffset(name); ok {
		return time.FixedZone(name, off), nil
	}
	if name != "" && name != "Local" && e != nil && e.Zone != nil {
		if loc, ok := e.Zone(name); ok {
			return loc, nil
		}
	}
	return nil, fail(40485, "unrecognized time zone identifier: %q", name)
}

// parseOffset reads +hh, +hhmm and +hh:mm as seconds.
func parseOffset(s string) (int, bool) {
	if len(s) < 3 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	d := s[1:]
	if len(d) == 5 && d[2] == ':' {
		d = d[:2] + d[3:]
	}
	if len(d) != 2 && len(d) != 4 {
		return 0, false
	}
	n := [4]int{}
	for i := range len(d) {
		if d[i] < '0' || d[i] > '9' {
			return 0, false
		}
		n[i] = int(d[i] - '0')
	}
	off := (n[0]*10+n[1])*3600 + (n[2]*10+n[3])*60
	if s[0] == '-' {
		off = -off
	}
	return off, true
}

// zoneArg evaluates an optional time zone: nil without an error if it is null.
func zoneArg(c *Ctx, e Expr, wrong func(v bson.RawValue) error) (*time.Location, error) {
	if e == nil {
		return time.UTC, nil
	}
	v, err := e.Eval(c)
	if err != nil || value.Nullish(v) {
		return nil, err
	}
	s, ok := str(v)
	if !ok {
		return nil, wrong(v)
	}
	return c.Env.zone(s)
}

func notString(v bson.RawValue) error {
	return fail(40517, "timezone must evaluate to a string, found %s", typeOf(v))
}

// asDate takes a date, a timestamp or an ObjectID as a moment.
func asDate(v bson.RawValue) (time.Time, error) {
	switch v.Type {
	case bson.TypeDateTime:
		ms, _ := v.DateTimeOK()
		return time.UnixMilli(ms).UTC(), nil
	case bson.TypeTimestamp:
		t, _, _ := v.TimestampOK()
		return time.Unix(int64(t), 0).UTC(), nil
	case bson.TypeObjectID:
		id, _ := v.ObjectIDOK()
		return id.Timestamp().UTC(), nil
	}
	return time.Time{}, fail(16006, "can't convert from BSON type %s to Date", typeOf(v))
}

func showTimestamp(t, i uint32) string {
	return fmt.Sprintf("%s:%d", time.Unix(int64(t), 0).UTC().Format("Jan _2 15:04:05"), i)
}
