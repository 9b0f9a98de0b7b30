package connstring

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// apply sets the fields from the pairs, in order: of a repeated option the last value counts.
func (u *URI) apply() {
	seen := map[string]bool{}
	for _, p := range u.pairs {
		seen[p.key] = true
	}
	set := map[string]bool{}
	for _, p := range u.pairs {
		u.applyPair(p, seen, set)
	}
}

func (u *URI) applyPair(p pair, seen, set map[string]bool) {
	key := p.key
	if canonical, ok := aliases[key]; ok {
		if key != "ssl" && !u.alias(p, canonical, seen[lower(canonical)]) {
			return
		}
		key = lower(canonical)
	}
	if key == "slaveok" || key == "slaveokay" {
		u.slaveOK(p, seen["readpreference"])
		return
	}
	row, ok := byKey[key]
	if !ok {
		var effective bool
		if p, effective = u.renamed(p, seen); !effective {
			return
		}
		if key = p.key; byKey[key] == nil {
			u.unknown(p)
			return
		}
		row = byKey[key]
	}
	if bad := row.badText(p.value); bad != "" && u.fault == nil {
		u.fault = errorf("option %s %s", p.name, bad)
	}
	if err := row.unsafe(p.value); err != nil && u.fault == nil {
		u.fault = errorf("option %s %w; to leave it out would weaken security", p.name, err)
	}
	repeatable := key == "readpreferencetags" || key == "tls"
	if set[key] && !repeatable {
		u.warn(p, row.secret, "it is given more than once; the last one counts", "")
	}
	set[key] = true
	if err := row.set(u, p); err != nil {
		u.warn(p, row.secret, err.Error(), suggestionFor(row, p.value))
	}
}

// alias says whether an option under an old name is to be applied: not if the new name is there too.
func (u *URI) alias(p pair, canonical string, replaced bool) bool {
	if replaced {
		u.warn(p, false, "it is ignored, since its new name is given too", canonical)
		return false
	}
	u.warn(p, false, "it is the old name of "+canonical, canonical+"="+p.value)
	return true
}

// slaveOK takes the option that once sent queries to slaves for what it means today.
func (u *URI) slaveOK(p pair, replaced bool) {
	const today = "readPreference=secondaryPreferred"
	on, _, err := parseBool(p.value)
	switch {
	case err != nil:
		u.warn(p, false, "it was left out of MongoDB's options, and takes true or false", today)
	case replaced:
		u.warn(p, false, "it is ignored, since readPreference is given too", today)
	case on:
		u.ReadPreference = "secondaryPreferred"
		u.warn(p, false, "it is deprecated and taken for "+today, today)
	default:
		u.warn(p, false, "it is deprecated and has no effect; reads go to the primary by default", "")
	}
}

func (u *URI) unknown(p pair) {
	w := Warning{Option: p.name, Message: "unknown option, ignored"}
	if !plain(p.name) {
		w.Option = "of an unprintable name"
	}
	now := today(p.key)
	if now == noLists && u.fault == nil {
		u.fault = errorf("option %s: %s; to leave it out would weaken security", w.Option, now.message)
	}
	if now.message != "" {
		w.Message += ": " + now.message
	}
	w.Suggestion = now.suggestion
	u.Warnings = append(u.Warnings, w)
}

func (u *URI) warn(p pair, secret bool, message, suggestion string) {
	w := Warning{Option: p.name, Value: p.value, Message: message, Suggestion: suggestion}
	if secret {
		w.Value = ""
	}
	u.Warnings = append(u.Warnings, w)
}

// unsafe says why a value of an option that guards the client cannot be used.
func (row *option) unsafe(value string) error {
	if !row.guards {
		return nil
	}
	if value == "" {
		return fmt.Errorf("has an empty value")
	}
	if _, isBool := row.field(&Options{}).(**bool); isBool {
		if _, _, err := parseBool(value); err != nil {
			return fmt.Errorf("takes true or false")
		}
	}
	return nil
}

