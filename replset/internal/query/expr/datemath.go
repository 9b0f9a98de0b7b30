package expr

import (
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

func dateMathOps() map[string]parseFunc {
	return map[string]parseFunc{
		"$dateAdd":      parseDateAdd,
		"$dateSubtract": parseDateAdd,
		"$dateDiff":     parseDateDiff,
		"$dateTrunc":    parseDateTrunc,
	}
}

func unitArg(op, what string, v bson.RawValue) (string, error) {
	s, ok := str(v)
	if !ok {
		code := int32(5439013)
		if op == "$dateAdd" || op == "$dateSubtract" {
			code = 5166404
		}
		return "", fail(code, "%s requires '%s' to be a string, but got %s", op, what, typeOf(v))
	}
	switch s {
	case "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond":
		return s, nil
	}
	code := mongoerr.CodeFailedToParse
	if op == "$dateTrunc" || op == "$dateDiff" {
		code = 5439014
	}
	return "", fail(code, "%s parameter '%s' value cannot be recognized as a time unit: %s", op, what, s)
}

// spans are the units of fixed length.
var spans = map[string]time.Duration{"hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond}

// amountLimits bound an amount so that a date stays one.
var amountLimits = map[string]int64{
	"year": 1 << 28, "quarter": 1 << 30, "month": 1 << 31, "week": 1 << 34, "day": 1 << 36, "hour": 1 << 41, "minute": 1 << 46,
	"second": 1 << 52, "millisecond": 1 << 62,
}

// addUnits moves a moment; calendar units move the wall clock, and a day that a month has not becomes its last.
func addUnits(t time.Time, unit string, n int64) time.Time {
	if d, ok := spans[unit]; ok {
		return time.UnixMilli(t.UnixMilli() + n*d.Milliseconds()).In(t.Location())
	}
	switch unit {
	case "day":
		return t.AddDate(0, 0, int(n))
	case "week":
		return t.AddDate(0, 0, int(n)*7)
	}
	months := map[string]int64{"year": 12, "quarter": 3, "month": 1}[unit] * n
	y, m, d := t.Date()
	first := time.Date(y, m+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return time.Date(first.Year(), first.Month(), min(d, last), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}

func parseDateAdd(p *Parser, op string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(5166400, "%s expects an object as its argument.found type:%s", op, typeOf(arg))
	}
	s := make([]Expr, 4)
	err := p.options(arg, map[string]*Expr{"startDate": &s[0], "unit": &s[1], "amount": &s[2], "timezone": &s[3]},
		func(k string) error {
			return fail(5166401, "Unrecognized argument to %s: %s. Expected arguments are startDate, unit, amount, and optionally timezone.", op, k)
		})
	if err != nil {
		return nil, err
	}
	if s[0] == nil || s[1] == nil || s[2] == nil {
		return nil, fail(5166402, "%s requires startDate, unit, and amount to be present", op)
	}
	return &lazy{s, func(c *Ctx, s []Expr) (bson.RawValue, error) { return dateAdd(c, op, s) }}, nil
}

// evalArgs evaluates arguments and says whether one of them is null.
func evalArgs(c *Ctx, s ...Expr) (vals []bson.RawValue, isNull bool, err error) {
	for _, e := range s {
		v, err := evalOr(c, e, bson.BooleanValue(false))
		if err != nil {
			return nil, false, err
		}
		isNull = isNull || value.Nullish(v)
		vals = append(vals, v)
	}
	return vals, isNull, nil
}

func dateAdd(c *Ctx, op string, s []Expr) (bson.RawValue, error) {
	v, isNull, err := evalArgs(c, s[0], s[1], s[2])
	if err != nil || isNull {
		return null, err
	}
	unit, err := unitArg(op, "unit", v[1])
	if err != nil {
		return null, err
	}
	t, err := asDate(v[0])
	if err != nil {
		return failed(5166403, "%s requires startDate to be convertible to a date", op)
	}
	n, ok := value.Integral(v[2])
	if !ok {
		return failed(5166405, "%s expects integer amount of time units", op)
	}
	loc, err := zoneArg(c, s[3], notString)
	if err != nil || loc == nil {
		return null, err
	}
	if op == "$dateSubtract" {
		n = -n
	}
	if limit := amountLimits[unit]; n > limit || n < -limit {
		return failed(5976500, "invalid %s 'amount' parameter value: %d %s", op, n, unit)
	}
	return bson.DateTimeValue(addUnits(t.In(loc), unit, n).UnixMilli()), nil
}

func parseDateDiff(p *Parser, op string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(5166301, "$dateDiff only supports an object as its argument")
	}
	s := make([]Expr, 5)
	err := p.options(arg, map[string]*Expr{"startDate": &s[0], "endDate": &s[1], "unit": &s[2], "timezone": &s[3], "startOfWeek": &s[4]},
		func(k string) error { return fail(5166302, "Unrecognized argument to $dateDiff: %s", k) })
	if err != nil {
		return nil, err
	}
	for i, n := range []string{"startDate", "endDate", "unit"} {
		if s[i] == nil {
			return nil, fail([]int32{5166303, 5166304, 5166305}[i], "Missing '%s' parameter to $dateDiff", n)
		}
	}
	return &lazy{s, dateDiff}, nil
}

// weekday reads a startOfWeek: a day's name or its first three letters.
func weekday(op string, v bson.RawValue) (time.Weekday, error) {
	s, ok := str(v)
	if !ok {
		return 0, fail(5439015, "%s requires 'startOfWeek' to be a string, but got %s", op, typeOf(v))
	}
	l := lower(s)
	for d := time.Sunday; d <= time.Saturday; d++ {
		name := lower(d.String())
		if l == name || l == name[:3] {
			return d, nil
		}
	}
	return 0, fail(5439016, "%s parameter 'startOfWeek' value cannot be recognized as a day of a week: %s", op, s)
}

func dateDiff(c *Ctx, s []Expr) (bson.RawValue, error) {
	v, isNull, err := evalArgs(c, s[0], s[1], s[2])
	if err != nil || isNull {
		return null, err
	}
	unit, err := unitArg("$dateDiff", "unit", v[2])
	if err != nil {
		return null, err
	}
	start := time.Sunday
	if s[4] != nil && unit == "week" {
		w, err := s[4].Eval(c)
		if err != nil || value.Nullish(w) {
			return null, err
		}
		if start, err = weekday("$dateDiff", w); err != nil {
			return null, err
		}
	}
	loc, err := zoneArg(c, s[3], notString)
	if err != nil || loc == nil {
		return null, err
	}
	a, err := asDate(v[0])
	if err != nil {
		return failed(5166307, "$dateDiff requires 'startDate' to be a date, but got %s", typeOf(v[0]))
	}
	b, err := asDate(v[1])
	if err != nil {
		return failed(5166307, "$dateDiff requires 'endDate' to be a date, but got %s", typeOf(v[1]))
	}
	return bson.Int64Value(ordinal(b.In(loc), unit, start) - ordinal(a.In(loc), unit, start)), nil
}

// ordinal numbers the units so that the difference of two is the count of boundaries between them.
func ordinal(t time.Time, unit string, start time.Weekday) int64 {
	y, m, d := t.Date()
	day := floorDiv(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix(), 86400)
	wall := inZone(t, time.UTC).UnixMilli()
	switch unit {
	case "year":
		return int64(y)
	case "quarter":
		return int64(y)*4 + int64(m-1)/3
	case "month":
		return int64(y)*12 + int64(m) - 1
	case "week": // 1970-01-01 was a Thursday
		return floorDiv(day+4-int64(start), 7)
	case "day":
		return day
	case "hour":
		return floorDiv(wall, 3600_000) - offsetHours(t)
	case "minute":
		return floorDiv(t.UnixMilli(), 60_000)
	case "second":
		return floorDiv(t.UnixMilli(), 1000)
	}
	return t.UnixMilli()
}

// offsetHours undoes the whole hours of a zone's offset: hours are counted as they pass, not as the clock shows them.
func offsetHours(t time.Time) int64 {
	_, off := t.Zone()
	return floorDiv(int64(off), 3600)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func parseDateTrunc(p *Parser, _ string, arg bson.RawValue) (Expr, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(5439007, "$dateTrunc only supports an object as its argument")
	}
	s := make([]Expr, 5)
	err := p.options(arg, map[string]*Expr{"date": &s[0], "unit": &s[1], "binSize": &s[2], "timezone": &s[3], "startOfWeek": &s[4]},
		func(k string) error { return fail(5439008, "Unrecognized argument to $dateTrunc: %s", k) })
	if err != nil {
		return nil, err
	}
	if s[0] == nil {
		return nil, fail(5439009, "Missing 'date' parameter to $dateTrunc")
	}
	if s[1] == nil {
		return nil, fail(5439010, "Missing 'unit' parameter to $dateTrunc")
	}
	return &lazy{s, dateTrunc}, nil
}

func dateTrunc(c *Ctx, s []Expr) (bson.RawValue, error) {
	v, isNull, err := evalArgs(c, s[0], s[1])
	if err != nil || isNull {
		return null, err
	}
	size, err := evalOr(c, s[2], bson.Int32Value(1))
	if err != nil || value.Nullish(size) {
		return null, err
	}
	unit, err := unitArg("$dateTrunc", "unit", v[1])
	if err != nil {
		return null, err
	}
	start := time.Sunday
	if s[4] != nil && unit == "week" {
		w, err := s[4].Eval(c)
		if err != nil || value.Nullish(w) {
			return null, err
		}
		if start, err = weekday("$dateTrunc", w); err != nil {
			return null, err
		}
	}
	loc, err := zoneArg(c, s[3], notString)
	if err != nil || loc == nil {
		return null, err
	}
	t, err := asDate(v[0])
	if err != nil {
		return failed(5439012, "$dateTrunc requires 'date' to be a date, but got %s", typeOf(v[0]))
	}
	n, ok := value.Integral(size)
	if !ok {
		return failed(5439017, "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '%s' of type %s", value.Show(size), typeOf(size))
	}
	if n <= 0 {
		return failed(5439018, "$dateTrunc requires 'binSize' to be greater than 0, but got value %d", n)
	}
	return bson.DateTimeValue(truncate(t.In(loc), unit, min(n, 1<<40), start).UnixMilli()), nil
}

// truncate cuts to the begin of a bin; bins are counted from the year 2000 in the zone.
func truncate(t time.Time, unit string, size int64, start time.Weekday) time.Time {
	loc := t.Location()
	base := time.Date(2000, 1, 1, 0, 0, 0, 0, loc)
	if d, ok := spans[unit]; ok {
		bin := d.Milliseconds() * size
		return time.UnixMilli(base.UnixMilli() + floorDiv(t.UnixMilli()-base.UnixMilli(), bin)*bin)
	}
	if unit == "week" {
		base = base.AddDate(0, 0, (int(start)-int(base.Weekday())+7)%7)
	}
	k := floorDiv(ordinal(t, unit, start)-ordinal(base, unit, start), size) * size
	return addUnits(base, unit, k)
}
