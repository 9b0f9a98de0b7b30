package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/mongoerr"
)

// authTest is a case of auth/legacy/connection-string.json.
type authTest struct {
	Description string          `json:"description"`
	URI         string          `json:"uri"`
	Valid       bool            `json:"valid"`
	Credential  *authCredential `json:"credential"`
}

type authCredential struct {
	Username   *string           `json:"username"`
	Password   *string           `json:"password"`
	Source     *string           `json:"source"`
	Mechanism  *string           `json:"mechanism"`
	Properties map[string]string `json:"mechanism_properties"`
}

func loadAuth(dir string) ([]Case, error) {
	return load(dir, "legacy", func(name string, file *struct{ Tests []authTest }) (cases []Case) {
		for _, test := range file.Tests {
			cases = append(cases, Case{Name: name + "/" + test.Description, Run: test.run})
		}
		return cases
	})
}

func flipAuth(name string, file map[string]any) []string {
	if !strings.HasPrefix(name, "legacy/") {
		return nil
	}
	var cases []string
	for _, test := range file["tests"].([]any) {
		test := test.(map[string]any)
		test["valid"] = test["valid"] != true
		cases = append(cases, name+"/"+test["description"].(string))
	}
	return cases
}

// run parses the string and makes a client of it: either may refuse. Kerberos is read but not spoken: a client with a
// valid credential of GSSAPI is refused for that reason, which is not what a case of an invalid one means.
func (c authTest) run() error {
	refusal := refusedByClient(c.URI)
	kerberos := refusal != nil && strings.Contains(refusal.Error(), "GSSAPI (Kerberos) is not spoken")
	switch {
	case !c.Valid && kerberos:
		return fmt.Errorf("%s: refused for Kerberos alone", c.URI)
	case !c.Valid && refusal != nil && !mongoerr.IsConfig(refusal):
		return fmt.Errorf("%s: refused, but not as a mistake of the configuration: %w", c.URI, refusal)
	case !c.Valid:
		return expectError(true, refusal)
	}
	u, err := connstring.Parse(c.URI)
	if err != nil {
		return fmt.Errorf("%s: %w", c.URI, err)
	}
	if refusal != nil && !kerberos || kerberos != (u.AuthMechanism == "GSSAPI") {
		return fmt.Errorf("%s: %v", c.URI, refusal)
	}
	return c.Credential.check(u.Credential())
}

func refusedByClient(uri string) error {
	client, err := sextant.Connect(context.Background(), uri)
	if err != nil {
		return err
	}
	return client.Close(context.Background())
}

func (want *authCredential) check(got *connstring.Credential) error {
	if want == nil || got == nil {
		if (want == nil) != (got == nil) {
			return fmt.Errorf("credential %v, wanted %v", got, want)
		}
		return nil
	}
	var errs []error
	same := func(what, got string, want *string) {
		if want == nil {
			want = new(string)
		}
		if got != *want {
			errs = append(errs, fmt.Errorf("%s %q, wanted %q", what, got, *want))
		}
	}
	same("user", got.Username, want.Username)
	same("password", got.Password, want.Password)
	same("source", got.AuthSource(), want.Source)
	same("mechanism", got.Mechanism, want.Mechanism)
	for name, value := range want.Properties {
		if got.Properties[name] != value {
			errs = append(errs, fmt.Errorf("property %s is %q, wanted %q", name, got.Properties[name], value))
		}
	}
	if want.Properties == nil && len(got.Properties) > 0 {
		errs = append(errs, fmt.Errorf("properties %v, wanted none", got.Properties))
	}
	if got.HasUser != (want.Username != nil) || got.HasPassword != (want.Password != nil) {
		errs = append(errs, fmt.Errorf("there is a user: %v, a password: %v", got.HasUser, got.HasPassword))
	}
	return errors.Join(errs...)
}
