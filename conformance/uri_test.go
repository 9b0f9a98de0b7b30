package conformance

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/sextantdb/sextant/internal/connstring"
)

// uriTest is a case of connection-string or uri-options.
type uriTest struct {
	Description string         `json:"description"`
	URI         string         `json:"uri"`
	Valid       bool           `json:"valid"`
	Warning     *bool          `json:"warning"`
	Hosts       []uriHost      `json:"hosts"`
	Auth        *uriAuth       `json:"auth"`
	Options     map[string]any `json:"options"`
}

type uriHost struct {
	Type string `json:"type"`
	Host string `json:"host"`
	Port *int   `json:"port"`
}

type uriAuth struct {
	Username *string `json:"username"`
	Password *string `json:"password"`
	DB       *string `json:"db"`
}

func loadURIs(dir string) ([]Case, error) {
	return load(dir, "", func(name string, file *struct{ Tests []uriTest }) (cases []Case) {
		for _, test := range file.Tests {
			cases = append(cases, Case{Name: name + "/" + test.Description, Run: test.run})
		}
		return cases
	})
}

// flipURIs makes every case of a file expect the opposite validity, and so an error where there is none, or none where
// there is one.
func flipURIs(name string, file map[string]any) []string {
	var cases []string
	for _, test := range file["tests"].([]any) {
		test := test.(map[string]any)
		test["valid"] = test["valid"] != true
		cases = append(cases, filepath.Base(name)+"/"+test["description"].(string))
	}
	return cases
}

func (c uriTest) run() error {
	u, err := connstring.Parse(c.URI)
	if !c.Valid {
		return expectError(true, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.URI, err)
	}
	var errs []error
	if c.Warning != nil && *c.Warning != (len(u.Warnings) > 0) {
		errs = append(errs, fmt.Errorf("warnings %v, wanted: %v", u.Warnings, *c.Warning))
	}
	errs = append(errs, c.checkHosts(u), c.Auth.check(u))
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		if got, want := u.Value(name), expectedValue(c.Options[name]); !reflect.DeepEqual(got, want) {
			errs = append(errs, fmt.Errorf("option %s is %#v, wanted %#v", name, got, want))
		}
	}
	return errors.Join(errs...)
}

func (c uriTest) checkHosts(u *connstring.URI) error {
	if c.Hosts == nil {
		return nil
	}
	var want []string
	for _, h := range c.Hosts {
		port := 27017
		if h.Port != nil {
			port = *h.Port
		}
		switch h.Type {
		case "unix":
			want = append(want, h.Host)
		case "ip_literal":
			want = append(want, fmt.Sprintf("[%s]:%d", h.Host, port))
		default:
			want = append(want, fmt.Sprintf("%s:%d", h.Host, port))
		}
	}
	if !slices.Equal(u.Hosts, want) {
		return fmt.Errorf("hosts %q, wanted %q", u.Hosts, want)
	}
	return nil
}

func (a *uriAuth) check(u *connstring.URI) error {
	if a == nil {
		return nil
	}
	or := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	if u.Username != or(a.Username) || u.UserSet != (a.Username != nil) || u.Database != or(a.DB) {
		return fmt.Errorf("user %q and database %q, wanted %q and %q", u.Username, u.Database, or(a.Username), or(a.DB))
	}
	// One case leaves its password out of what it expects.
	if a.Password != nil && (u.Password != *a.Password || !u.PasswordSet) {
		return fmt.Errorf("password %q, wanted %q", u.Password, *a.Password)
	}
	return nil
}

// expectedValue is a JSON value as the parser would give it.
func expectedValue(v any) any {
	switch v := v.(type) {
	case float64:
		return int(v)
	case map[string]any:
		out := map[string]string{}
		for name, value := range v {
			out[name] = value.(string)
		}
		return out
	case []any:
		if len(v) > 0 {
			if _, tags := v[0].(map[string]any); tags {
				return expectedTags(v)
			}
		}
		var out []string
		for _, item := range v {
			out = append(out, item.(string))
		}
		return out
	}
	return v
}

func expectedTags(v []any) []connstring.TagSet {
	var out []connstring.TagSet
	for _, item := range v {
		set := connstring.TagSet{}
		tags := item.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(tags)) { // the cases write them in order
			set = append(set, [2]string{name, tags[name].(string)})
		}
		out = append(out, set)
	}
	return out
}
