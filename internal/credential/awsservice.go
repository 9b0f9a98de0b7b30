package credential

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sextantdb/sextant/internal/auth"
)

// awsVariables are the keys in the environment. found says that there are any.
func (s *System) awsVariables() (k auth.AWSKeys, found bool, err error) {
	k = auth.AWSKeys{AccessKeyID: s.env("AWS_ACCESS_KEY_ID"), SecretAccessKey: s.env("AWS_SECRET_ACCESS_KEY"), SessionToken: s.env("AWS_SESSION_TOKEN")}
	if k.AccessKeyID == "" && k.SecretAccessKey == "" {
		return k, false, nil
	}
	if err := k.Check(); err != nil {
		return k, true, fmt.Errorf("of the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY one is empty: %w", err)
	}
	return k, true, nil
}

// awsService is the one that gives keys to this machine. id tells one from another.
type awsService struct {
	id    string
	fetch func(ctx context.Context) (auth.AWSKeys, error)
}

func (s *System) awsService() awsService {
	if token, role := s.env("AWS_WEB_IDENTITY_TOKEN_FILE"), s.env("AWS_ROLE_ARN"); token != "" && role != "" {
		return awsService{"web identity " + token + " " + role, func(ctx context.Context) (auth.AWSKeys, error) { return s.webIdentity(ctx, token, role) }}
	}
	if path := s.env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return s.container("http://169.254.170.2" + "/" + strings.TrimPrefix(path, "/"))
	}
	if full := s.env("AWS_CONTAINER_CREDENTIALS_FULL_URI"); full != "" {
		return s.container(full)
	}
	base := strings.TrimSuffix(cmp.Or(s.env("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254"), "/")
	return awsService{"instance " + base, func(ctx context.Context) (auth.AWSKeys, error) { return s.instance(ctx, base) }}
}

