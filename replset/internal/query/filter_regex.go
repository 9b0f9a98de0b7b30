package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// regexTest is a regular expression: it matches inside strings and symbols, and a stored expression that is the same.
type regexTest struct {
	re    *value.Regex
	meter *Meter // of the execution that the filter is for; nil: of many
}

func (p *parser) regexTest(pattern, options string) (*regexTest, error) {
	re, err := value.CompileRegex(pattern, options)
	if err != nil {
		return nil, err
	}
	return &regexTest{re: re, meter: p.opts.Meter}, nil
}

func (r *regexTest) holds(v bson.RawValue, st *state) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		s, _ := value.Text(v)
		ok, err := r.meter.Match(r.re, s)
		if err != nil {
			return st.fail(err)
		}
		return ok
	case bson.TypeRegex:
		p, o, _ := v.RegexOK()
		return p == r.re.Pattern && o == r.re.Options
	}
	return false
}
