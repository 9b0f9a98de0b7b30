package query

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// regexTest is a regular expression: it matches inside strings and symbols, and a stored expression that is the same.
type regexTest struct {
	re *value.Regex
}

func newRegex(pattern, options string) (*regexTest, error) {
	re, err := value.CompileRegex(pattern, options)
	if err != nil {
		return nil, err
	}
	return &regexTest{re: re}, nil
}

func (r *regexTest) holds(v bson.RawValue, st *state) bool {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		s, _ := value.Text(v)
		ok, err := r.re.Match(s)
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
