package connstring

import (
	"strings"
	"testing"
)

// What the official cases leave out. No error may show a password or the value of a property.
func TestCredentialsAreHeldToTheirMechanism(t *testing.T) {
	for query, want := range map[string]string{
		"joe@h/?authMechanism=PLAIN":                                                  "needs a password",
		"joe@h/?authMechanism=SCRAM-SHA-256":                                          "needs a password",
		"joe:hunter2@h/?authMechanism=SCRAM-SHA-1&authMechanismProperties=A:hunter2":  "takes no authMechanismProperties",
		"h/?authMechanism=MONGODB-X509&authMechanismProperties=A:hunter2":             "takes no authMechanismProperties",
		"h/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_TOKEN:hunter2":      "there are AWS_SESSION_TOKEN",
		"h/?authMechanism=MONGODB-AWS&authSource=admin":                               "no authSource but $external",
		"h/?authMechanism=MONGODB-OIDC&authMechanismProperties=PROVIDER_NAME:aws":     "there are ENVIRONMENT, TOKEN_RESOURCE",
		"h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ALLOWED_HOSTS:hunter2": "must be set in the program",
		"h/?authMechanism=MONGODB-OIDC&authMechanismProperties=TOKEN_RESOURCE:x":      "goes with ENVIRONMENT:azure",
		"joe@h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s":   "user name has no meaning",
		"joe:hunter2@h/?authMechanism=scram-sha-1":                                    `no authMechanism "scram-sha-1"`,
	} {
		if _, err := Parse("mongodb://" + query); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// "Naming of mechanism properties MUST be case-insensitive" (authentication specification).
func TestPropertiesAreKnownInAnyCase(t *testing.T) {
	c := parse(t, "mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=environment:azure,Token_Resource:mongodb://c").Credential()
	if c.Properties["ENVIRONMENT"] != "azure" || c.Properties["TOKEN_RESOURCE"] != "mongodb://c" {
		t.Errorf("%v", c.Properties)
	}
}
