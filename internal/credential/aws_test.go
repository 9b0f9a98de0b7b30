package credential

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/internal/auth"
)

// keysJSON are keys as the services of ECS and EC2 give them.
func keysJSON(id string, expires time.Time) string {
	return fmt.Sprintf(`{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":%q,"SecretAccessKey":"hunter2","Token":"hunter3","Expiration":%q}`,
		id, expires.UTC().Format(time.RFC3339))
}

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

func get(t *testing.T, a *AWS) auth.AWSKeys {
	t.Helper()
	k, err := a.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ec2 is the metadata service of a machine with the role "app". It wants version 2: a session's token in each request.
func ec2(t *testing.T, keys http.HandlerFunc) *stub {
	const base = "169.254.169.254/latest/"
	session := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-aws-ec2-metadata-token") != "session" {
				http.Error(w, "no session", http.StatusUnauthorized)
				return
			}
			next(w, r)
		}
	}
	return newStub(t, map[string]http.HandlerFunc{
		"PUT " + base + "api/token": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "" {
				http.Error(w, "how long?", 400)
				return
			}
			io.WriteString(w, "session")
		},
		"GET " + base + "meta-data/iam/security-credentials/":    session(text("app\n")),
		"GET " + base + "meta-data/iam/security-credentials/app": session(keys),
	})
}

func TestKeysOfTheRoleOfAnEC2Machine(t *testing.T) {
	expires := inAnHour()
	s := ec2(t, text(keysJSON("AKEC2", expires)))
	k := get(t, &AWS{System: s.system(nil), Cache: &AWSCache{}})
	if k.AccessKeyID != "AKEC2" || k.SecretAccessKey != "hunter2" || k.SessionToken != "hunter3" || k.Expiration.Unix() != expires.Unix() || s.count() != 3 {
		t.Errorf("%+v after %d requests", k.AccessKeyID, s.count())
	}
}

