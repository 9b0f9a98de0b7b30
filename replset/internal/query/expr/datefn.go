package expr

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func dateOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$dateToString":   parseDateToString,
		"$dateToParts":    parseDateToParts,
		"$dateFromParts":  parseDateFromParts,
		"$dateFromString": parseDateFromString,
	}
}

// options parses a document of named expressions into slots.
func (p *Parser) options(arg bson.RawValue, slots map[string]*Expr, unknown func(k string) error) error {
	for k, v := range bson.Raw(arg.Value).All() {
		slot := slots[k]
		if slot == nil {
			return unknown(k)
		}
		var err error
		if *slot, err = p.Operand(v); err != nil {
			return err
		}
	}
	return nil
}

// lazy is an operator that evaluates its named arguments itself.
type lazy struct {
	slots []Expr
	eval  func(c *Ctx, slots []Expr) (bson.RawValue, error)
}

// Eval runs the operator.
func (x *lazy) Eval(c *Ctx) (bson.RawValue, error) { return x.eval(c, x.slots) }

func (x *lazy) fold(c *Ctx) (Expr, error) {
	out := &lazy{append([]Expr(nil), x.slots...), x.eval}
	ptrs := make([]*Expr, len(out.slots))
	for i := range out.slots {
		ptrs[i] = &out.slots[i]
	}
	constant, err := foldSlots(c, ptrs...)
	if err != nil || !constant {
		return out, err
	}
	v, err := out.Eval(c)
	return Literal{v}, err
}

func evalOr(c *Ctx, e Expr, other bson.RawValue) (bson.RawValue, error) {
	if e == nil {
		return other, nil
	}
	return e.Eval(c)
}

func parseDateToString(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(18629, "$dateToString only supports an object as its argument")
	}
	s := make([]Expr, 4)
	err := p.options(arg, map[string]*Expr{"date": &s[0], "format": &s[1], "timezone": &s[2], "onNull": &s[3]},
		func(k string) error { return fail(18534, "Unrecognized argument to $dateToString: %s", k) })
	if err != nil {
		return nil, err
	}
	if s[0] == nil {
		return nil, fail(18628, "Missing 'date' parameter to $dateToString")
	}
	if l, ok := s[1].(Literal); ok { // a constant format is checked before there is a date
		if text, ok := str(l.Value); ok {
			if _, err := FormatDate(time.Time{}, text, p.Env.Newer); err != nil {
				return nil, err
			}
		}
	}
	return &lazy{s, dateToString}, nil
}

func dateToString(c *Ctx, s []Expr) (bson.RawValue, error) {
	loc, err := zoneArg(c, s[2], notString)
	if err != nil {
		return null, err
	}
	format := "%Y-%m-%dT%H:%M:%S.%L"
	if s[2] == nil || loc == time.UTC {
		format += "Z"
	}
	if s[1] != nil {
		v, err := s[1].Eval(c)
		if err != nil || value.Nullish(v) {
			return null, err
		}
		var ok bool
		if format, ok = str(v); !ok {
			return failed(18533, "$dateToString requires that 'format' be a string, found: %s with value %s", typeOf(v), value.Show(v))
		}
	} else if s[2] != nil {
		format = "%Y-%m-%dT%H:%M:%S.%LZ"
	}
	v, err := s[0].Eval(c)
	if err != nil {
		return v, err
	}
	if value.Nullish(v) {
		return evalOr(c, s[3], null)
	}
	if loc == nil {
		return null, nil
	}
	t, err := asDate(v)
	if err != nil {
		return null, err
	}
	text, err := FormatDate(t.In(loc), format, c.Env.Newer)
	return bson.StringValue(text), err
}

