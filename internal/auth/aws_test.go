package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

var awsExample = AWSKeys{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}

// The example of Amazon's documentation of Signature Version 4, which the authentication specification quotes.
func TestSignatureMatchesAmazonsExample(t *testing.T) {
	r := awsRequest{method: "GET", query: "Action=ListUsers&Version=2010-05-08", region: "us-east-1", service: "iam", date: "20150830T123600Z",
		headers: [][2]string{{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}, {"host", "iam.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}}}
	want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, " +
		"SignedHeaders=content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
	if got := r.authorization(awsExample); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

const (
	clientNonce = "dzw1U2IwSEtgaWI0IUxZMVJqc2xuQzNCcUxBc05wZjI="
	serverNonce = "dzw1U2IwSEtgaWI0IUxZMVJqc2xuQzNCcUxBc05wZjIGS0J9EgLwzEZ9dIzr/hnnK2mgd4D7F52t8g9yTC5cIA=="
)

func serverFirstAWS(nonce []byte, host string) []byte {
	doc, start := bson.BeginDocument(nil)
	doc = bson.AppendBinary(doc, "s", 0, nonce)
	return bson.EndDocument(bson.AppendString(doc, "h", host), start)
}

func answerAWS(t *testing.T, keys AWSKeys, host string) (bson.Raw, error) {
	t.Helper()
	now := time.Date(2019, 11, 7, 0, 26, 7, 0, time.UTC)
	c, err := NewAWS(base64Of(t, clientNonce), func() (AWSKeys, time.Time, error) { return keys, now, nil })
	if err != nil {
		t.Fatal(err)
	}
	payload, done, err := c.Step(serverFirstAWS(base64Of(t, serverNonce), host))
	if done {
		t.Error("done before the server has looked at the signature")
	}
	return payload, err
}

// The messages of the authentication specification, "MONGODB-AWS"; the secret key behind its signature is not told.
func TestAWSMessagesHaveTheSpecifiedForm(t *testing.T) {
	c, err := NewAWS(base64Of(t, clientNonce), nil)
	if err != nil {
		t.Fatal(err)
	}
	mechanism, first := c.Start()
	nonce := bson.Raw(first).Lookup("r")
	if _, b, _ := nonce.BinaryOK(); mechanism != AWS || string(b) != string(base64Of(t, clientNonce)) {
		t.Errorf("%s %s", mechanism, bson.Raw(first))
	}
	if p, _ := bson.Raw(first).Lookup("p").AsInt64OK(); p != 110 {
		t.Errorf("p is %d", p)
	}
	reply, err := answerAWS(t, AWSKeys{AccessKeyID: "AKIAICGVLKOKZVY3X3DA", SecretAccessKey: "secret"}, "sts.amazonaws.com")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := reply.Lookup("a").StringValueOK()
	want := "AWS4-HMAC-SHA256 Credential=AKIAICGVLKOKZVY3X3DA/20191107/us-east-1/sts/aws4_request, " +
		"SignedHeaders=content-length;content-type;host;x-amz-date;x-mongodb-gs2-cb-flag;x-mongodb-server-nonce, Signature="
	if len(a) != len(want)+64 || !strings.HasPrefix(a, want) {
		t.Errorf("%s", a)
	}
	if d, _ := reply.Lookup("d").StringValueOK(); d != "20191107T002607Z" || !reply.Lookup("t").IsZero() {
		t.Errorf("%s", reply)
	}
}

func TestAWSSessionTokenIsSentAndSigned(t *testing.T) {
	keys := awsExample
	keys.SessionToken = "token"
	reply, err := answerAWS(t, keys, "sts.us-west-2.amazonaws.com")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := reply.Lookup("a").StringValueOK()
	if token, _ := reply.Lookup("t").StringValueOK(); token != "token" || !strings.Contains(a, ";x-amz-security-token;") || !strings.Contains(a, "/us-west-2/sts/") {
		t.Errorf("%s", reply)
	}
}

// The table of the authentication specification, "Region calculation".
func TestRegionsFollowTheTable(t *testing.T) {
	for host, want := range map[string]string{
		"sts.amazonaws.com": "us-east-1", "sts.us-west-2.amazonaws.com": "us-west-2", "sts.us-west-2.amazonaws.com.ch": "us-west-2",
		"example.com": "com", "localhost": "us-east-1", "aws.amazonaws.com": "us-east-1",
		"sts..com": "", ".amazonaws.com": "", "sts.amazonaws.": "", "": "", strings.Repeat("a", 256): "",
	} {
		if got, err := regionOf(host); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", host, got, err)
		}
	}
}

func TestAWSChecksTheServersAnswer(t *testing.T) {
	good := base64Of(t, serverNonce)
	other := append([]byte{1}, good[1:]...)
	fails := errors.New("no role is attached")
	for _, c := range []struct {
		challenge []byte
		keys      AWSKeys
		err       error
		want      string
	}{
		{[]byte("x"), awsExample, nil, "no document"},
		{serverFirstAWS(good[:63], "h"), awsExample, nil, "does not extend"},
		{serverFirstAWS(other, "h"), awsExample, nil, "does not extend"},
		{serverFirstAWS(good, "a..b"), awsExample, nil, "no host name"},
		{serverFirstAWS(good, "h"), AWSKeys{SecretAccessKey: "hunter2"}, nil, "no AWS access key id"},
		{serverFirstAWS(good, "h"), AWSKeys{AccessKeyID: "AK"}, nil, "no AWS secret access key"},
		{serverFirstAWS(good, "h"), awsExample, fails, fails.Error()},
	} {
		conv, _ := NewAWS(base64Of(t, clientNonce), func() (AWSKeys, time.Time, error) { return c.keys, time.Time{}, c.err })
		_, done, err := conv.Step(c.challenge)
		if err == nil || done || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, %v", c.want, done, err)
		}
	}
	if _, err := NewAWS([]byte("short"), nil); err == nil {
		t.Error("a short nonce was taken")
	}
}

func TestAWSKeysAreNeverPrinted(t *testing.T) {
	k := AWSKeys{AccessKeyID: "AKID", SecretAccessKey: "hunter2", SessionToken: "hunter3"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{k, &k, []AWSKeys{k}} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, "hunter") || strings.Contains(s, fmt.Sprintf("%x", "hunter")) {
				t.Errorf("%s: %s", verb, s)
			}
		}
	}
}

// FuzzAWSStep: no challenge panics or gets a signature for a nonce that is not the client's.
func FuzzAWSStep(f *testing.F) {
	nonce := []byte(strings.Repeat("n", 32))
	f.Add(serverFirstAWS([]byte(strings.Repeat("n", 64)), "sts.amazonaws.com"))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, challenge []byte) {
		c, _ := NewAWS(nonce, func() (AWSKeys, time.Time, error) { return awsExample, time.Time{}, nil })
		payload, _, err := c.Step(challenge)
		_, s, _ := bson.Raw(challenge).Lookup("s").BinaryOK()
		if err == nil && (len(payload) == 0 || !strings.HasPrefix(string(s), string(nonce))) {
			t.Fatalf("%q was answered", challenge)
		}
	})
}
