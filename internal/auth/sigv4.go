package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	awsTime      = "20060102T150405Z"
	awsAlgorithm = "AWS4-HMAC-SHA256"
)

// awsRequest is a request to be signed by AWS Signature Version 4. Its path is "/".
type awsRequest struct {
	method          string
	query           string      // in canonical form
	headers         [][2]string // names in lower case, in order; all are signed
	body            string
	region, service string
	date            string // in the form awsTime
}

// authorization is the value of the header Authorization.
func (r awsRequest) authorization(keys AWSKeys) string {
	return fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		awsAlgorithm, keys.AccessKeyID, r.scope(), r.signedHeaders(), r.signature(keys.SecretAccessKey))
}

func (r awsRequest) scope() string {
	return strings.Join([]string{r.date[:8], r.region, r.service, "aws4_request"}, "/")
}

func (r awsRequest) signedHeaders() string {
	names := make([]string, len(r.headers))
	for i, h := range r.headers {
		names[i] = h[0]
	}
	return strings.Join(names, ";")
}

func (r awsRequest) canonical() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n/\n%s\n", r.method, r.query)
	for _, h := range r.headers {
		fmt.Fprintf(&b, "%s:%s\n", h[0], strings.TrimSpace(h[1]))
	}
	fmt.Fprintf(&b, "\n%s\n%s", r.signedHeaders(), sha256Hex(r.body))
	return b.String()
}

func (r awsRequest) signature(secret string) string {
	key := []byte("AWS4" + secret)
	for _, part := range []string{r.date[:8], r.region, r.service, "aws4_request"} {
		key = mac(sha256.New, key, part)
	}
	text := strings.Join([]string{awsAlgorithm, r.date, r.scope(), sha256Hex(r.canonical())}, "\n")
	return hex.EncodeToString(mac(sha256.New, key, text))
}

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
