package credential

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// Environments are the values of the property ENVIRONMENT that have a meaning here.
const (
	Azure      = "azure"
	GCP        = "gcp"
	Kubernetes = "k8s"
	Test       = "test" // of the specification's own tests: a file
)

// Environment is the callback for a program that runs in such an environment; resource is the property TOKEN_RESOURCE
// (authentication specification, "Built-in OIDC environment integrations").
func (s System) Environment(name, resource string) (OIDCFunc, error) {
	switch name {
	case Azure:
		return func(ctx context.Context, args OIDCArgs) (OIDCToken, error) {
			return s.azure(ctx, resource, args.Username)
		}, nil
	case GCP:
		return func(ctx context.Context, _ OIDCArgs) (OIDCToken, error) { return s.gcp(ctx, resource) }, nil
	case Kubernetes:
		return func(context.Context, OIDCArgs) (OIDCToken, error) { return s.tokenFile(s.kubernetesFile()) }, nil
	case Test:
		return func(context.Context, OIDCArgs) (OIDCToken, error) { return s.tokenFile(s.env("OIDC_TOKEN_FILE")) }, nil
	}
	return nil, fmt.Errorf("there is no environment %q", name)
}

// azure asks the metadata service of the virtual machine, or what AZURE_POD_IDENTITY_AUTHORITY_HOST names in its place.
func (s *System) azure(ctx context.Context, resource, clientID string) (t OIDCToken, err error) {
	base := strings.TrimSuffix(cmp.Or(s.env("AZURE_POD_IDENTITY_AUTHORITY_HOST"), "http://169.254.169.254"), "/")
	address := base + "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=" + url.QueryEscape(resource)
	if clientID != "" {
		address += "&client_id=" + url.QueryEscape(clientID)
	}
	body, err := s.fetch(ctx, request{method: "GET", url: address, headers: [][2]string{{"Accept", "application/json"}, {"Metadata", "true"}}})
	if err != nil {
		return t, err
	}
	var reply struct {
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(body, &reply) != nil || reply.AccessToken == "" {
		return t, fmt.Errorf("the answer of Azure's metadata service holds no access_token")
	}
	return OIDCToken{AccessToken: reply.AccessToken}, nil
}

// gcp asks the metadata service of Google Cloud, or what GCE_METADATA_HOST names in its place.
func (s *System) gcp(ctx context.Context, resource string) (t OIDCToken, err error) {
	address := "http://" + cmp.Or(s.env("GCE_METADATA_HOST"), "metadata") +
		"/computeMetadata/v1/instance/service-accounts/default/identity?audience=" + url.QueryEscape(resource)
	body, err := s.fetch(ctx, request{method: "GET", url: address, headers: [][2]string{{"Metadata-Flavor", "Google"}}})
	if err != nil {
		return t, err
	}
	return OIDCToken{AccessToken: strings.TrimSpace(string(body))}, nil
}

// kubernetesFile is where a pod has its token: that of Azure's or Amazon's Kubernetes, else that of any.
func (s *System) kubernetesFile() string {
	return cmp.Or(s.env("AZURE_FEDERATED_TOKEN_FILE"), s.env("AWS_WEB_IDENTITY_TOKEN_FILE"), "/var/run/secrets/kubernetes.io/serviceaccount/token")
}

func (s *System) tokenFile(path string) (t OIDCToken, err error) {
	if path == "" {
		return t, fmt.Errorf("the environment variable with the path of the token is empty")
	}
	if t.AccessToken, err = s.file(path); err != nil {
		return t, fmt.Errorf("the file with the access token: %w", err)
	}
	return t, nil
}