// FormatDate writes a date by a pattern of %Y, %m, %d, %H, %M, %S, %L, %j, %w, %u, %U, %V, %G, %z, %Z, %%, and if
// months of %b and %B, their English names.
func FormatDate(t time.Time, format string, months bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i == len(format) {
			return "", fail(18535, "Unmatched '%%' at end of format string")
		}
		if name := t.Month().String(); months && (format[i] == 'b' || format[i] == 'B') {
			if format[i] == 'b' {
				name = name[:3]
			}
			b.WriteString(name)
			continue
		}
		if err := formatPart(&b, t, format[i]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func formatPart(b *strings.Builder, t time.Time, c byte) error {
	year, week := t.ISOWeek()
	_, off := t.Zone()
	switch c {
	case '%':
		b.WriteByte('%')
	case 'Y':
		return formatYear(b, t.Year())
	case 'G':
		return formatYear(b, year)
	case 'm':
		fmt.Fprintf(b, "%02d", int(t.Month()))
	case 'd':
		fmt.Fprintf(b, "%02d", t.Day())
	case 'H':
		fmt.Fprintf(b, "%02d", t.Hour())
	case 'M':
		fmt.Fprintf(b, "%02d", t.Minute())
	case 'S':
		fmt.Fprintf(b, "%02d", t.Second())
	case 'L':
		fmt.Fprintf(b, "%03d", t.Nanosecond()/1e6)
	case 'j':
		fmt.Fprintf(b, "%03d", t.YearDay())
	case 'w':
		fmt.Fprintf(b, "%d", int(t.Weekday())+1)
	case 'u':
		fmt.Fprintf(b, "%d", isoDay(t))
	case 'U':
		fmt.Fprintf(b, "%02d", weekOfYear(t))
	case 'V':
		fmt.Fprintf(b, "%02d", week)
	case 'z':
		sign := '+'
		if off < 0 {
			sign, off = '-', -off
		}
		fmt.Fprintf(b, "%c%02d%02d", sign, off/3600, off/60%60)
	case 'Z':
		fmt.Fprintf(b, "%d", off/60)
	default:
		return fail(18536, "Invalid format character '%%%c' in format string", c)
	}
	return nil
}

func formatYear(b *strings.Builder, y int) error {
	if y < 0 || y > 9999 {
		return fail(18537, "Could not convert date to string: date component was outside the supported range of 0-9999: %d", y)
	}
	fmt.Fprintf(b, "%04d", y)
	return nil
}

func parseDateToParts(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(40524, "$dateToParts only supports an object as its argument")
	}
	s := make([]Expr, 3)
	err := p.options(arg, map[string]*Expr{"date": &s[0], "timezone": &s[1], "iso8601": &s[2]},
		func(k string) error { return fail(40520, "Unrecognized argument to $dateToParts: %s", k) })
	if err != nil {
		return nil, err
	}
	if s[0] == nil {
		return nil, fail(40522, "Missing 'date' parameter to $dateToParts")
	}
	return &lazy{s, dateToParts}, nil
}

func dateToParts(c *Ctx, s []Expr) (bson.RawValue, error) {
	v, err := s[0].Eval(c)
	if err != nil {
		return v, err
	}
	loc, err := zoneArg(c, s[1], notString)
	if err != nil || loc == nil {
		return null, err
	}
	iso, err := evalOr(c, s[2], bson.BooleanValue(false))
	if err != nil || value.Nullish(iso) {
		return null, err
	}
	if iso.Type != bson.TypeBoolean {
		return failed(40521, "iso8601 must evaluate to a bool, found %s", typeOf(iso))
	}
	if value.Nullish(v) {
		return null, nil
	}
	t, err := asDate(v)
	if err != nil {
		return null, err
	}
	t = t.In(loc)
	n := func(key string, n int) value.Field { return value.Field{Key: key, Value: bson.Int32Value(int32(n))} }
	fields := []value.Field{n("year", t.Year()), n("month", int(t.Month())), n("day", t.Day())}
	if value.Truthy(iso) {
		y, w := t.ISOWeek()
		fields = []value.Field{n("isoWeekYear", y), n("isoWeek", w), n("isoDayOfWeek", isoDay(t))}
	}
	fields = append(fields, n("hour", t.Hour()), n("minute", t.Minute()), n("second", t.Second()), n("millisecond", t.Nanosecond()/1e6))
	return bson.DocumentValue(value.DocOf(fields...)), nil
}

var partNames = []string{"year", "month", "day", "isoWeekYear", "isoWeek", "isoDayOfWeek", "hour", "minute", "second", "millisecond"}

func parseDateFromParts(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(40519, "$dateFromParts only supports an object as its argument")
	}
	s := make([]Expr, len(partNames)+1)
	slots := map[string]*Expr{"timezone": &s[len(partNames)]}
	for i, n := range partNames {
		slots[n] = &s[i]
	}
	err := p.options(arg, slots, func(k string) error { return fail(40518, "Unrecognized argument to $dateFromParts: %s", k) })
	if err != nil {
		return nil, err
	}
	natural := s[0] != nil || s[1] != nil || s[2] != nil
	iso := s[3] != nil || s[4] != nil || s[5] != nil
	switch {
	case s[0] == nil && s[3] == nil:
		return nil, fail(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
	case natural && iso:
		return nil, fail(40489, "$dateFromParts does not allow mixing natural dates with ISO dates")
	}
	return &lazy{s, dateFromParts}, nil
}

func dateFromParts(c *Ctx, s []Expr) (bson.RawValue, error) {
	loc, err := zoneArg(c, s[len(partNames)], notString)
	if err != nil || loc == nil {
		return null, err
	}
	var n [10]int // a long where int is one; parts of the day may be of any size
	for i, name := range partNames {
		n[i] = []int{1970, 1, 1, 1970, 1, 1, 0, 0, 0, 0}[i]
		if s[i] == nil {
			continue
		}
		v, err := s[i].Eval(c)
		if err != nil || value.Nullish(v) {
			return null, err
		}
		m, whole := value.Integral(v)
		if !value.IsNumber(v) || !whole || i < 6 && !isInt(v) {
			return failed(40515, "'%s' must evaluate to an integer, found %s with value %s", name, typeOf(v), value.Show(v))
		}
		n[i] = int(m)
		if (i == 0 || i == 3) && (n[i] < 0 || n[i] > 9999) {
			return failed(40523, "'%s' must evaluate to an integer in the range 0 to 9999, found %d", name, n[i])
		}
	}
	var day time.Time
	if s[3] != nil {
		day = isoWeekStart(n[3]).AddDate(0, 0, (n[4]-1)*7+n[5]-1)
	} else {
		day = time.Date(n[0], time.Month(n[1]), n[2], 0, 0, 0, 0, time.UTC)
	}
	// Hours and less are added to the local midnight's wall clock and may be of any size.
	wall := day.UnixMilli() + int64(n[6])*3600_000 + int64(n[7])*60_000 + int64(n[8])*1000 + int64(n[9])
	return bson.DateTimeValue(inZone(time.UnixMilli(wall).UTC(), loc).UnixMilli()), nil
}

// inZone reads the wall clock of a UTC time as the wall clock of another zone.
func inZone(t time.Time, loc *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc)
}

