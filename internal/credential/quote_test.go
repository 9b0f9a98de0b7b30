package credential

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestServicesThatEchoSecretsHaveThemHidden: what a service refuses with is quoted, without what it was sent or ought to have
// given, and without characters that steer a terminal.
func TestServicesThatEchoSecretsHaveThemHidden(t *testing.T) {
	const session, key, guid = "AQAEAEy/se+ss10n==", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "0f8fad5b-d9cb-469f-a165-70867728950e"
	refuse := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(403)
		fmt.Fprintf(w, "no role \x1b[2J\nfor %s %v %s: {\"SecretAccessKey\":\"%s\"} %s", r.URL, r.Header, body, key, strings.Repeat("and so on ", 50))
	}
	coded := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"Code": "AssumeRoleUnauthorizedAccess", "Message": "no role \u001b for %s, %s"}`, r.Header.Get("Authorization"), r.URL.Path)
	}
	s := newStub(t, map[string]http.HandlerFunc{
		"PUT 169.254.169.254/latest/api/token":                              func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, session) },
		"GET 169.254.169.254/latest/meta-data/iam/security-credentials/":    refuse,
		"GET 169.254.170.2/v2/credentials/" + guid:                          coded,
		"GET 169.254.170.23/v1/credentials":                                 refuse,
		"POST sts.amazonaws.com/":                                           refuse,
		"GET 169.254.169.254/metadata/identity/oauth2/token":                refuse,
		"GET metadata/computeMetadata/v1/instance/service-accounts/default": refuse,
	})
	for name, env := range map[string]map[string]string{
		"EC2":          {},
		"ECS":          {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/" + guid, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Basic hunter2"},
		"EKS":          {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/token"},
		"web identity": {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_ENDPOINT_URL_STS": "http://sts.amazonaws.com/"},
	} {
		_, err := (&AWS{System: s.system(env), Cache: &AWSCache{}}).Get(t.Context())
		text := fmt.Sprint(err)
		if err == nil || !strings.Contains(text, `no role \x1b`) || len(text) > 700 {
			t.Errorf("%s: %s", name, text)
		}
		for _, secret := range []string{session, session[:8], "hunter2", guid, guid[:8], "the.web.token", key[:8], "\x1b", "\n"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q in %s", name, secret, text)
			}
		}
	}
}

func TestWordsOfErrorsAreNoSecrets(t *testing.T) {
	const said = "InvalidIdentityTokenException: unsupported_grant_type, no identity for the application in tenant"
	if got := (request{}).quote(said); got != `"`+said+`"` {
		t.Errorf("shown as %s", got)
	}
	for _, secret := range []string{"AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJub25lIn0.e30.", "a%2Fb%2Bc%3Dd0123456", strings.Repeat("x", 40)} {
		if got := (request{}).quote("no " + secret + "!"); got != `"no xxxxx!"` {
			t.Errorf("%s is shown as %s", secret, got)
		}
	}
}
