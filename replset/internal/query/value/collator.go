package value

import (
	"bytes"
	"strings"
	"unicode"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// Collator orders strings as a language does; the nil Collator orders them by bytes. It is safe for concurrent use.
//
// The orders are those of CLDR as golang.org/x/text has them, not those of the ICU that a server carries: they agree on
// letters, accents and case.
type Collator struct {
	c          *collate.Collator // never used itself: its buffers make it unsafe, so each comparison works on a copy
	base       *collate.Collator // the same without case, where capitals come first; nil otherwise
	identical  bool              // strength 5: the bytes decide between what is otherwise equal
	variable   func(rune) bool   // characters that do not count (alternate: shifted); nil for none
	quaternary bool              // strength 4 or 5: they do count between what is otherwise equal
}

// collation is a collation document with its defaults.
type collation struct {
	locale, caseFirst, alternate, maxVariable    string
	strength                                     int64
	caseLevel, numeric, normalization, backwards bool
	doc                                          bson.Raw
}

// ParseCollation reads a collation document; none, and the locale "simple", give nil.
func ParseCollation(doc bson.Raw) (*Collator, error) {
	if doc.IsEmpty() {
		return nil, nil
	}
	spec := collation{caseFirst: "off", alternate: "non-ignorable", maxVariable: "punct", strength: 3, doc: doc}
	if err := spec.read(); err != nil {
		return nil, err
	}
	if spec.locale == "simple" {
		if doc.Len() > 1 {
			return nil, mongoerr.Server(mongoerr.CodeFailedToParse, "If locale=simple, no other fields should be present in: %s", PrintDoc(doc))
		}
		return nil, nil
	}
	tag, err := spec.tag()
	if err != nil {
		return nil, err
	}
	if spec.caseFirst != "off" && !spec.caseLevel && spec.strength <= 2 {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: %s", PrintDoc(spec.full()))
	}
	c := &Collator{c: collate.New(tag), identical: spec.strength == 5, quaternary: spec.strength > 3}
	if spec.caseFirst == "upper" {
		spec.strength = 2
		if tag, err = spec.tag(); err != nil {
			return nil, err
		}
		c.base = collate.New(tag)
	}
	if spec.alternate == "shifted" {
		c.variable = func(r rune) bool { return unicode.IsSpace(r) || spec.maxVariable == "punct" && unicode.IsPunct(r) }
	}
	return c, nil
}

// FullCollation is a collation document with every default, as a server stores and shows it; nil for what compares by
// bytes.
func FullCollation(doc bson.Raw) (bson.Raw, error) {
	c, err := ParseCollation(doc)
	if err != nil || c == nil {
		return nil, err
	}
	spec := collation{caseFirst: "off", alternate: "non-ignorable", maxVariable: "punct", strength: 3, doc: doc}
	if err := spec.read(); err != nil {
		return nil, err
	}
	return spec.full(), nil
}

func (s *collation) read() error {
	if Get(s.doc, "locale").Type == 0 {
		return mongoerr.Server(mongoerr.CodeNoSuchKey, "Missing expected field \"locale\"")
	}
	words := map[string]struct {
		into    *string
		allowed []string
		text    string
	}{
		"caseFirst":   {&s.caseFirst, []string{"upper", "lower", "off"}, "'upper', 'lower', or 'off'"},
		"alternate":   {&s.alternate, []string{"non-ignorable", "shifted"}, "'non-ignorable' or 'shifted'"},
		"maxVariable": {&s.maxVariable, []string{"punct", "space"}, "'punct' or 'space'"},
	}
	flags := map[string]*bool{"caseLevel": &s.caseLevel, "numericOrdering": &s.numeric, "normalization": &s.normalization, "backwards": &s.backwards}
	for k, v := range s.doc.All() {
		text, isText := Text(v)
		if w, ok := words[k]; ok {
			if !isText || !contains(w.allowed, text) {
				return mongoerr.Server(mongoerr.CodeFailedToParse, "Field '%s' must be %s. Got: %s", k, w.text, text)
			}
			*w.into = text
			continue
		}
		if f := flags[k]; f != nil {
			if v.Type != bson.TypeBoolean {
				return mongoerr.Server(mongoerr.CodeTypeMismatch, "Expected field \"%s\" to have a boolean value, but found %s", k, TypeName(v.Type))
			}
			*f = Truthy(v)
			continue
		}
		if err := s.other(k, v, text, isText); err != nil {
			return err
		}
	}
	return nil
}

func (s *collation) other(k string, v bson.RawValue, text string, isText bool) error {
	switch k {
	case "locale":
		if !isText {
			return mongoerr.Server(mongoerr.CodeTypeMismatch, "\"locale\" had the wrong type. Expected string, found %s", TypeName(v.Type))
		}
		s.locale = text
	case "strength":
		if !IsNumber(v) {
			return mongoerr.Server(mongoerr.CodeTypeMismatch, "Expected field \"strength\" to have numeric type, but found %s", TypeName(v.Type))
		}
		n, ok := Integral(v)
		if !ok {
			return mongoerr.Server(mongoerr.CodeBadValue, "Expected field \"strength\" to have a value exactly representable as a 64-bit integer, but found %s", PrintElement(k, v))
		}
		if n < 1 || n > 5 {
			return mongoerr.Server(mongoerr.CodeFailedToParse, "Field 'strength' must be an integer 1 through 5. Got: %d", n)
		}
		s.strength = n
	case "version":
	default:
		return mongoerr.Server(mongoerr.CodeFailedToParse, "Collation spec contains unknown field. Unknown field: %s", PrintElement(k, v))
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// tag is the language tag with the settings as its extension.
func (s *collation) tag() (language.Tag, error) {
	if s.locale == "" {
		return language.Und, mongoerr.Server(mongoerr.CodeBadValue, "Field 'locale' cannot be the empty string in: %s", PrintDoc(s.doc))
	}
	name, variant, _ := strings.Cut(s.locale, "@collation=")
	base, err := language.Parse(strings.ReplaceAll(name, "_", "-"))
	if err != nil || base == language.Und {
		return language.Und, mongoerr.Server(mongoerr.CodeBadValue, "Field 'locale' is invalid in: %s", PrintDoc(s.doc))
	}
	if canonical := strings.ReplaceAll(base.String(), "-", "_"); canonical != name {
		return language.Und, mongoerr.Server(mongoerr.CodeBadValue, "Field 'locale' is invalid in: %s. Did you mean '%s'?", PrintDoc(s.doc), canonical)
	}
	ext := "-u"
	set := func(key, val string, on bool) {
		if on {
			ext += "-" + key + "-" + val
		}
	}
	set("co", map[string]string{"traditional": "trad", "phonebook": "phonebk"}[variant], variant == "traditional" || variant == "phonebook")
	set("kb", "true", s.backwards)
	set("kc", "true", s.caseLevel)
	set("kn", "true", s.numeric)
	set("ks", []string{"level1", "level2", "level3", "level4", "level4"}[s.strength-1], true)
	return language.Parse(base.String() + ext)
}

// full is the document with every default, as error messages show it.
func (s *collation) full() bson.Raw {
	b := func(k string, v bool) Field { return Field{k, bson.BooleanValue(v)} }
	t := func(k, v string) Field { return Field{k, bson.StringValue(v)} }
	return DocOf(t("locale", s.locale), b("caseLevel", s.caseLevel), t("caseFirst", s.caseFirst), Field{"strength", bson.Int32Value(int32(s.strength))},
		b("numericOrdering", s.numeric), t("alternate", s.alternate), t("maxVariable", s.maxVariable), b("normalization", s.normalization),
		b("backwards", s.backwards), t("version", "57.1"))
}

func (c *Collator) compare(a, b []byte) int {
	if c == nil {
		return bytes.Compare(a, b)
	}
	n := c.order(c.strip(a), c.strip(b))
	if n == 0 && c.variable != nil && c.quaternary {
		n = c.order(a, b)
	}
	if n == 0 && c.identical {
		n = bytes.Compare(a, b)
	}
	return n
}

func (c *Collator) order(a, b []byte) int {
	own := *c.c
	n := own.Compare(a, b)
	if n == 0 || c.base == nil {
		return n
	}
	base := *c.base
	if m := base.Compare(a, b); m != 0 {
		return m
	}
	return -n // they differ in case alone
}

// strip takes out the characters that do not count.
func (c *Collator) strip(s []byte) []byte {
	if c.variable == nil {
		return s
	}
	return bytes.Map(func(r rune) rune {
		if c.variable(r) {
			return -1
		}
		return r
	}, s)
}

// Key gives bytes that are equal exactly for strings that compare equal.
func (c *Collator) Key(s string) []byte { return c.key([]byte(s)) }

// key gives bytes that are equal exactly for strings that compare equal.
func (c *Collator) key(s []byte) []byte {
	if c == nil || c.identical {
		return s
	}
	own := *c.c
	var buf collate.Buffer
	out := bytes.Clone(own.Key(&buf, c.strip(s)))
	if c.variable != nil && c.quaternary {
		out = append(append(out, 0), own.Key(&buf, s)...)
	}
	return out
}