func TestEC2IsAskedAtTheEndpointOfTheEnvironment(t *testing.T) {
	s := newStub(t, map[string]http.HandlerFunc{})
	_, err := (&AWS{System: s.system(map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://elsewhere/"}), Cache: &AWSCache{}}).Get(t.Context())
	mustFail(t, err)
	if len(s.asked) != 1 || s.asked[0] != "PUT elsewhere/latest/api/token" || !strings.Contains(err.Error(), "no keys are given") {
		t.Errorf("%v, %v", s.asked, err)
	}
	_, err = (&AWS{System: s.system(map[string]string{"AWS_EC2_METADATA_DISABLED": "true"}), Cache: &AWSCache{}}).Get(t.Context())
	mustFail(t, err)
	if s.count() != 1 {
		t.Error("it was asked although it is disabled")
	}
}

func TestKeysOfTheRoleOfAnECSTask(t *testing.T) {
	s := newStub(t, map[string]http.HandlerFunc{"GET 169.254.170.2/v2/credentials/1": text(keysJSON("AKECS", inAnHour()))})
	for _, path := range []string{"/v2/credentials/1", "v2/credentials/1"} {
		if k := get(t, &AWS{System: s.system(map[string]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": path}), Cache: &AWSCache{}}); k.AccessKeyID != "AKECS" {
			t.Errorf("%s: %v", path, k)
		}
	}
}

func TestKeysOfAnEKSPodIdentity(t *testing.T) {
	s := newStub(t, map[string]http.HandlerFunc{"GET 169.254.170.23/v1/credentials": func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "the.web.token" {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		io.WriteString(w, keysJSON("AKPOD", inAnHour()))
	}})
	env := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/token"}
	if k := get(t, &AWS{System: s.system(env), Cache: &AWSCache{}}); k.AccessKeyID != "AKPOD" {
		t.Errorf("%v", k)
	}
	env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://evil.example.com/v1"
	_, err := (&AWS{System: s.system(env), Cache: &AWSCache{}}).Get(t.Context())
	mustFail(t, err)
	if s.count() != 1 || !strings.Contains(err.Error(), "evil.example.com") {
		t.Errorf("a stranger was asked in the clear: %v, %v", s.asked, err)
	}
}

// web is a token service; what it was asked goes into form.
func web(t *testing.T, form *url.Values, reply string) (*httptest.Server, *tls.Config) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		*form = r.PostForm
		if r.Method != "POST" || r.Header.Get("Accept") != "application/json" {
			w.WriteHeader(400)
		}
		io.WriteString(w, reply)
	}))
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return srv, &tls.Config{RootCAs: roots}
}

// The two forms of the answer: as the specification shows it, and as the service gives it, with seconds.
func TestWebIdentityIsExchangedForKeys(t *testing.T) {
	inner := `"Credentials":{"AccessKeyId":"AKWEB","SecretAccessKey":"hunter2","SessionToken":"hunter3","Expiration":1.9e9}`
	for _, reply := range []string{"{" + inner + "}", `{"AssumeRoleWithWebIdentityResponse":{"AssumeRoleWithWebIdentityResult":{` + inner + `}}}`} {
		var form url.Values
		srv, trust := web(t, &form, reply)
		env := map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::1:role/app", "AWS_ENDPOINT_URL_STS": srv.URL + "/"}
		sys := (&stub{}).system(env)
		sys.Dial, sys.TLS = nil, trust
		k := get(t, &AWS{System: sys, Cache: &AWSCache{}})
		if k.AccessKeyID != "AKWEB" || k.SessionToken != "hunter3" || k.Expiration.Unix() != 1.9e9 {
			t.Errorf("%v until %v", k, k.Expiration)
		}
		if form.Get("WebIdentityToken") != "the.web.token" || form.Get("RoleArn") != "arn:aws:iam::1:role/app" || form.Get("Version") != "2011-06-15" || form.Get("RoleSessionName") == "" {
			t.Errorf("asked %v", form)
		}
		env["AWS_ROLE_SESSION_NAME"] = "session7"
		if get(t, &AWS{System: sys, Cache: &AWSCache{}}); form.Get("RoleSessionName") != "session7" {
			t.Errorf("the session's name: %v", form)
		}
	}
}

func TestTokenServiceOfTheRegion(t *testing.T) {
	for region, want := range map[string]string{"": "https://sts.amazonaws.com/", "eu-west-1": "https://sts.eu-west-1.amazonaws.com/",
		"cn-north-1": "https://sts.cn-north-1.amazonaws.com.cn/", "x/../evil": "https://sts.amazonaws.com/"} {
		sys := (&stub{}).system(map[string]string{"AWS_REGION": region})
		if got := sys.stsURL(); got != want {
			t.Errorf("%q: %s", region, got)
		}
	}
}

func TestServicesThatGiveNoKeysAreTold(t *testing.T) {
	for reply, want := range map[string]string{
		`{"Code":"AssumeRoleUnauthorizedAccess","Message":"EC2 cannot assume the role"}`: "cannot assume the role",
		`{"AccessKeyId":"AK"}`: "no AWS secret access key",
		`{"AccessKeyId":"AK","SecretAccessKey":"hunter2","Expiration":"soon"}`: "expiration",
		`{"AccessKeyId":"AK","SecretAccessKey":"hunter2","Expiration":[1]}`:    "expiration",
		`<html>hunter2</html>`: "not JSON",
	} {
		s := ec2(t, text(reply))
		_, err := (&AWS{System: s.system(nil), Cache: &AWSCache{}}).Get(t.Context())
		mustFail(t, err)
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", reply, err)
		}
	}
	_, err := (&AWS{System: (&stub{}).system(map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/gone", "AWS_ROLE_ARN": "r"}), Cache: &AWSCache{}}).Get(t.Context())
	mustFail(t, err)
	if !strings.Contains(err.Error(), "no keys are given with the client; the environment has no AWS_ACCESS_KEY_ID; the file that AWS_WEB_IDENTITY_TOKEN_FILE names") {
		t.Errorf("the sources up to the one that failed are not named: %v", err)
	}
	_, err = (&AWS{System: (&stub{}).system(map[string]string{"AWS_ROLE_ARN": "r", "AWS_EC2_METADATA_DISABLED": "true"}), Cache: &AWSCache{}}).Get(t.Context())
	mustFail(t, err)
	for _, source := range []string{"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE;", "_RELATIVE_URI", "_FULL_URI", "AWS_EC2_METADATA_DISABLED"} {
		if !strings.Contains(err.Error(), source) {
			t.Errorf("%s is not named: %v", source, err)
		}
	}
}

// The order of the authentication specification, "Obtaining credentials"; and of mongodb-aws.md, "Custom Credential
// Provider Authentication Precedence", cases 1 and 2: keys of the string come before the provider, and that before the
// environment. Any other order in AWS.Get fails it.
func TestKeysAreLookedForInOrder(t *testing.T) {
	s := ec2(t, text(keysJSON("AKEC2", inAnHour())))
	env := map[string]string{"AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_SESSION_TOKEN": "hunter3"}
	asked := 0
	a := &AWS{
		Keys: auth.AWSKeys{AccessKeyID: "AKURI", SecretAccessKey: "hunter2"}, System: s.system(env), Cache: &AWSCache{},
		Provider: func(context.Context) (auth.AWSKeys, error) {
			asked++
			return auth.AWSKeys{AccessKeyID: "AKPROVIDED", SecretAccessKey: "hunter2"}, nil
		},
	}
	if k := get(t, a); k.AccessKeyID != "AKURI" || asked != 0 {
		t.Errorf("given: %v, provider asked %d times", k, asked)
	}
	a.Keys = auth.AWSKeys{}
	if k := get(t, a); k.AccessKeyID != "AKPROVIDED" || asked != 1 {
		t.Errorf("provided: %v, provider asked %d times", k, asked)
	}
	a.Provider = nil
	if k := get(t, a); k.AccessKeyID != "AKENV" || k.SessionToken != "hunter3" {
		t.Errorf("environment: %v", k)
	}
	clear(env)
	if k := get(t, a); k.AccessKeyID != "AKEC2" {
		t.Errorf("machine: %v", k)
	}
	env["AWS_SECRET_ACCESS_KEY"] = "hunter2"
	a.Cache.clear()
	_, err := a.Get(t.Context())
	mustFail(t, err)
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("half of a pair: %v", err)
	}
}

func TestProvidersThatFailAreTold(t *testing.T) {
	cause := errors.New("the vault is sealed")
	for want, f := range map[string]func(context.Context) (auth.AWSKeys, error){
		"sealed":               func(context.Context) (auth.AWSKeys, error) { return auth.AWSKeys{}, cause },
		"panicked":             func(context.Context) (auth.AWSKeys, error) { panic("hunter2") },
		"no AWS access key id": func(context.Context) (auth.AWSKeys, error) { return auth.AWSKeys{}, nil },
	} {
		_, err := (&AWS{Provider: f}).Get(t.Context())
		mustFail(t, err)
		if !strings.Contains(err.Error(), want) || errors.Is(err, cause) != (want == "sealed") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// mongodb-aws.md, "Cached Credentials", the first list. Each new AWS is a new client; Forget is what the login does after
// a refusal. Dropping the cache, the five minutes, or Forget fails it.
func TestFetchedKeysAreCachedProse1(t *testing.T) {
	id, expires := "AK1", inAnHour()
	s := ec2(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, keysJSON(id, expires)) })
	cache := &AWSCache{}
	client := func() *AWS { return &AWS{System: s.system(nil), Cache: cache} }
	if get(t, client()); s.count() != 3 {
		t.Fatalf("%d requests", s.count())
	}
	if k := get(t, client()); s.count() != 3 || k.AccessKeyID != "AK1" {
		t.Errorf("a second client asked again: %d requests", s.count())
	}
	svc := client().System
	cache.put(svc.awsService().id, auth.AWSKeys{AccessKeyID: "OLD", SecretAccessKey: "x", Expiration: time.Now().Add(time.Minute)})
	if k := get(t, client()); k.AccessKeyID != "AK1" || s.count() != 6 {
		t.Errorf("keys that end in a minute: %v after %d requests", k, s.count())
	}
	if get(t, client()); s.count() != 6 {
		t.Errorf("the renewed keys were not kept: %d requests", s.count())
	}
	cache.put(svc.awsService().id, auth.AWSKeys{AccessKeyID: "BAD", SecretAccessKey: "x"})
	a := client()
	if k := get(t, a); k.AccessKeyID != "BAD" {
		t.Errorf("the poisoned cache was not used: %v", k)
	}
	a.Forget()
	if k := get(t, a); k.AccessKeyID != "AK1" || s.count() != 9 {
		t.Errorf("after a refusal: %v, %d requests", k, s.count())
	}
}

// mongodb-aws.md, "Cached Credentials", the second list. Caching the environment's keys, or preferring them to cached
// ones, fails it.
func TestEnvironmentIsNeverCachedProse2(t *testing.T) {
	s := ec2(t, text(keysJSON("AK1", inAnHour())))
	env, cache := map[string]string{}, &AWSCache{}
	client := func() *AWS { return &AWS{System: s.system(env), Cache: cache} }
	set := func(id string) { env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"] = id, "hunter2" }
	get(t, client())
	set("AKENV")
	client().Forget()
	if k := get(t, client()); k.AccessKeyID != "AKENV" || cache.keys != nil {
		t.Errorf("step 7: %v, %d cached", k, len(cache.keys))
	}
	set("INVALID")
	if k := get(t, client()); k.AccessKeyID != "INVALID" {
		t.Errorf("step 10, the environment is read anew each time: %v", k)
	}
	clear(env)
	if k := get(t, client()); k.AccessKeyID != "AK1" || len(cache.keys) != 1 {
		t.Errorf("step 14: %v", k)
	}
	set("INVALID")
	if k := get(t, client()); k.AccessKeyID != "AK1" {
		t.Errorf("step 17, cached keys come before the environment's: %v", k)
	}
}
