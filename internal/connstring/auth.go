package connstring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Credential is what a connection string, or a configuration made otherwise, says of who logs in and how.
type Credential struct {
	Username    string
	Password    string
	HasUser     bool // there is a user part
	HasPassword bool
	Mechanism   string            // authMechanism
	Source      string            // authSource; empty: what the mechanism wants
	Database    string            // the default of some sources
	Properties  map[string]string // authMechanismProperties, names in upper case
}

const external = "$external"

// need says whether a mechanism takes something.
type need int

const (
	may need = iota
	must
	mustNot
)

// mechanism is what the authentication specification says of a mechanism's credential.
type mechanism struct {
	name           string
	user, password need
	external       bool     // its users are in $external
	properties     []string // that it knows
}

var mechanisms = []mechanism{
	{name: "SCRAM-SHA-256", user: must, password: must},
	{name: "SCRAM-SHA-1", user: must, password: must},
	{name: "MONGODB-X509", password: mustNot, external: true},
	{name: "MONGODB-AWS", external: true, properties: []string{"AWS_SESSION_TOKEN"}},
	{name: "MONGODB-OIDC", password: mustNot, external: true, properties: []string{"ENVIRONMENT", "TOKEN_RESOURCE"}},
	{name: "GSSAPI", user: must, external: true, properties: []string{"SERVICE_NAME", "CANONICALIZE_HOST_NAME", "SERVICE_REALM", "SERVICE_HOST"}},
	{name: "PLAIN", user: must, password: must},
	{name: "MONGODB-CR", user: must, password: must},
}

func mechanismNamed(name string) *mechanism {
	for i := range mechanisms {
		if mechanisms[i].name == name {
			return &mechanisms[i]
		}
	}
	return nil
}

func mechanismNames() string {
	var names []string
	for _, m := range mechanisms {
		names = append(names, m.name)
	}
	return strings.Join(names, ", ")
}

// Credential is nil where nobody is to be authenticated: a database in the path or an authSource alone ask for nothing.
func (u *URI) Credential() *Credential {
	if !u.UserSet && u.AuthMechanism == "" {
		return nil
	}
	c := &Credential{Username: u.Username, Password: u.Password, HasUser: u.UserSet, HasPassword: u.PasswordSet,
		Mechanism: u.AuthMechanism, Source: u.AuthSource, Database: u.Database, Properties: u.AuthMechanismProperties}
	if c.Mechanism == "GSSAPI" && c.Properties["SERVICE_NAME"] == "" {
		c.Properties = maps.Clone(c.Properties)
		if c.Properties == nil {
			c.Properties = map[string]string{}
		}
		c.Properties["SERVICE_NAME"] = "mongodb"
	}
	return c
}

// AuthSource is the database that holds the user: authSource, else what the mechanism wants, else the database of the
// path, else admin (authentication specification, "Connection string options").
func (c *Credential) AuthSource() string {
	m := mechanismNamed(c.Mechanism)
	switch {
	case c.Source != "":
		return c.Source
	case m != nil && m.external:
		return external
	case c.Database != "":
		return c.Database
	case c.Mechanism == "PLAIN":
		return external
	}
	return "admin"
}

// Check holds what can be known of a credential before its mechanism is spoken. No error shows a value but that of
// ENVIRONMENT.
func (c *Credential) Check() error {
	if c.Mechanism == "" {
		return nil
	}
	m := mechanismNamed(c.Mechanism)
	if m == nil {
		return fmt.Errorf("there is no authMechanism %q; there are %s", c.Mechanism, mechanismNames())
	}
	switch {
	case m.user == must && !c.HasUser:
		return fmt.Errorf("authMechanism=%s needs a user name", m.name)
	case m.password == must && !c.HasPassword:
		return fmt.Errorf("authMechanism=%s needs a password", m.name)
	case m.password == mustNot && c.HasPassword:
		return fmt.Errorf("authMechanism=%s takes no password", m.name)
	case m.external && c.Source != "" && c.Source != external:
		return fmt.Errorf("authMechanism=%s takes no authSource but %s", m.name, external)
	}
	if err := m.checkProperties(c.Properties); err != nil {
		return err
	}
	switch m.name {
	case "GSSAPI":
		return c.checkGSSAPI()
	case "MONGODB-AWS":
		return c.checkAWS()
	case "MONGODB-OIDC":
		return c.checkOIDC()
	}
	return nil
}

func (m *mechanism) checkProperties(properties map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		switch {
		case slices.Contains(m.properties, name):
			if bad := BadText(properties[name]); bad != "" {
				return fmt.Errorf("authMechanismProperties: %s %s", name, bad)
			}
		case m.name == "MONGODB-OIDC" && name == "ALLOWED_HOSTS":
			return fmt.Errorf("authMechanismProperties: ALLOWED_HOSTS must be set in the program, not in a connection string")
		case len(m.properties) == 0:
			return fmt.Errorf("authMechanism=%s takes no authMechanismProperties", m.name)
		default:
			return fmt.Errorf("authMechanism=%s knows no such property in authMechanismProperties; there are %s", m.name, strings.Join(m.properties, ", "))
		}
	}
	return nil
}

func (c *Credential) checkGSSAPI() error {
	switch c.Properties["CANONICALIZE_HOST_NAME"] {
	case "", "none", "forward", "forwardAndReverse", "true", "false":
		return nil
	}
	return fmt.Errorf("authMechanismProperties: CANONICALIZE_HOST_NAME is none, forward or forwardAndReverse")
}

func (c *Credential) checkAWS() error {
	switch _, token := c.Properties["AWS_SESSION_TOKEN"]; {
	case c.HasUser != c.HasPassword:
		return fmt.Errorf("authMechanism=MONGODB-AWS takes both an access key id (as the user) and a secret access key (as the password), or neither")
	case token && !c.HasUser:
		return fmt.Errorf("authMechanismProperties: AWS_SESSION_TOKEN goes with an access key id and a secret access key")
	}
	return nil
}

func (c *Credential) checkOIDC() error {
	environment, given := c.Properties["ENVIRONMENT"]
	_, resource := c.Properties["TOKEN_RESOURCE"]
	cloud := environment == "azure" || environment == "gcp"
	switch {
	case given && !cloud && environment != "k8s" && environment != "test":
		return fmt.Errorf("authMechanismProperties: there is no ENVIRONMENT %q; there are azure, gcp, k8s", environment)
	case cloud && !resource:
		return fmt.Errorf("authMechanismProperties: ENVIRONMENT:%s needs a TOKEN_RESOURCE, the audience of the token", environment)
	case resource && !cloud:
		return fmt.Errorf("authMechanismProperties: TOKEN_RESOURCE goes with ENVIRONMENT:azure or ENVIRONMENT:gcp")
	case given && c.HasUser && environment != "azure":
		return fmt.Errorf("authMechanismProperties: with ENVIRONMENT:%s a user name has no meaning", environment)
	}
	return nil
}

// checkAuth looks at the credential of the string.
func (u *URI) checkAuth() error {
	if u.count("authSource") > 0 && u.AuthSource == "" {
		return errorf("authSource is empty")
	}
	c := u.Credential()
	if c == nil {
		return nil
	}
	if err := c.Check(); err != nil {
		return errorf("%w", err)
	}
	return nil
}
