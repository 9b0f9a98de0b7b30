package credential

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sextantdb/sextant/internal/auth"
)

// OIDCArgs are what a callback is told.
type OIDCArgs struct {
	Version      int           // of this interface: 1
	Username     string        // of the configuration; may be empty
	IDPInfo      *auth.IDPInfo // for people: where they log in
	RefreshToken string        // for people: of the last login, if there was one
}

// OIDCToken is what a callback returns.
type OIDCToken struct {
	AccessToken  string
	ExpiresIn    time.Duration // 0: for ever. It is not used yet, as the specification has it.
	RefreshToken string
}

// Format hides the tokens from every verb of fmt.
func (t OIDCToken) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "an OIDC token") }

// OIDCFunc gets an access token. Its context ends when it takes too long.
type OIDCFunc func(ctx context.Context, args OIDCArgs) (OIDCToken, error)

// Limits of callbacks (authentication specification, "OIDC Callback" and "OIDC Human Callback").
const (
	MachineTimeout = time.Minute
	HumanTimeout   = 5 * time.Minute
	oidcPause      = 100 * time.Millisecond // between two calls
	oidcVersion    = 1
)

// DefaultAllowedHosts are those to which a person's token is sent unless the configuration names others.
var DefaultAllowedHosts = []string{"*.mongodb.net", "*.mongodb-qa.net", "*.mongodb-dev.net", "*.mongodbgov.net", "localhost", "127.0.0.1", "::1"}

// OIDC has the access token of one client, and where to get another. Of Machine and Human one is set.
type OIDC struct {
	username     string
	machine      OIDCFunc
	human        OIDCFunc
	allowedHosts []string

	turn chan struct{} // whoever holds its one element calls a callback

	mu      sync.Mutex // guards all below; never held across a callback
	token   string
	refresh string
	idp     *auth.IDPInfo
	called  time.Time // when a callback last began
}

// NewMachine makes the OIDC of a program that gets its tokens by itself.
func NewMachine(username string, f OIDCFunc) *OIDC {
	return &OIDC{username: username, machine: f, turn: make(chan struct{}, 1)}
}

// NewHuman makes the OIDC of a program whose user logs in. Nil hosts are DefaultAllowedHosts.
func NewHuman(username string, f OIDCFunc, hosts []string) *OIDC {
	if hosts == nil {
		hosts = DefaultAllowedHosts
	}
	return &OIDC{username: username, human: f, allowedHosts: hosts, turn: make(chan struct{}, 1)}
}

// Human says whether a person logs in.
func (o *OIDC) Human() bool { return o.human != nil }

// Username is the user of the configuration; it may be empty.
func (o *OIDC) Username() string { return o.username }

// Timeout is how long a callback may take.
func (o *OIDC) Timeout() time.Duration {
	if o.Human() {
		return HumanTimeout
	}
	return MachineTimeout
}

// Cached is the access token that was last good, "" if there is none.
func (o *OIDC) Cached() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.token
}

// Invalidate drops an access token that the server refused, unless there is a newer one.
func (o *OIDC) Invalidate(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.token == token {
		o.token = ""
	}
}

// CanRefresh says whether there is a refresh token of an earlier login.
func (o *OIDC) CanRefresh() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refresh != "" && o.idp != nil
}

// ForgetRefresh drops the refresh token, because what it brought was refused.
func (o *OIDC) ForgetRefresh() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refresh = ""
}

// Machine returns the access token that is cached, or a new one. An error wraps mongoerr.ErrNoCredentials.
func (o *OIDC) Machine(ctx context.Context) (string, error) {
	return o.fetch(ctx, func() (OIDCFunc, OIDCArgs) { return o.machine, OIDCArgs{} })
}

// Refresh gets an access token by the refresh token.
func (o *OIDC) Refresh(ctx context.Context) (string, error) {
	return o.fetch(ctx, func() (OIDCFunc, OIDCArgs) { return o.human, OIDCArgs{IDPInfo: o.idp, RefreshToken: o.refresh} })
}

// LogIn has a person log in at the identity provider.
func (o *OIDC) LogIn(ctx context.Context, idp auth.IDPInfo) (string, error) {
	return o.fetch(ctx, func() (OIDCFunc, OIDCArgs) { return o.human, OIDCArgs{IDPInfo: &idp} })
}

// fetch calls a callback, one at a time, and keeps what it brings. Who comes second finds what the first has got, so
// that nobody logs in twice because two connections are opened. what is called under the lock.
func (o *OIDC) fetch(ctx context.Context, what func() (OIDCFunc, OIDCArgs)) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout(), fmt.Errorf("the callback took longer than %v", o.Timeout()))
	defer cancel()
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return "", failed(fmt.Errorf("another connection waits for an access token: %w", context.Cause(ctx)))
	}
	defer func() { <-o.turn }()
	o.mu.Lock()
	token, rest := o.token, oidcPause-time.Since(o.called)
	call, args := what()
	o.mu.Unlock()
	if token != "" {
		return token, nil
	}
	if err := pause(ctx, rest); err != nil {
		return "", failed(err)
	}
	args.Version, args.Username = oidcVersion, o.username
	got, err := o.ask(ctx, call, args)
	if err != nil {
		return "", failed(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.token = got.AccessToken
	if o.Human() && (got.RefreshToken != "" || args.RefreshToken == "") { // else the one that was used stays good
		o.refresh = got.RefreshToken
	}
	if o.Human() {
		o.idp = args.IDPInfo
	}
	return got.AccessToken, nil
}

func (o *OIDC) ask(ctx context.Context, call OIDCFunc, args OIDCArgs) (got OIDCToken, err error) {
	o.mu.Lock()
	o.called = time.Now()
	o.mu.Unlock()
	err = guard("the OIDC callback", func() error { got, err = call(ctx, args); return err })
	switch {
	case err != nil && ctx.Err() != nil:
		return got, errors.Join(err, context.Cause(ctx))
	case err != nil:
		return got, err
	case got.AccessToken == "":
		return got, fmt.Errorf("the OIDC callback returned no access token")
	case got.ExpiresIn < 0:
		return got, fmt.Errorf("the OIDC callback returned an access token that expires in %v", got.ExpiresIn)
	}
	return got, nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// guard turns a panic of the program's own code into an error.
func guard(what string, call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%s panicked", what)
		}
	}()
	return call()
}

// CheckHost refuses hosts to which a person's token must not be sent (ALLOWED_HOSTS). addr has the form "host:port".
func (o *OIDC) CheckHost(addr string) error {
	if !o.Human() {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	host = strings.ToLower(host)
	if slices.ContainsFunc(o.allowedHosts, func(pattern string) bool { return allows(strings.ToLower(pattern), host) }) {
		return nil
	}
	return failed(fmt.Errorf("a person's access token is sent to hosts of a list alone, and %s is not on it (Config.OIDCAllowedHosts: %s)",
		host, strings.Join(o.allowedHosts, ", ")))
}

func allows(pattern, host string) bool {
	if suffix, wild := strings.CutPrefix(pattern, "*"); wild && strings.HasPrefix(suffix, ".") {
		return strings.HasSuffix(host, suffix)
	}
	return pattern == host
}