// set parses the value into the row's field. An error leaves the field as it was.
func (row *option) set(u *URI, p pair) error {
	if p.value == "" && !row.emptyOK {
		return fmt.Errorf("its value is empty, ignored")
	}
	switch field := row.field(&u.Options).(type) {
	case **int:
		n, err := row.integer(p.value)
		if err == nil {
			*field = &n
		}
		return err
	case **bool:
		b, old, err := parseBool(p.value)
		if err != nil {
			return err
		}
		*field = &b
		if old {
			return fmt.Errorf("the value is deprecated; it is taken for %t", b)
		}
		return nil
	case *string:
		return row.text(field, p.value)
	case *[]string:
		return row.list(field, p.value)
	case *[]TagSet:
		return addTags(field, p.value)
	case *map[string]string:
		return addProperties(field, p.value)
	case *any:
		return row.writeConcern(field, p.value)
	}
	return nil
}

func (row *option) integer(value string) (int, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < int64(row.min) || n > int64(row.max) {
		return 0, fmt.Errorf("ignored, it takes %s", row.span())
	}
	return int(n), nil
}

func (row *option) span() string {
	if row.max == maxInt32 {
		return fmt.Sprintf("an integer of at least %d", row.min)
	}
	return fmt.Sprintf("an integer from %d to %d", row.min, row.max)
}

// parseBool takes true and false, and the spellings of old.
func parseBool(value string) (b, old bool, err error) {
	switch value {
	case "true":
		return true, false, nil
	case "false":
		return false, false, nil
	case "1", "yes", "y", "t":
		return true, true, nil
	case "0", "-1", "no", "n", "f":
		return false, true, nil
	}
	return false, false, fmt.Errorf("ignored, it takes true or false")
}

func (row *option) text(field *string, value string) error {
	if row.words != nil && !slices.Contains(row.words, value) {
		for _, w := range row.words {
			if strings.EqualFold(w, value) {
				*field = w
				return fmt.Errorf("taken for %s", w)
			}
		}
		return fmt.Errorf("ignored, it takes one of %s", strings.Join(row.words, ", "))
	}
	if row.name == "appName" && len(value) > 128 {
		return fmt.Errorf("ignored, it may have 128 bytes and has %d", len(value))
	}
	*field = value
	if row.name == "replicaSet" && (value == "true" || value == "false") {
		return fmt.Errorf("it is the name of the replica set, not a switch; the set would have to be called %q", value)
	}
	return nil
}

func (row *option) list(field *[]string, value string) error {
	var out, unknown []string
	for name := range strings.SplitSeq(value, ",") {
		switch {
		case !slices.Contains(row.words, name):
			unknown = append(unknown, strconv.Quote(name))
		case !slices.Contains(out, name):
			out = append(out, name)
		}
	}
	*field = out
	if unknown != nil {
		return fmt.Errorf("ignored: %s; there are %s", strings.Join(unknown, ", "), strings.Join(row.words, ", "))
	}
	return nil
}

func addTags(field *[]TagSet, value string) error {
	tags := TagSet{}
	if value != "" {
		for part := range strings.SplitSeq(value, ",") {
			name, v, found := strings.Cut(part, ":")
			if !found || name == "" {
				return fmt.Errorf("ignored, a tag set is written name:value,name:value")
			}
			tags = append(tags, [2]string{name, v})
		}
	}
	*field = append(*field, tags)
	return nil
}

// addProperties cuts at commas, and each part at its first colon, so that a value may be a URL without a comma. Names are
// put in upper case, as the authentication specification writes them.
func addProperties(field *map[string]string, value string) error {
	out := map[string]string{}
	for part := range strings.SplitSeq(value, ",") {
		name, v, found := strings.Cut(part, ":")
		if !found || name == "" {
			return fmt.Errorf("ignored, properties are written NAME:value,NAME:value, and no value may hold a comma")
		}
		out[strings.ToUpper(name)] = v
	}
	*field = out
	return nil
}

// writeConcern takes a number of members or the name of a tag rule.
func (row *option) writeConcern(field *any, value string) error {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		if n < 0 || n > maxInt32 {
			return fmt.Errorf("ignored, it takes a number of members, majority, or the name of a write concern of the set")
		}
		*field = int(n)
		return nil
	}
	*field = value
	return nil
}
