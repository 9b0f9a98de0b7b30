package doctor

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset"
)

func TestDoctorSaysWhyALoginFails(t *testing.T) {
	set := replset.Run(t, replset.Options{Users: []replset.User{{Name: "joe", Password: "right"}}})
	addr := set.Member(0).Addr()
	t.Setenv("OIDC_TOKEN_FILE", "/no/such/token")
	for _, c := range []struct {
		name, user, options string
		server              string
		cause, cure         string
	}{
		{"no user", "", "", addr, "no user", "user:password@"},
		{"a wrong password", "joe:wr0ng@", "", addr, `user "joe" of database "admin", by SCRAM-SHA-256: Authentication failed; the user exists`, "correct the password"},
		{"a wrong password, one mechanism", "joe:wr0ng@", "authMechanism=SCRAM-SHA-256", addr, "the password is wrong", "authSource"},
		{"a wrong user", "jane:right@", "", addr, "there is no such user", "authSource=admin"},
		{"a wrong database", "joe:right@", "authSource=shop", addr, `no such user in database "shop"`, "authSource=admin"},
		{"Kerberos", "joe@", "authMechanism=GSSAPI", "", "GSSAPI (Kerberos) is not spoken", "PLAIN with tls=true"},
		{"a mechanism of old", "joe:right@", "authMechanism=MONGODB-CR", "", "removed from MongoDB 4.0", "leave authMechanism out"},
		{"a certificate and a password", "joe:right@", "authMechanism=MONGODB-X509", "", "takes no password", "take the password out"},
		{"a certificate without TLS", "", "authMechanism=MONGODB-X509", addr, "the connection has no TLS", "tlsCertificateKeyFile"},
		{"a foreign database", "", "authMechanism=MONGODB-X509&authSource=shop", "", "authSource", "$external"},
		{"a token and a password", "joe:right@", "authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s", "", "takes no password", "by a token"},
		{"a token from nowhere", "", "authMechanism=MONGODB-OIDC", "", "needs a place to get tokens from", "ENVIRONMENT:azure, gcp or k8s"},
		{"a token that is not there", "", "authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:test", addr,
			"the OIDC token could not be had: the file with the access token: open /no/such/token: no such file", "OIDC_TOKEN_FILE"},
		{"a mechanism that is not offered", "", "authMechanism=MONGODB-AWS", addr, "does not offer the mechanism MONGODB-AWS", "leave authMechanism out"},
		{"half of a pair of keys", "AKID@", "authMechanism=MONGODB-AWS", "", "secret access key", "MONGODB-AWS takes"},
		{"a directory that is not asked", "joe:right@", "authMechanism=PLAIN", addr, `user "joe" of database "$external"`, "directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := look(t, "mongodb://"+c.user+addr+"/?"+c.options, zone{}, nil)
			d.expect(t, Unreachable, "auth", c.server, c.cause, c.cure)
			for _, f := range d.Findings {
				if strings.Contains(f.Cause, "config: ") || strings.Contains(f.Cure, "host1:27017") || strings.Count(f.Cause, "of database") > 2 {
					t.Errorf("what is not to the point: %v", f)
				}
			}
		})
	}
}

func TestDoctorWarnsOfAPasswordInTheClear(t *testing.T) {
	addr := replset.Run(t, replset.Options{Users: []replset.User{{Name: "joe", Password: "right"}}}).Member(0).Addr()
	uri := "mongodb://joe:right@" + addr + "/?authMechanism=PLAIN"
	d := look(t, uri, zone{}, nil)
	d.expect(t, Unreachable, "auth", "", "sends the password in clear", "tls=true")
	told := slices.DeleteFunc(slices.Clone(d.Findings), func(f Finding) bool { return !strings.Contains(f.Cause, "whoever sees the packets") })
	if len(told) != 1 {
		t.Errorf("it is told %d times: %v", len(told), told)
	}
	for _, f := range look(t, uri+"&tls=true", zone{}, nil).Findings {
		if f.Severity == Warning {
			t.Errorf("with TLS: %v", f)
		}
	}
}

// amazon is a server that offers MONGODB-AWS: it answers the first step of the login, after which the client needs keys.
func amazon(c net.Conn) {
	for {
		msg, err := message(c)
		if err != nil {
			return
		}
		doc := append(plain()(nil), bson.E{Key: "ok", Value: 1})
		if _, theirs, ok := msg.Body.Lookup("payload").BinaryOK(); ok {
			_, nonce, _ := bson.Raw(theirs).Lookup("r").BinaryOK()
			first, _ := bson.Marshal(bson.D{{Key: "s", Value: bson.Binary{Data: append(append([]byte{}, nonce...), make([]byte, 32)...)}}, {Key: "h", Value: "sts.amazonaws.com"}})
			doc = bson.D{{Key: "conversationId", Value: 1}, {Key: "done", Value: false}, {Key: "payload", Value: bson.Binary{Data: first}}, {Key: "ok", Value: 1}}
		}
		reply(c, msg.RequestID, doc)
	}
}

func TestDoctorSaysWhereAWSKeysWereLookedFor(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	none := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(none.Close)
	addr := listen(t, amazon)
	uri := "mongodb://" + addr + "/?authMechanism=MONGODB-AWS"
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", none.URL)
	look(t, uri, zone{}, nil).expect(t, Unreachable, "auth", addr,
		"no keys are given with the client; the environment has no AWS_ACCESS_KEY_ID; the environment has no AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SECRET_ACCESS_KEY")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://"+listen(t, silence))
	Examine(t.Context(), uri, time.Second, nil).expect(t, Unreachable, "auth", "", "the metadata service of an EC2 machine does not answer", "has a role")
}
