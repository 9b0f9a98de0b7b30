package credential

import (
	"context"
	"sync"
	"time"

	"github.com/sextantdb/sextant/internal/auth"
)

// AWS has the keys of one client for MONGODB-AWS. Given ones come first, then the program's provider, then what the
// machine has (authentication specification, "Obtaining credentials").
type AWS struct {
	Keys     auth.AWSKeys // given with the client; without an access key id: none
	Provider func(ctx context.Context) (auth.AWSKeys, error)
	System   System
	Cache    *AWSCache // nil: the one of the process, since all clients of a machine ask the same services
}

// AWSCache keeps keys that were fetched, by the service that gave them. The zero value is empty.
type AWSCache struct {
	mu   sync.Mutex // guards keys; never held while keys are fetched, as the specification demands
	keys map[string]auth.AWSKeys
}

var processKeys AWSCache

// freshFor is how long keys must still be valid to be used: the server checks them later than the client.
const freshFor = 5 * time.Minute

func (c *AWSCache) get(service string) (auth.AWSKeys, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, known := c.keys[service]
	return k, known
}

func (c *AWSCache) put(service string, k auth.AWSKeys) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = map[string]auth.AWSKeys{service: k} // a process has one service, unless its environment changes
}

func (c *AWSCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = nil
}

func (a *AWS) cache() *AWSCache {
	if a.Cache != nil {
		return a.Cache
	}
	return &processKeys
}

// Get returns keys to sign with. Those of the environment variables are read anew each time; those of a service are
// kept until five minutes before they expire, and once there are such, the variables are not looked at any more, as in
// Amazon's own libraries. An error wraps mongoerr.ErrNoCredentials.
func (a *AWS) Get(ctx context.Context) (auth.AWSKeys, error) {
	if a.Keys.AccessKeyID != "" {
		return a.Keys, nil
	}
	if a.Provider != nil {
		return a.provided(ctx)
	}
	svc := a.System.awsService()
	kept, known := a.cache().get(svc.id)
	switch {
	case known && (kept.Expiration.IsZero() || time.Until(kept.Expiration) > freshFor):
		return kept, nil
	case !known:
		if k, found, err := a.System.awsVariables(); found || err != nil {
			return k, failed(err)
		}
	}
	k, err := svc.fetch(ctx)
	if err != nil {
		return k, failed(a.System.tried(err))
	}
	a.cache().put(svc.id, k)
	return k, nil
}

// provided asks the program. It keeps nothing: whoever provides knows how long keys are good.
func (a *AWS) provided(ctx context.Context) (k auth.AWSKeys, err error) {
	ctx, cancel := context.WithTimeout(ctx, MachineTimeout)
	defer cancel()
	if err := guard("the AWS credential provider", func() error { k, err = a.Provider(ctx); return err }); err != nil {
		return k, failed(err)
	}
	return k, failed(k.Check())
}

// Forget drops what is kept, because the server refused a login with it.
func (a *AWS) Forget() { a.cache().clear() }
