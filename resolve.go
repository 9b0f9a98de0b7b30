package sextant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"

	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/mongoerr"
)

// Resolver asks DNS for what a mongodb+srv string stands for. *net.Resolver is one.
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, addrs []*net.SRV, err error)
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// Resolve asks DNS for the hosts that SRVHost stands for, and for the defaults in its TXT record, and sets Hosts and,
// where they are unset, AuthSource, ReplicaSet and LoadBalanced. It does nothing if there is no SRVHost, or if Hosts are
// given: ConnectConfig, which resolves its copy of the configuration, then starts from these and asks DNS later alone.
//
// SRV and TXT are asked at the same time. Both lookups together last no longer than ctx and ConnectTimeout allow; a
// resolver that fails for the time being is asked a second time. What DNS has not, or must not have, is an error of
// stage config; a DNS that does not answer is one of stage dial.
//
// The specification demands that hosts from DNS lie below the domain of the string (for host.example.com below
// example.com, for example.com below itself), and that a TXT record hold nothing but authSource, replicaSet and
// loadBalanced. The official driver for Go passes over a TXT record that cannot be asked for; here that is an error,
// since a client without its authSource or replicaSet is another client.
func (c *Config) Resolve(ctx context.Context) error {
	switch {
	case c == nil:
		return configError("the configuration is nil")
	case ctx == nil:
		return configError("the context is nil")
	}
	if c.SRVHost == "" || len(c.Hosts) > 0 {
		return nil
	}
	q, err := c.lookup()
	if err != nil {
		return err
	}
	ctx, cancel := c.connectLimit(ctx)
	defer cancel()
	srv, txt, err := c.ask(ctx, q)
	if err != nil {
		return err
	}
	hosts, refused := q.Judge(srv)
	if len(refused) > 0 {
		return resolveError(mongoerr.StageConfig, q.Host, first(refused))
	}
	defaults, warnings, err := connstring.ParseTXT(q.Host, txt)
	if err != nil {
		return resolveError(mongoerr.StageConfig, q.Host, err)
	}
	c.adopt(defaults, warnings)
	c.Hosts = connstring.Choose(hosts, c.SRVMaxHosts, rand.IntN)
	return c.checkTogether()
}

// first is the first of several faults, with the number of the others.
func first(faults []error) error {
	if len(faults) == 1 {
		return faults[0]
	}
	return fmt.Errorf("%w (and %d other records)", faults[0], len(faults)-1)
}

// lookup is the question to DNS.
func (c *Config) lookup() (*connstring.Lookup, error) {
	if err := c.checkSRV(); err != nil {
		return nil, err
	}
	q := &connstring.Lookup{Service: c.SRVServiceName, Validate: c.hostValidator()}
	var err error
	if q.Host, err = connstring.NormalHost(c.SRVHost); err != nil {
		return nil, configError("SRVHost %q cannot be used: %s", c.SRVHost, err)
	}
	if c.SRVAllowedHostsSuffix != "" {
		if q.Suffix, err = connstring.NormalSuffix(c.SRVAllowedHostsSuffix); err != nil {
			return nil, configError("%s", err)
		}
	}
	return q, nil
}

// hostValidator is the caller's function, of which a panic harms nobody.
func (c *Config) hostValidator() func(string) error {
	if c.SRVHostValidator == nil {
		return nil
	}
	return func(host string) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("it panicked: %v", p)
			}
		}()
		return c.SRVHostValidator(host)
	}
}

func (c *Config) connectLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := cluster.DefaultConnectTimeout
	if c.ConnectTimeout != nil {
		limit = *c.ConnectTimeout
	}
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// ask asks for both records at once. The error of the SRV record goes first.
func (c *Config) ask(limited context.Context, q *connstring.Lookup) (srv []connstring.Record, txt []string, err error) {
	ctx, cancel := context.WithCancel(limited)
	defer cancel()
	r := c.resolver()
	var failed error
	var wait sync.WaitGroup
	wait.Go(func() { txt, failed = askTXT(ctx, r, q) })
	srv, err = cluster.AskSRV(ctx, r, q)
	if err != nil {
		cancel()
	}
	wait.Wait()
	if err != nil {
		return nil, nil, notResolved(limited, q, "SRV record "+q.Name(), err)
	}
	if failed != nil {
		return nil, nil, notResolved(limited, q, "TXT record of "+q.Host, failed)
	}
	return srv, txt, nil
}

// askTXT is the TXT records of the host; to have none is no error.
func askTXT(ctx context.Context, r Resolver, q *connstring.Lookup) (txt []string, err error) {
	for range 2 {
		txt, err = r.LookupTXT(ctx, q.Host)
		d, _ := errors.AsType[*net.DNSError](err)
		if d != nil && d.IsNotFound {
			return nil, nil
		}
		if d == nil || !d.Temporary() || ctx.Err() != nil {
			break
		}
	}
	return txt, err
}