// tried is the error of the last source with those before it, so that whoever thought to have given keys sees where none
// were found. Variables appear by their names alone.
func (s *System) tried(err error) error {
	said := []string{"no keys are given with the client"}
	for _, source := range [][]string{
		{"AWS_ACCESS_KEY_ID"}, {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"},
		{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"}, {"AWS_CONTAINER_CREDENTIALS_FULL_URI"},
	} {
		missing := slices.DeleteFunc(source, func(name string) bool { return s.env(name) != "" })
		if len(missing) == 0 {
			break
		}
		said = append(said, "the environment has no "+strings.Join(missing, " and no "))
	}
	return fmt.Errorf("%s; %w", strings.Join(said, "; "), err)
}

// webIdentity exchanges the token that EKS gives to a pod for keys (AssumeRoleWithWebIdentity).
func (s *System) webIdentity(ctx context.Context, file, role string) (auth.AWSKeys, error) {
	token, err := s.file(file)
	if err != nil {
		return auth.AWSKeys{}, fmt.Errorf("the file that AWS_WEB_IDENTITY_TOKEN_FILE names: %w", err)
	}
	form := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {role},
		"RoleSessionName": {cmp.Or(s.env("AWS_ROLE_SESSION_NAME"), "sextant-"+rand.Text()[:12])}, "WebIdentityToken": {token}}
	r := request{method: "POST", url: s.stsURL(), body: form.Encode(), secrets: []string{token},
		headers: [][2]string{{"Accept", "application/json"}, {"Content-Type", "application/x-www-form-urlencoded"}}}
	body, err := s.fetch(ctx, r)
	if err != nil {
		return auth.AWSKeys{}, err
	}
	// The service wraps the result twice; the authentication specification shows it bare.
	type result struct{ Credentials awsReply }
	var reply struct {
		result
		Response struct {
			Result result `json:"AssumeRoleWithWebIdentityResult"`
		} `json:"AssumeRoleWithWebIdentityResponse"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return auth.AWSKeys{}, fmt.Errorf("the answer of the AWS token service is not JSON")
	}
	if reply.Credentials.AccessKeyId == "" {
		reply.Credentials = reply.Response.Result.Credentials
	}
	return reply.Credentials.keys(r)
}

// stsURL is the token service of the region, as Amazon's own libraries choose it.
func (s *System) stsURL() string {
	if set := s.env("AWS_ENDPOINT_URL_STS"); set != "" {
		return set
	}
	region := cmp.Or(s.env("AWS_REGION"), s.env("AWS_DEFAULT_REGION"))
	switch {
	case region == "" || strings.ContainsAny(region, "/@:?#"):
		return "https://sts.amazonaws.com/"
	case strings.HasPrefix(region, "cn-"):
		return "https://sts." + region + ".amazonaws.com.cn/"
	}
	return "https://sts." + region + ".amazonaws.com/"
}

// container asks the agent of ECS, or the one of EKS Pod Identity.
func (s *System) container(address string) awsService {
	return awsService{"container " + address, func(ctx context.Context) (auth.AWSKeys, error) {
		if err := checkContainer(address); err != nil {
			return auth.AWSKeys{}, err
		}
		r := request{method: "GET", url: address, headers: [][2]string{{"Accept", "application/json"}}}
		if id := path.Base(address); hideWords(id) == hidden { // whoever knows ECS's gets the keys
			r.secrets = append(r.secrets, id)
		}
		token := s.env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
		if file := s.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
			var err error
			if token, err = s.file(file); err != nil {
				return auth.AWSKeys{}, fmt.Errorf("the file that AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE names: %w", err)
			}
		}
		if token != "" {
			r.headers, r.secrets = append(r.headers, [2]string{"Authorization", token}), append(r.secrets, token)
		}
		return s.awsKeys(ctx, r)
	}}
}

// checkContainer refuses to ask a stranger in the clear, as Amazon's own libraries do.
func checkContainer(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL with a host")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && (ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.String() == "fd00:ec2::23") {
		return nil
	}
	return fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI names %q, which is neither https nor on this machine", u.Hostname())
}

// instance asks the metadata service of EC2, version 2: for a session, for the role, for its keys.
func (s *System) instance(ctx context.Context, base string) (auth.AWSKeys, error) {
	if strings.EqualFold(s.env("AWS_EC2_METADATA_DISABLED"), "true") {
		return auth.AWSKeys{}, fmt.Errorf("EC2's metadata service must not be asked (AWS_EC2_METADATA_DISABLED)")
	}
	session, err := s.fetch(ctx, request{method: "PUT", url: base + "/latest/api/token",
		headers: [][2]string{{"X-aws-ec2-metadata-token-ttl-seconds", "30"}}})
	if err != nil {
		return auth.AWSKeys{}, fmt.Errorf("EC2's metadata service cannot be asked: %w", err)
	}
	secrets := []string{string(session)}
	header := [][2]string{{"X-aws-ec2-metadata-token", strings.TrimSpace(string(session))}}
	const roles = "/latest/meta-data/iam/security-credentials/"
	list, err := s.fetch(ctx, request{method: "GET", url: base + roles, headers: header, secrets: secrets})
	if err != nil {
		return auth.AWSKeys{}, fmt.Errorf("the machine seems to have no role: %w", err)
	}
	role, _, _ := strings.Cut(strings.TrimSpace(string(list)), "\n")
	return s.awsKeys(ctx, request{method: "GET", url: base + roles + url.PathEscape(strings.TrimSpace(role)), headers: header, secrets: secrets})
}

func (s *System) awsKeys(ctx context.Context, r request) (auth.AWSKeys, error) {
	body, err := s.fetch(ctx, r)
	if err != nil {
		return auth.AWSKeys{}, err
	}
	var reply awsReply
	if json.Unmarshal(body, &reply) != nil {
		return auth.AWSKeys{}, fmt.Errorf("the answer with the AWS keys is not JSON")
	}
	return reply.keys(r)
}

// awsReply is a service's answer. The token has one of two names; the expiration is a text or seconds since 1970.
type awsReply struct {
	Code, Message                string
	AccessKeyId, SecretAccessKey string
	Token, SessionToken          string
	Expiration                   json.RawMessage
}

// keys are those of an answer to the request.
func (r awsReply) keys(asked request) (auth.AWSKeys, error) {
	if r.Code != "" && r.Code != "Success" {
		return auth.AWSKeys{}, fmt.Errorf("the service gives no AWS keys: %s", asked.quote(r.Code+" "+r.Message))
	}
	k := auth.AWSKeys{AccessKeyID: r.AccessKeyId, SecretAccessKey: r.SecretAccessKey, SessionToken: cmp.Or(r.Token, r.SessionToken)}
	if err := k.Check(); err != nil {
		return k, fmt.Errorf("in the answer of the service: %w", err)
	}
	var err error
	k.Expiration, err = expiration(r.Expiration)
	return k, err
}

func expiration(raw json.RawMessage) (time.Time, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return time.Time{}, nil
	}
	if seconds, err := strconv.ParseFloat(string(raw), 64); err == nil {
		return time.Unix(int64(seconds), 0), nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return time.Time{}, fmt.Errorf("the expiration of the AWS keys is no time")
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("the expiration of the AWS keys is no time")
	}
	return t, nil
}
