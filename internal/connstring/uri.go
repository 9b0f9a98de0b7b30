// Package connstring reads MongoDB connection strings: the grammar of the connection string specification and the
// options of the URI options specification. It resolves no name and opens nothing.
//
// What cannot be a connection string is an error. An option that is unknown, or whose value makes no sense, is left
// out and kept as a Warning with a suggestion, because one string is shared by programs in many languages; who wants to
// be strict turns warnings into errors. Where to leave it out would weaken security, as with a tls that is neither true nor
// false, it is an error in any case. No error, warning or printed string holds the password.
package connstring

import (
	"fmt"
	"strings"

	"github.com/sextantdb/sextant/mongoerr"
)

// The schemes.
const (
	Scheme    = "mongodb"
	SchemeSRV = "mongodb+srv"
)

// URI is a connection string taken apart. Options that were not given, or were left out with a warning, have the zero
// value of their field; defaults are the reader's affair.
type URI struct {
	Scheme string
	// Hosts are the seeds in order: "host:port" with the port filled in, "[::1]:port", or the path of a Unix socket,
	// which ends in ".sock". Empty with SchemeSRV.
	Hosts []string
	// SRVHost is the name whose SRV record lists the seeds, in lower case; only with SchemeSRV.
	SRVHost string

	Username    string
	Password    string
	UserSet     bool   // there is a user part
	PasswordSet bool   // there is a password, perhaps an empty one
	Database    string // the path: default of authSource, and of the application

	Options
	Warnings []Warning

	fault error  // of an option that must not be left out
	pairs []pair // as given, for printing and for rules on presence
}

// Warning is an option that was left out, or taken although it should be written otherwise.
type Warning struct {
	Option     string // as written
	Value      string // as written; empty where it may be a secret
	Message    string // what is the matter
	Suggestion string // what to write instead; may be empty
}

// String is the warning in one line.
func (w Warning) String() string {
	s := "option " + w.Option
	if w.Value != "" {
		s += "=" + mongoerr.OneLine(w.Value)
	}
	s += ": " + w.Message
	if w.Suggestion != "" {
		s += "; did you mean " + mongoerr.OneLine(w.Suggestion) + "?"
	}
	return s
}

// pair is one key=value of the options, decoded.
type pair struct {
	name  string // as written
	key   string // in lower case
	value string
}

// Parse reads a connection string.
func Parse(text string) (*URI, error) {
	u := &URI{}
	rest, err := u.parseScheme(text)
	if err != nil {
		return nil, err
	}
	authority, path, query := split(rest)
	if err := u.parseAuthority(authority, strings.Contains(path+query, "@")); err != nil {
		return nil, err
	}
	if err := u.parseDatabase(path); err != nil {
		return nil, err
	}
	if u.pairs, err = parsePairs(query); err != nil {
		return nil, err
	}
	if u.apply(); u.fault != nil {
		return nil, u.fault
	}
	if err := u.check(); err != nil {
		return nil, err
	}
	return u, nil
}

func (u *URI) parseScheme(text string) (rest string, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	switch {
	case text == "":
		return "", errorf("the string is empty; it begins with mongodb:// or mongodb+srv://")
	case !found || scheme != Scheme && scheme != SchemeSRV:
		return "", errorf("it must begin with mongodb:// or mongodb+srv://")
	}
	u.Scheme = scheme
	return rest, nil
}

// split cuts what follows the scheme at the first "/" and the first "?". The slash before the options may be missing.
func split(rest string) (authority, path, query string) {
	rest, query, _ = strings.Cut(rest, "?")
	authority, path, _ = strings.Cut(rest, "/")
	return authority, path, query
}

// parseAuthority reads user, password and hosts. strayAt says that an "@" follows later, so that the user part may have
// been cut short by a character that should have been escaped: then nothing of it must be quoted.
func (u *URI) parseAuthority(authority string, strayAt bool) error {
	hosts := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		hosts = authority[at+1:]
		if err := u.parseUser(authority[:at]); err != nil {
			return err
		}
	} else if strayAt {
		// "mongodb://joe:pa/ss@host": what looks like a host is a user. A good host keeps its right to an "@" in the
		// options (replicaSet=my@set).
		if err := u.parseHosts(hosts); err != nil {
			return errorf("the host part cannot be read, and an @ follows later: in a user name or password write %%2F for / and %%3F for ?")
		}
		return nil
	}
	return u.parseHosts(hosts)
}

func (u *URI) parseUser(text string) error {
	user, password, hasPassword := strings.Cut(text, ":")
	if strings.Contains(text, "@") {
		return errorf("the user name or password holds an unescaped @; write %%40")
	}
	if strings.Contains(password, ":") {
		return errorf("the password holds an unescaped colon; write %%3A")
	}
	var err error
	if u.Username, err = decode(user, "the user name"); err != nil {
		return err
	}
	if u.Password, err = decode(password, "the password"); err != nil {
		return err
	}
	if u.Username == "" {
		return errorf("the user name before the @ is empty")
	}
	u.UserSet, u.PasswordSet = true, hasPassword
	return nil
}

func (u *URI) parseDatabase(path string) error {
	if strings.Contains(path, "@") {
		return errorf("an unescaped @ follows the first /: in a user name or password write %%2F for /, in a database name %%40 for @")
	}
	name, err := decode(path, "the database")
	if err != nil {
		return err
	}
	// The name is not quoted: it may be the rest of a password with an unescaped slash.
	if at := strings.IndexAny(name, "/\\ \"$"); at >= 0 {
		return errorf("the database name must not hold %q (at position %d); a / in a user name or password is written %%2F", name[at], at+1)
	}
	if strings.ContainsRune(name, 0) {
		return errorf("the database name must not hold a zero byte")
	}
	u.Database = name
	return nil
}

// parsePairs cuts the options at "&", and at ";" for strings of old.
func parsePairs(query string) ([]pair, error) {
	var out []pair
	for i, text := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, errorf("option %d is not of the form name=value", i+1)
		}
		name, err := decode(name, fmt.Sprintf("the name of option %d", i+1))
		if err != nil {
			return nil, err
		}
		value, err = decode(value, "the value of "+optionLabel(name, i))
		if err != nil {
			return nil, err
		}
		out = append(out, pair{name: name, key: lower(name), value: value})
	}
	return out, nil
}

// optionLabel names an option in an error by its own name if that is a plain word, else by its number.
func optionLabel(name string, i int) string {
	if plain(name) {
		return "option " + name
	}
	return fmt.Sprintf("option %d", i+1)
}

// plain says whether a name can be printed: an option's name can, the rest of a password may not look like one.
func plain(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// lower folds A to Z alone, as the specification wants.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

const prefix = "connection string: "

func errorf(format string, args ...any) error { return fmt.Errorf(prefix+format, args...) }
