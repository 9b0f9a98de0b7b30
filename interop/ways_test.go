package interop

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/replset"
)

// A way is how clients come to a set.
type way struct {
	name        string
	mechanism   string // that the set's user has; none: no login
	tls         bool
	certificate bool // clients must show one
}

var ways = []way{
	{name: "plain"},
	{name: "SCRAM", mechanism: "SCRAM-SHA-256"},
	{name: "TLS", tls: true, certificate: true},
	{name: "SCRAM and TLS", mechanism: "SCRAM-SHA-1", tls: true},
}

// Passwords have characters that a connection string must escape; ann's has one that SASLprep maps.
var passwords = map[string]string{"ann": "p@ss:w/örd\u00a0%", "asa": "p@ss:w/ord %"}

// set starts three members with tags: two in the east, of which one on disks of its own, one in the west.
func (w way) set(t *testing.T) *replset.Set {
	t.Helper()
	o := replset.Options{Members: 3, ElectionTimeout: 2 * time.Second, Config: []replset.MemberOptions{
		{Tags: map[string]string{"dc": "east", "disk": "fast"}}, {Tags: map[string]string{"dc": "east", "disk": "slow"}}, {Tags: map[string]string{"dc": "west"}}}}
	if w.mechanism != "" {
		for name, password := range passwords {
			o.Users = append(o.Users, replset.User{Name: name, Password: password, Mechanisms: []string{w.mechanism}})
		}
	}
	if w.tls {
		o.TLS = &replset.TLS{ClientCertificates: w.certificate}
	}
	return replset.Run(t, o)
}

// uri is the set's, as a client is told it.
func (w way) uri(set *replset.Set, s stranger, wait time.Duration, password func(user string) string) string {
	uri := fmt.Sprintf("%s&retryWrites=true&w=majority&serverSelectionTimeoutMS=%d&appName=%s%s", set.URI(), wait.Milliseconds(), s.name, s.options)
	if w.mechanism == "" {
		return uri
	}
	user := "ann"
	if s.ascii {
		user = "asa"
	}
	login := user + ":" + strings.ReplaceAll(url.QueryEscape(password(user)), "+", "%20")
	return strings.Replace(uri, "://", "://"+login+"@", 1)
}

func rightPassword(user string) string { return passwords[user] }
func wrongPassword(string) string      { return "wrong" }

// TestStrangersPlayTheScenario has every foreign client play the same scenario in each way of coming to the set.
func TestStrangersPlayTheScenario(t *testing.T) {
	for _, s := range strangers {
		for _, w := range ways {
			t.Run(s.name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				set := w.set(t)
				p := s.pull(t, w.uri(set, s, patience/2, rightPassword))
				p.discovers(set)
				for _, step := range scenario {
					step.check(p)
				}
				p.readsInBatches(set, s.name)
				p.reachesWhomItNames(set, s.name)
				stepDown := func(int) error { return set.StepDown(context.Background()) }
				p.survives(s, "a step-down", set, stepDown)
				var dead int
				p.survives(s, "a killed primary", set, func(primary int) error {
					dead = primary
					return set.Kill(primary)
				})
				if err := set.Restart(dead); err != nil {
					t.Fatal(err)
				}
				p.survives(s, "a second step-down", set, stepDown)
			})
		}
	}
}

// TestStrangersWithTheWrongPasswordAreRefused has every client show a wrong password to each mechanism.
func TestStrangersWithTheWrongPasswordAreRefused(t *testing.T) {
	for _, s := range strangers {
		for _, w := range ways {
			if w.mechanism == "" || s.name == "mongosh" { // which does not even start then: mongosh_test.go
				continue
			}
			t.Run(s.name+"/"+w.mechanism, func(t *testing.T) {
				t.Parallel()
				a := s.pull(t, w.uri(w.set(t), s, 3*time.Second, wrongPassword)).do(`{"op":"count","collection":"people"}`)
				if a.Error == nil || !strings.Contains(strings.ToLower(a.Error.Message), "authentication fail") {
					t.Errorf("with a wrong password: %+v", a)
				}
			})
		}
	}
}
