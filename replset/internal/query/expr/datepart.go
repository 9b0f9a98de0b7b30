package expr

import (
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// datePart is $year and its kin: one number of a date in a time zone.
type datePart struct {
	name       string
	date, zone Expr
	part       func(t time.Time) bson.RawValue
}

func datePartOps() map[string]parseFunc {
	out := map[string]parseFunc{}
	for name, part := range map[string]func(t time.Time) int{
		"$year":         time.Time.Year,
		"$month":        func(t time.Time) int { return int(t.Month()) },
		"$dayOfMonth":   time.Time.Day,
		"$dayOfYear":    time.Time.YearDay,
		"$dayOfWeek":    func(t time.Time) int { return int(t.Weekday()) + 1 },
		"$hour":         time.Time.Hour,
		"$minute":       time.Time.Minute,
		"$second":       time.Time.Second,
		"$millisecond":  func(t time.Time) int { return t.Nanosecond() / 1e6 },
		"$week":         weekOfYear,
		"$isoWeek":      func(t time.Time) int { _, w := t.ISOWeek(); return w },
		"$isoDayOfWeek": isoDay,
	} {
		out[name] = parseDatePart(func(t time.Time) bson.RawValue { return bson.Int32Value(int32(part(t))) })
	}
	out["$isoWeekYear"] = parseDatePart(func(t time.Time) bson.RawValue {
		y, _ := t.ISOWeek()
		return bson.Int64Value(int64(y))
	})
	return out
}

// weekOfYear counts from 0; a week begins on Sunday.
func weekOfYear(t time.Time) int { return (t.YearDay() + 6 - int(t.Weekday())) / 7 }

// isoDay is 1 for Monday, 7 for Sunday.
func isoDay(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

func parseDatePart(part func(t time.Time) bson.RawValue) parseFunc {
	return func(p *Parser, name string, arg bson.RawValue) (Expr, error) {
		out := &datePart{name: name, part: part}
		doc := value.Doc(arg)
		first, _ := value.First(doc)
		if arg.Type == bson.TypeEmbeddedDocument && !strings.HasPrefix(first, "$") {
			return out, out.options(p, arg)
		}
		if arg.Type == bson.TypeArray {
			if n := doc.Len(); n != 1 {
				return nil, fail(40536, "%s accepts exactly one argument if given an array, but was given %d", name, n)
			}
			_, arg = value.First(doc)
		}
		var err error
		out.date, err = p.Operand(arg)
		return out, err
	}
}

func (x *datePart) options(p *Parser, arg bson.RawValue) error {
	for k, v := range bson.Raw(arg.Value).All() {
		var err error
		switch k {
		case "date":
			x.date, err = p.Operand(v)
		case "timezone":
			x.zone, err = p.Operand(v)
		default:
			err = fail(40535, "unrecognized option to %s: %q", x.name, k)
		}
		if err != nil {
			return err
		}
	}
	if x.date == nil {
		return fail(40539, "missing 'date' argument to %s, provided: %s", x.name, value.PrintElement(x.name, arg))
	}
	return nil
}

// Eval computes the part.
func (x *datePart) Eval(c *Ctx) (bson.RawValue, error) {
	v, err := x.date.Eval(c)
	if err != nil || value.Nullish(v) {
		return null, err
	}
	t, err := asDate(v)
	if err != nil {
		return null, err
	}
	loc, err := zoneArg(c, x.zone, func(v bson.RawValue) error {
		return fail(40533, "%s requires a string for the timezone argument, but was given a %s (%s)", x.name, typeOf(v), value.Show(v))
	})
	if err != nil || loc == nil {
		return null, err
	}
	return x.part(t.In(loc)), nil
}

func (x *datePart) fold(c *Ctx) (Expr, error) {
	out := *x
	constant, err := foldSlots(c, &out.date, &out.zone)
	if err != nil || !constant {
		return &out, err
	}
	v, err := out.Eval(c)
	return Literal{v}, err
}

// foldSlots folds expressions in place and says whether all are constant; nil ones are.
func foldSlots(c *Ctx, slots ...*Expr) (bool, error) {
	constant := true
	for _, s := range slots {
		if *s == nil {
			continue
		}
		e, err := fold(*s, c)
		if err != nil {
			return false, err
		}
		_, lit := e.(Literal)
		*s, constant = e, constant && lit
	}
	return constant, nil
}