// adopt takes the defaults from DNS where nothing else is given.
func (c *Config) adopt(o *connstring.Options, warnings []connstring.Warning) {
	if c.AuthSource == "" {
		c.AuthSource = o.AuthSource
	}
	if c.ReplicaSet == "" {
		c.ReplicaSet = o.ReplicaSet
	}
	if c.LoadBalanced == nil {
		c.LoadBalanced = o.LoadBalanced
	}
	for _, w := range warnings {
		c.Warnings = append(c.Warnings, Warning(w))
	}
}

// notResolved says what was asked, of whom, what came of it and what to do.
func notResolved(ctx context.Context, q *connstring.Lookup, asked string, err error) error {
	if end := ctx.Err(); end != nil {
		err = end
	}
	d, _ := errors.AsType[*net.DNSError](err)
	from := ""
	if d != nil && d.Server != "" {
		from = " by " + d.Server
	}
	switch {
	case errors.Is(err, cluster.ErrNoSRV) || d != nil && d.IsNotFound:
		return resolveError(mongoerr.StageConfig, q.Host, fmt.Errorf("DNS has no %s%s: is the name right, and is it known to the DNS of this network? "+
			"Another service is named by srvServiceName; hosts that have no SRV record are listed in a string that begins with mongodb://", asked, from))
	case d != nil && d.Timeout() || errors.Is(err, context.DeadlineExceeded):
		return resolveError(mongoerr.StageDial, q.Host, &lookupError{"DNS did not answer in time" + from + " when asked for the " + asked +
			": is it reachable from here, by UDP and TCP?", err})
	case errors.Is(err, context.Canceled):
		return resolveError(mongoerr.StageDial, q.Host, &lookupError{"given up while DNS was asked for the " + asked, err})
	}
	return resolveError(mongoerr.StageDial, q.Host, &lookupError{"DNS" + from + " could not be asked for the " + asked, err})
}

// lookupError puts words before the error of a resolver.
type lookupError struct {
	words string
	cause error
}

func (e *lookupError) Error() string { return e.words + ": " + e.cause.Error() }
func (e *lookupError) Unwrap() error { return e.cause }

func resolveError(stage mongoerr.Stage, host string, err error) error {
	return mongoerr.Wrap(stage, err, "mongodb+srv://%s does not lead to hosts", host)
}

// srvFailed logs why an answer of DNS was not followed. A handler that panics harms nobody.
func (c *Config) srvFailed(name string) func(error) {
	if c.Logger == nil {
		return nil
	}
	return func(err error) {
		defer func() { _ = recover() }()
		c.Logger.LogAttrs(context.Background(), slog.LevelWarn, "mongodb+srv: the answer of DNS is not followed, or not wholly; what is known stays",
			slog.String("srv", name), slog.String("error", err.Error()))
	}
}

// resolver is the one to ask.
func (c *Config) resolver() Resolver {
	if c.Resolver != nil {
		return guarded{c.Resolver}
	}
	return rooted{net.DefaultResolver}
}

// guarded is a resolver of the caller's: a panic of it is an error, records that are nil are none, and a lookup that does
// not return when its context ends is waited for no longer.
type guarded struct{ r Resolver }

func (g guarded) LookupSRV(ctx context.Context, service, proto, name string) (cname string, found []*net.SRV, err error) {
	found, err = answerOf(ctx, func() ([]*net.SRV, error) {
		_, found, err := g.r.LookupSRV(ctx, service, proto, name) // nobody wants to know the canonical name
		return slices.DeleteFunc(slices.Clone(found), func(s *net.SRV) bool { return s == nil }), err
	})
	return "", found, err
}

func (g guarded) LookupTXT(ctx context.Context, name string) ([]string, error) {
	return answerOf(ctx, func() ([]string, error) { return g.r.LookupTXT(ctx, name) })
}

// answerOf is what the caller's resolver answers before the context ends. Its goroutine lasts as long as the lookup, which
// may be longer.
func answerOf[T any](ctx context.Context, lookup func() ([]T, error)) ([]T, error) {
	type answer struct {
		found []T
		err   error
	}
	came := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the Resolver ended its goroutine")} // runtime.Goexit, unless the lookup returns
		defer func() {
			if r := recover(); r != nil {
				a = answer{err: fmt.Errorf("the Resolver panicked: %v", r)}
			}
			came <- a
		}()
		a.found, a.err = lookup()
	}()
	select {
	case a := <-came:
		return a.found, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rooted asks for names as they are, without trying the system's search domains: what those find lies outside the domain
// of the connection string anyway.
type rooted struct{ r *net.Resolver }

func (d rooted) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	return d.r.LookupSRV(ctx, service, proto, name+".")
}

func (d rooted) LookupTXT(ctx context.Context, name string) ([]string, error) {
	return d.r.LookupTXT(ctx, name+".")
}
