package expr

import (
	"strings"
	"time"

	"github.com/sextantdb/sextant/mongoerr"
)

// dateLayouts are the ways of writing a date that are understood without a format. A date may be followed by a clock and a
// zone.
var dateLayouts = []string{
	"2006-01-02", "2006-1-2", "2006/01/02", "2006/1/2", "20060102", "01/02/2006", "1/2/2006",
	"Jan 2 2006", "Jan 2, 2006", "January 2 2006", "January 2, 2006", "2 Jan 2006", "2 January 2006", "02-Jan-2006", "2-Jan-2006",
	"Mon, 2 Jan 2006", "Mon, 02 Jan 2006", "Monday, 2 January 2006",
}

var clockLayouts = []string{"15:04:05.999999999", "15:04:05", "15:04", "150405", "1504", "3:04pm", "3:04 pm", "3:04PM", "3:04 PM", "15"}

// abbreviations are the zone names that a date text may end with, in hours from UTC.
var abbreviations = map[string]int{
	"UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2, "BST": 1,
}

// ParseDate reads a date text as milliseconds since 1970. loc is the zone that the caller names, nil for UTC; a text that
// names a zone itself may then not be given one.
func ParseDate(e *Env, text string, loc *time.Location) (int64, error) {
	if text == "" {
		return 0, unreadable("Error parsing date string ''; 0: Empty string '\x00'")
	}
	body, off, zoned := cutZone(text)
	if zoned != "" && loc != nil {
		if zoned == "offset" {
			return 0, unreadable("you cannot pass in a date/time string with GMT offset together with a timezone argument")
		}
		return 0, unreadable("you cannot pass in a date/time string with time zone information ('%s') together with a timezone argument", zoned)
	}
	t, ok := parseWall(body)
	if !ok {
		return 0, explain(text)
	}
	switch {
	case zoned != "":
		t = t.Add(-off)
	case loc != nil:
		t = inZone(t, loc)
	}
	return t.UnixMilli(), nil
}

func unreadable(format string, args ...any) error {
	return fail(mongoerr.CodeConversionFailure, format, args...)
}

// cutZone takes a zone off the end of a text: its kind is "offset" or the zone's name, empty if there is none.
func cutZone(text string) (body string, off time.Duration, kind string) {
	if i := strings.LastIndexAny(text, "+-"); i > 8 && strings.ContainsAny(text[:i], ":T") {
		if s, ok := parseOffset(text[i:]); ok {
			return strings.TrimRight(text[:i], " "), time.Duration(s) * time.Second, "offset"
		}
	}
	if n := len(text) - 1; n > 8 && (text[n] == 'Z' || text[n] == 'z') && text[n-1] >= '0' && text[n-1] <= '9' {
		return text[:n], 0, "Z"
	}
	if i := strings.LastIndexByte(text, ' '); i > 0 {
		if h, ok := abbreviations[text[i+1:]]; ok {
			return text[:i], time.Duration(h) * time.Hour, text[i+1:]
		}
	}
	return text, 0, ""
}

func parseWall(s string) (time.Time, bool) {
	for _, d := range dateLayouts {
		if t, err := time.Parse(d, s); err == nil {
			return t, true
		}
		for _, sep := range []string{"T", " ", " at "} {
			if !strings.Contains(s, sep) {
				continue
			}
			for _, c := range clockLayouts {
				if t, err := time.Parse(d+sep+c, s); err == nil {
					return t, true
				}
			}
		}
	}
	return time.Time{}, false
}

