package query

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// A pattern must leave nothing behind that a test on fake time would have to wait for, or could not end.
func TestRegexCanBeUsedOnFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pattern := range []string{"^a.*b$", "a{2,3}", "(a|x)+b"} {
			f, err := ParseFilter(js(t, `{"s":{"$regex":"`+pattern+`"}}`), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !f.Match(js(t, `{"s":"aab"}`)) {
				t.Errorf("%s does not match", pattern)
			}
		}
	})
}

func TestRegexThatBacktracksForEverIsAnswered(t *testing.T) {
	text := strings.Repeat("a", 40)
	for pattern, ends := range map[string]bool{"^(a+)+$x": false, "^(a|a)*b": false, "(.*)*c": false} {
		begun := time.Now()
		f, err := ParseFilter(value.DocOf(value.Field{Key: "s", Value: docValueOf("$regex", bson.StringValue(pattern))}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if f.Match(value.DocOf(value.Field{Key: "s", Value: bson.StringValue(text)})) != ends {
			t.Errorf("%s matches", pattern)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("%s took %v", pattern, took)
		}
	}
}

func TestBothRegexEnginesAgree(t *testing.T) {
	// (?=) needs the engine that backtracks and changes nothing.
	texts := []string{"", "a", "ab", "a\n", "ab\n", "\na", "a\nb", "xaab", "AB", "a\n\n", "foo bar", "é", "1_z", "a]b"}
	patterns := []string{"a", "^a", "a$", "^a$", "a.b", "a\\n", "^$", "$", "a$|\\n", "(a|b)+$", "a*?b", "[^a]", `\\w+`, `\\bbar`, `\\s`, `\\d`, "(?i)AB", "(?m)^b$", "(?s)a.b", "a{1,2}b", "[a\\]]+b", "é|x"}
	for i, p := range patterns {
		patterns[i] = strings.ReplaceAll(p, `\\`, `\`)
	}
	for _, p := range patterns {
		for _, options := range []string{"", "i", "m", "s"} {
			fast, err := value.CompileRegex(p, options)
			if err != nil {
				t.Fatal(err)
			}
			slow, err := value.CompileRegex("(?=)"+p, options)
			if strings.Contains(p, "|") {
				slow, err = value.CompileRegex("(?=)(?:"+p+")", options)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range texts {
				a, err1 := fast.Match(s)
				b, err2 := slow.Match(s)
				if a != b || err1 != nil || err2 != nil {
					t.Errorf("/%s/%s on %q: %v and %v", p, options, s, a, b)
				}
				for from := range len(s) + 1 {
					x, _ := fast.Find(s, from)
					y, _ := slow.Find(s, from)
					if len(x) == 0 != (len(y) == 0) || len(x) > 0 && x[0] != y[0] {
						t.Errorf("/%s/%s on %q from %d: %v and %v", p, options, s, from, x, y)
					}
				}
			}
		}
	}
}
