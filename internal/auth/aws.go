package auth

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// AWSKeys are credentials of AWS. All but AccessKeyID is secret.
type AWSKeys struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string    // of temporary keys; empty for a user's own
	Expiration      time.Time // zero: never
}

// Format hides the secret from every verb of fmt.
func (k AWSKeys) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "AWS access key %s", printable(k.AccessKeyID))
}

// Check says which part is missing.
func (k AWSKeys) Check() error {
	switch {
	case k.AccessKeyID == "":
		return fmt.Errorf("there is no AWS access key id")
	case k.SecretAccessKey == "":
		return fmt.Errorf("there is no AWS secret access key")
	}
	return nil
}

const (
	awsNonce  = 32 // bytes of the client's, and of the server's own
	awsAction = "Action=GetCallerIdentity&Version=2011-06-15"
)

// NewAWS begins a conversation by MONGODB-AWS: the client signs a request to the AWS Security Token Service, which the
// server sends there to learn who it is (authentication specification, "MONGODB-AWS"). nonce are 32 fresh random
// bytes. keys is called once, when the server has answered, and says what time it is as well.
func NewAWS(nonce []byte, keys func() (AWSKeys, time.Time, error)) (Conversation, error) {
	if len(nonce) != awsNonce {
		return nil, fmt.Errorf("%s needs a nonce of %d bytes", AWS, awsNonce)
	}
	return &awsClient{nonce: nonce, keys: keys}, nil
}

type awsClient struct {
	nonce  []byte
	keys   func() (AWSKeys, time.Time, error)
	signed bool
}

func (a *awsClient) Start() (string, []byte) {
	doc, start := bson.BeginDocument(nil)
	doc = bson.AppendBinary(doc, "r", 0, a.nonce)
	doc = bson.AppendInt32(doc, "p", 'n') // no channel binding
	return AWS, bson.EndDocument(doc, start)
}

func (a *awsClient) Step(challenge []byte) ([]byte, bool, error) {
	if a.signed {
		return nil, true, nil
	}
	nonce, host, err := a.parseFirst(challenge)
	if err != nil {
		return nil, false, err
	}
	keys, now, err := a.keys()
	if err != nil {
		return nil, false, err
	}
	if err := keys.Check(); err != nil {
		return nil, false, fmt.Errorf("%s: %w", AWS, err)
	}
	a.signed = true
	date := now.UTC().Format(awsTime)
	doc, start := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "a", callerIdentity(host, nonce, keys, date).authorization(keys))
	doc = bson.AppendString(doc, "d", date)
	if keys.SessionToken != "" {
		doc = bson.AppendString(doc, "t", keys.SessionToken)
	}
	return bson.EndDocument(doc, start), false, nil
}

// parseFirst reads the server's nonce, which begins with the client's, and the host of the token service.
func (a *awsClient) parseFirst(challenge []byte) (nonce []byte, host string, err error) {
	doc := bson.Raw(challenge)
	if doc.Validate() != nil {
		return nil, "", fmt.Errorf("%s: the server's first message is no document", AWS)
	}
	_, nonce, _ = doc.Lookup("s").BinaryOK()
	if len(nonce) != 2*awsNonce || !bytes.Equal(nonce[:awsNonce], a.nonce) {
		return nil, "", fmt.Errorf("%s: the server's nonce does not extend the client's to %d bytes", AWS, 2*awsNonce)
	}
	host, _ = doc.Lookup("h").StringValueOK()
	_, err = regionOf(host)
	return nonce, host, err
}

// regionOf is the region of a host of the token service (authentication specification, "Region calculation").
func regionOf(host string) (string, error) {
	if host == "" || len(host) > 255 || strings.HasPrefix(host, ".") || strings.HasSuffix(host, ".") || strings.Contains(host, "..") {
		return "", fmt.Errorf("%s: the server names %s as the host of the token service, which is no host name", AWS, printable(host))
	}
	labels := strings.Split(host, ".")
	if len(labels) == 1 || host == "sts.amazonaws.com" || host == "aws.amazonaws.com" {
		return "us-east-1", nil
	}
	return labels[1], nil
}

// callerIdentity is the request that the server sends on.
func callerIdentity(host string, nonce []byte, keys AWSKeys, date string) awsRequest {
	region, _ := regionOf(host) // checked
	r := awsRequest{method: "POST", region: region, service: "sts", date: date, body: awsAction, headers: [][2]string{
		{"content-length", fmt.Sprint(len(awsAction))},
		{"content-type", "application/x-www-form-urlencoded"},
		{"host", host},
		{"x-amz-date", date},
	}}
	if keys.SessionToken != "" {
		r.headers = append(r.headers, [2]string{"x-amz-security-token", keys.SessionToken})
	}
	r.headers = append(r.headers, [2]string{"x-mongodb-gs2-cb-flag", "n"},
		[2]string{"x-mongodb-server-nonce", base64.StdEncoding.EncodeToString(nonce)})
	return r
}
