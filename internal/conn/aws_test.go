package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/auth"
	"github.com/sextantdb/sextant/internal/credential"
	"github.com/sextantdb/sextant/mongoerr"
)

// awsServer is a server's side of MONGODB-AWS that takes one access key. It cannot check signatures, which Amazon does:
// internal/auth holds them to Amazon's own example.
type awsServer struct {
	key    string // the access key id that is taken
	got    []string
	tokens []string
}

func (s *awsServer) serve(p *peer) {
	for m := p.read(); m != nil; m = p.read() {
		_, payload, _ := m.Body.Lookup("payload").BinaryOK()
		switch {
		case !m.Body.Lookup("isMaster").IsZero():
			if !m.Body.Lookup("speculativeAuthenticate").IsZero() {
				p.t.Error("MONGODB-AWS has no speculative step")
			}
			p.answer(m, helloReply)
		case !m.Body.Lookup("saslStart").IsZero():
			if db, _ := m.Body.Lookup("$db").StringValueOK(); db != "$external" || !m.Body.Lookup("options").IsZero() {
				p.t.Errorf("saslStart: %s", m.Body)
			}
			_, nonce, _ := bson.Raw(payload).Lookup("r").BinaryOK()
			first := doc("s", append(nonce[:32:32], make([]byte, 32)...), "h", "sts.eu-west-1.amazonaws.com")
			p.answer(m, doc("conversationId", 1, "done", false, "payload", []byte(first), "ok", 1.0))
		case !m.Body.Lookup("saslContinue").IsZero():
			a, _ := bson.Raw(payload).Lookup("a").StringValueOK()
			token, _ := bson.Raw(payload).Lookup("t").StringValueOK()
			s.got, s.tokens = append(s.got, a), append(s.tokens, token)
			if !strings.Contains(a, "Credential="+s.key+"/") || !strings.Contains(a, "/eu-west-1/sts/") {
				p.answer(m, doc("ok", 0.0, "errmsg", "Authentication failed.", "code", 18, "codeName", "AuthenticationFailed"))
				continue
			}
			p.answer(m, doc("conversationId", 1, "done", true, "payload", []byte{}, "ok", 1.0))
		}
	}
}

func openAWS(t *testing.T, s *awsServer, a *credential.AWS) error {
	t.Helper()
	o := played(t, s.serve)
	o.Credential = &Credential{Source: "$external", Mechanism: auth.AWS, AWS: a}
	c, err := Open(t.Context(), "db1:27017", o)
	if err == nil {
		c.Close()
	}
	return err
}

// machineWith are the variables of a machine with a metadata service that gives the keys in turn.
func machineWith(t *testing.T, ids ...string) (credential.System, *int) {
	t.Helper()
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := ids[min(asked, len(ids)-1)]
		asked++
		fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":"hunter2","Token":"hunter3","Expiration":%q}`, id, time.Now().Add(time.Hour).Format(time.RFC3339))
	}))
	t.Cleanup(srv.Close)
	return credential.System{
		Getenv: func(name string) string {
			return map[string]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/keys"}[name]
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
		},
	}, &asked
}

// Whole logins by mongodb-aws.md, scenarios 1 (regular credentials), 3 (ECS), 4 (assumed role, with a token); EC2, web
// identity and the environment differ in where the keys come from alone, which internal/credential tests.
func TestAWSLogsInWithGivenAndFetchedKeys(t *testing.T) {
	system, _ := machineWith(t, "AKECS")
	for key, k := range map[string]struct {
		aws   credential.AWS
		token string
	}{
		"AKGIVEN": {credential.AWS{Keys: auth.AWSKeys{AccessKeyID: "AKGIVEN", SecretAccessKey: "hunter2"}}, ""},
		"AKROLE":  {credential.AWS{Keys: auth.AWSKeys{AccessKeyID: "AKROLE", SecretAccessKey: "hunter2", SessionToken: "t"}}, "t"},
		"AKECS":   {credential.AWS{System: system, Cache: &credential.AWSCache{}}, "hunter3"},
	} {
		s := &awsServer{key: key}
		if err := openAWS(t, s, &k.aws); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if len(s.tokens) != 1 || s.tokens[0] != k.token {
			t.Errorf("%s: tokens %q", key, s.tokens)
		}
	}
}

// mongodb-aws.md, "Cached Credentials", steps 7 to 12: a refused login clears the cache. Broken by keeping it.
func TestRefusedAWSLoginsClearTheCache(t *testing.T) {
	system, asked := machineWith(t, "AKBAD", "AKGOOD")
	a := &credential.AWS{System: system, Cache: &credential.AWSCache{}}
	s := &awsServer{key: "AKGOOD"}
	err := openAWS(t, s, a)
	if !mongoerr.IsLoginRefused(err) || !strings.Contains(err.Error(), "AWS refused the keys") || strings.Contains(err.Error(), "hunter") {
		t.Errorf("%v", err)
	}
	for range 2 {
		if err := openAWS(t, s, a); err != nil {
			t.Error(err)
		}
	}
	if *asked != 2 {
		t.Errorf("the service was asked %d times", *asked)
	}
}

func TestMissingAWSKeysAreNoFailureOfTheServer(t *testing.T) {
	cause := errors.New("the vault is sealed")
	err := openAWS(t, &awsServer{}, &credential.AWS{Provider: func(context.Context) (auth.AWSKeys, error) { return auth.AWSKeys{}, cause }})
	if !errors.Is(err, mongoerr.ErrNoCredentials) || !errors.Is(err, cause) || !mongoerr.IsAuth(err) || mongoerr.IsNetwork(err) {
		t.Errorf("%v", err)
	}
}