// explain says why a text is no date, as far as that can be said in the server's words.
func explain(text string) error {
	if isLetter(text[0]) && text != "now" && text != "today" && text != "tomorrow" && text != "yesterday" {
		return unreadable("Error parsing date string '%s'; 0: passing a time zone identifier as part of the string is not allowed '%c'", text, text[0])
	}
	for _, d := range dateLayouts[:4] {
		if _, err := time.Parse(d, text); err != nil && strings.Contains(err.Error(), "day out of range") {
			return unreadable("Error parsing date string '%s'; %d: The parsed date was invalid '\x00'", text, len(text)+1)
		}
	}
	if strings.Contains(text, ":") && strings.Contains(text, " ") {
		if i := strings.LastIndexByte(text, ' '); isLetter(text[min(i+1, len(text)-1)]) {
			return unreadable("Error parsing date string '%s'; %d: passing a time zone identifier as part of the string is not allowed '%c'", text, i+1, text[i+1])
		}
	}
	if len(text) == 1 || text[0] == ' ' {
		return unreadable("Error parsing date string '%s'; 0: Unexpected character '%c'", text, strings.TrimLeft(text+"?", " ")[0])
	}
	return unreadable("an incomplete date/time string has been found, with elements missing: \"%s\"", text)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// formatReader reads a date by a pattern.
type formatReader struct {
	text, rest                     string
	year, month, day               int
	hour, minute, second, milli    int
	isoYear, isoWeek, isoDay, yday int
	off                            int
	zoned, iso, months             bool
}

// ParseDateFormat reads a date by a pattern of the letters of FormatDate; months are the names of months.
func ParseDateFormat(text, format string, loc *time.Location, months bool) (int64, error) {
	r := &formatReader{months: months, text: text, rest: text, month: 1, day: 1, year: 1970, isoWeek: 1, isoDay: 1}
	for i := 0; i < len(format); i++ {
		if format[i] == '%' && i+1 < len(format) {
			i++
			if err := r.part(format[i]); err != nil {
				return 0, err
			}
			continue
		}
		if r.rest == "" {
			return 0, r.fault("Data missing", 0)
		}
		if r.rest[0] != format[i] {
			return 0, r.fault("The separation symbol could not be found", r.rest[0])
		}
		r.rest = r.rest[1:]
	}
	if r.rest != "" {
		return 0, r.fault("Trailing data", r.rest[0])
	}
	if r.zoned && loc != nil {
		return 0, unreadable("you cannot pass in a date/time string with GMT offset together with a timezone argument")
	}
	return r.time(loc), nil
}

func (r *formatReader) fault(what string, c byte) error {
	return unreadable("Error parsing date string '%s'; %d: %s '%c'", r.text, len(r.text)-len(r.rest), what, c)
}

func (r *formatReader) time(loc *time.Location) int64 {
	day := time.Date(r.year, time.Month(r.month), r.day, 0, 0, 0, 0, time.UTC)
	switch {
	case r.iso:
		day = isoWeekStart(r.isoYear).AddDate(0, 0, (r.isoWeek-1)*7+r.isoDay-1)
	case r.yday > 0:
		day = time.Date(r.year, 1, r.yday, 0, 0, 0, 0, time.UTC)
	}
	t := day.Add(time.Duration(r.hour)*time.Hour + time.Duration(r.minute)*time.Minute + time.Duration(r.second)*time.Second + time.Duration(r.milli)*time.Millisecond)
	switch {
	case r.zoned:
		t = t.Add(-time.Duration(r.off) * time.Second)
	case loc != nil:
		t = inZone(t, loc)
	}
	return t.UnixMilli()
}

func (r *formatReader) part(c byte) error {
	switch c {
	case 'Y':
		return r.number(4, 4, &r.year, "A four digit year could not be found")
	case 'm':
		return r.number(1, 2, &r.month, "A two digit month could not be found")
	case 'd':
		return r.number(1, 2, &r.day, "A two digit day could not be found")
	case 'H':
		return r.number(1, 2, &r.hour, "A two digit hour could not be found")
	case 'M':
		return r.number(1, 2, &r.minute, "A two digit minute could not be found")
	case 'S':
		return r.number(1, 2, &r.second, "A two digit second could not be found")
	case 'L':
		before := len(r.rest)
		err := r.number(1, 3, &r.milli, "A three digit millisecond could not be found")
		for n := before - len(r.rest); n < 3; n++ {
			r.milli *= 10
		}
		return err
	case 'G':
		r.iso = true
		return r.number(4, 4, &r.isoYear, "A four digit year could not be found")
	case 'V':
		r.iso = true
		return r.number(1, 2, &r.isoWeek, "A two digit week could not be found")
	case 'u':
		r.iso = true
		return r.number(1, 1, &r.isoDay, "A single digit day of week could not be found")
	case 'j':
		return r.number(1, 3, &r.yday, "A three digit day-of-year could not be found")
	case 'z':
		for n := len(r.rest); n > 0; n-- {
			if off, ok := parseOffset(r.rest[:n]); ok {
				r.off, r.zoned, r.rest = off, true, r.rest[n:]
				return nil
			}
		}
		return r.fault("The timezone could not be found", first(r.rest))
	case '%':
		if !strings.HasPrefix(r.rest, "%") {
			return r.fault("The separation symbol could not be found", first(r.rest))
		}
		r.rest = r.rest[1:]
		return nil
	}
	if r.months && c == 'b' {
		return r.monthName(3)
	}
	if r.months && c == 'B' {
		return r.monthName(len("September"))
	}
	return fail(18536, "Invalid format character '%%%c' in format string", c)
}

// monthName reads the English name of a month, whole or its first three letters.
func (r *formatReader) monthName(most int) error {
	for m := time.January; m <= time.December; m++ {
		name := m.String()[:min(most, len(m.String()))]
		if len(r.rest) >= len(name) && strings.EqualFold(r.rest[:len(name)], name) {
			r.month, r.rest = int(m), r.rest[len(name):]
			return nil
		}
	}
	return r.fault("A textual month could not be found", first(r.rest))
}

func first(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

func (r *formatReader) number(least, most int, into *int, missing string) error {
	n, i := 0, 0
	for i < len(r.rest) && i < most && r.rest[i] >= '0' && r.rest[i] <= '9' {
		n = n*10 + int(r.rest[i]-'0')
		i++
	}
	if i < least {
		if r.rest == "" {
			return r.fault("Data missing", 0)
		}
		at := len(r.text) - len(r.rest)
		return unreadable("Error parsing date string '%s'; %d: Unexpected data found. '%c'; %d: %s '%c'", r.text, at, r.rest[0], at, missing, r.rest[0])
	}
	*into, r.rest = n, r.rest[i:]
	return nil
}