// isoWeekStart is the Monday of the first ISO week of a year.
func isoWeekStart(year int) time.Time {
	t := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC)
	return t.AddDate(0, 0, 1-isoDay(t))
}

func parseDateFromString(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(40540, "$dateFromString only supports an object as an argument, found: %s", typeOf(arg))
	}
	s := make([]Expr, 5)
	err := p.options(arg, map[string]*Expr{"dateString": &s[0], "timezone": &s[1], "format": &s[2], "onNull": &s[3], "onError": &s[4]},
		func(k string) error { return fail(40541, "Unrecognized argument to $dateFromString: %s", k) })
	if err != nil {
		return nil, err
	}
	if s[0] == nil {
		return nil, fail(40542, "Missing 'dateString' parameter to $dateFromString")
	}
	return &lazy{s, dateFromString}, nil
}

func dateFromString(c *Ctx, s []Expr) (bson.RawValue, error) {
	v, err := s[0].Eval(c)
	if err != nil {
		return v, err
	}
	loc, err := zoneArg(c, s[1], notString)
	if err != nil {
		return null, err
	}
	format, err := evalOr(c, s[2], bson.StringValue(""))
	if err != nil {
		return null, err
	}
	pattern, ok := str(format)
	if !ok && !value.Nullish(format) {
		return failed(40684, "$dateFromString requires that 'format' be a string, found: %s with value %s", typeOf(format), value.Show(format))
	}
	if value.Nullish(v) {
		return evalOr(c, s[3], null)
	}
	if value.Nullish(format) || loc == nil {
		return null, nil
	}
	if s[1] == nil {
		loc = nil
	}
	out, err := readDate(c, v, pattern, s[2] != nil, loc)
	var e *mongoerr.Error
	if errors.As(err, &e) && e.Code == mongoerr.CodeConversionFailure && s[4] != nil {
		return s[4].Eval(c)
	}
	return out, err
}

func readDate(c *Ctx, v bson.RawValue, pattern string, formatted bool, loc *time.Location) (bson.RawValue, error) {
	text, ok := str(v)
	if !ok {
		return unconvertible("$dateFromString requires that 'dateString' be a string, found: %s with value %s", typeOf(v), value.Show(v))
	}
	var ms int64
	var err error
	if formatted {
		ms, err = ParseDateFormat(text, pattern, loc, c.Env.Newer)
	} else {
		ms, err = ParseDate(c.Env, text, loc)
	}
	return bson.DateTimeValue(ms), err
}
