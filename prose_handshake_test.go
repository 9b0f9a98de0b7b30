package sextant_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/replset"
)

// eavesdropper keeps the body of every message that a client sends.
type eavesdropper struct {
	dial dialFunc
	mu   sync.Mutex // guards sent
	sent [][]bson.Raw
}

type overheardConn struct {
	net.Conn
	e *eavesdropper
	n int
}

func (e *eavesdropper) open(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := e.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, nil)
	return &overheardConn{nc, e, len(e.sent) - 1}, nil
}

func (c *overheardConn) Write(b []byte) (int, error) {
	if m, err := wire.ParseMsg(bytes.Clone(b)); err == nil {
		c.e.mu.Lock()
		c.e.sent[c.n] = append(c.e.sent[c.n], m.Body.Clone())
		c.e.mu.Unlock()
	}
	return c.Conn.Write(b)
}

// hellos are the first messages of all connections, in the order of these. It checks that every one has what every
// handshake must have, and that no later message has.
func (e *eavesdropper) hellos(t *testing.T) (out []bson.Raw) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, sent := range e.sent {
		for i, body := range sent {
			pressure, _ := body.Lookup("backpressure").StringValueOK()
			_, client := body.Lookup("client").DocumentOK()
			if first := i == 0; client != first || first != (pressure == "2") {
				t.Errorf("message %d of a connection: %s", i, body)
			}
		}
		if len(sent) > 0 {
			out = append(out, sent[0])
		}
	}
	return out
}

// greeting is the client document of the newest connection.
func (e *eavesdropper) greeting(t *testing.T) bson.Raw {
	t.Helper()
	all := e.hellos(t)
	d, _ := all[len(all)-1].Lookup("client").DocumentOK()
	return d
}

// overhearing runs a test in a bubble with one member, whose client keeps no idle connection for longer than a millisecond.
func overhearing(t *testing.T, info sextant.DriverInfo, f func(t *testing.T, b *bubble, e *eavesdropper)) {
	t.Helper()
	e := &eavesdropper{}
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		o.Members = 1
		e.dial, c.Dial, c.MaxIdleTime, c.DriverInfo = c.Dial, e.open, time.Millisecond, info
	}, func(t *testing.T, b *bubble) { f(t, b, e) })
}

// greetedAnew lets the open connection become too old, pings on a new one, and returns what that one said.
func (e *eavesdropper) greetedAnew(t *testing.T, b *bubble) bson.Raw {
	t.Helper()
	if err := ping(b.cl)(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	before := len(e.hellos(t))
	if err := ping(b.cl)(); err != nil {
		t.Fatal(err)
	}
	if n := len(e.hellos(t)); n != before+1 {
		t.Fatalf("%d connections, and before %d: this test is about one that is new", n, before)
	}
	return e.greeting(t)
}

func elements(d bson.Raw, path ...string) string {
	s, _ := d.Lookup(path...).StringValueOK()
	return s
}

// Broken by taking a provider for another, by an error where a variable is of the wrong type, and by leaving the container
// out beside a cloud function.
func TestProseHandshake1EnvironmentIsCaptured(t *testing.T) {
	aws := func(more ...string) []string { return append([]string{"AWS_EXECUTION_ENV=AWS_Lambda_java8"}, more...) }
	memory := bson.E{Key: "memory_mb", Value: int32(1024)}
	lambda, east := bson.E{Key: "name", Value: "aws.lambda"}, bson.E{Key: "region", Value: "us-east-2"}
	for _, c := range []struct {
		name string
		vars []string
		want bson.D // client.env but for the runtime, which is this machine's
	}{
		{"1 AWS", aws("AWS_REGION=us-east-2", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=1024"), bson.D{lambda, memory, east}},
		{"2 Azure", []string{"FUNCTIONS_WORKER_RUNTIME=node"}, bson.D{{Key: "name", Value: "azure.func"}}},
		{"3 GCP", []string{"K_SERVICE=servicename", "FUNCTION_MEMORY_MB=1024", "FUNCTION_TIMEOUT_SEC=60", "FUNCTION_REGION=us-central1"},
			bson.D{{Key: "name", Value: "gcp.func"}, {Key: "timeout_sec", Value: int32(60)}, memory, {Key: "region", Value: "us-central1"}}},
		{"4 Vercel", []string{"VERCEL=1", "VERCEL_REGION=cdg1"}, bson.D{{Key: "name", Value: "vercel"}, {Key: "region", Value: "cdg1"}}},
		{"5 several", aws("FUNCTIONS_WORKER_RUNTIME=node"), nil},
		{"6 long", aws("AWS_REGION=" + strings.Repeat("a", 512)), bson.D{lambda}},
		{"7 wrong type", aws("AWS_LAMBDA_FUNCTION_MEMORY_SIZE=big"), bson.D{lambda}},
		{"8 no Lambda", []string{"AWS_EXECUTION_ENV=EC2"}, nil},
		{"9 container", aws("AWS_REGION=us-east-2", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=1024", "KUBERNETES_SERVICE_HOST=1"),
			bson.D{lambda, memory, east, {Key: "container", Value: bson.D{{Key: "orchestrator", Value: "kubernetes"}}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"AWS_EXECUTION_ENV", "AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "FUNCTIONS_WORKER_RUNTIME",
				"K_SERVICE", "FUNCTION_NAME", "FUNCTION_MEMORY_MB", "FUNCTION_TIMEOUT_SEC", "FUNCTION_REGION", "VERCEL", "VERCEL_REGION", "KUBERNETES_SERVICE_HOST"} {
				t.Setenv(name, "")
			}
			for _, v := range c.vars {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			overhearing(t, sextant.DriverInfo{}, func(t *testing.T, b *bubble, e *eavesdropper) {
				if err := ping(b.cl)(); err != nil {
					t.Fatal(err)
				}
				env, _ := e.greeting(t).Lookup("env").DocumentOK()
				if got := withoutRuntime(t, env); !bytes.Equal(got, must[[]byte](t)(bson.Marshal(append(bson.D{}, c.want...)))) {
					t.Errorf("%s, want %v", env, c.want)
				}
			})
		})
	}
}

// withoutRuntime takes from client.env that this test runs in a container of docker, if it does.
func withoutRuntime(t *testing.T, env bson.Raw) []byte {
	t.Helper()
	d := bson.D{}
	for key, v := range env.All() {
		container, ok := v.DocumentOK()
		if !ok {
			d = append(d, bson.E{Key: key, Value: v})
		} else if o := elements(container, "orchestrator"); o != "" {
			d = append(d, bson.E{Key: key, Value: bson.D{{Key: "orchestrator", Value: o}}})
		}
	}
	return must[[]byte](t)(bson.Marshal(d))
}

// Broken by looking at what the server offers before it is needed.
func TestProseHandshake2UnknownMechanismIsNoError(t *testing.T) {
	r := &routers{reply: bson.D{
		{Key: "isWritablePrimary", Value: true}, {Key: "msg", Value: "isdbgrid"}, {Key: "helloOk", Value: true}, {Key: "saslSupportedMechs", Value: bson.A{"CARRIER-PIGEON"}},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21}, {Key: "ok", Value: 1},
	}}
	cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), &sextant.Config{Hosts: []string{"a"}, Dial: r.dial}))
	defer cl.Close(context.Background())
	if _, err := cl.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err != nil {
		t.Error(err)
	}
}

var library = sextant.DriverInfo{Name: "library", Version: "1.2", Platform: "Library Platform"}

// appended checks that a hello says what the one before did, with further texts at the ends of name, version and platform.
func appended(t *testing.T, before, after bson.Raw, d sextant.DriverInfo) {
	t.Helper()
	behind := func(s, more string) string {
		if more == "" {
			return s
		}
		return s + "|" + more
	}
	for _, f := range []struct {
		path []string
		more string
	}{{[]string{"driver", "name"}, d.Name}, {[]string{"driver", "version"}, d.Version}, {[]string{"platform"}, d.Platform}} {
		if got, want := elements(after, f.path...), behind(elements(before, f.path...), f.more); got != want {
			t.Errorf("%v is %q, want %q", f.path, got, want)
		}
	}
	for key, v := range before.All() {
		if key != "driver" && key != "platform" && v.String() != after.Lookup(key).String() {
			t.Errorf("%s was %v and is %v", key, v, after.Lookup(key))
		}
	}
}

var frameworks = []sextant.DriverInfo{
	{Name: "framework", Version: "2.0", Platform: "Framework Platform"}, {Name: "framework", Version: "2.0"},
	{Name: "framework", Platform: "Framework Platform"}, {Name: "framework"},
}

// Broken by replacing what was there, and by a document that is made once for all connections.
func TestProseMetadata1AppendedAfterTheStart(t *testing.T) {
	for _, d := range frameworks {
		overhearing(t, library, func(t *testing.T, b *bubble, e *eavesdropper) {
			before := e.greetedAnew(t, b)
			if !strings.HasSuffix(elements(before, "driver", "name"), "|library") {
				t.Errorf("%s", before)
			}
			if err := b.cl.AppendMetadata(d); err != nil {
				t.Fatal(err)
			}
			appended(t, before, e.greetedAnew(t, b), d)
		})
	}
}

// Broken by keeping only the newest description.
func TestProseMetadata2AppendedAgainAndAgain(t *testing.T) {
	for _, d := range frameworks {
		overhearing(t, sextant.DriverInfo{}, func(t *testing.T, b *bubble, e *eavesdropper) {
			bare := e.greetedAnew(t, b)
			for _, d := range []sextant.DriverInfo{library, d} {
				if err := b.cl.AppendMetadata(d); err != nil {
					t.Fatal(err)
				}
				after := e.greetedAnew(t, b)
				appended(t, bare, after, d)
				bare = after
			}
		})
	}
}

// Broken by comparing single fields instead of the whole description, and by not comparing.
func TestProseMetadata3OnlyWhatIsIdenticalIsLeftOut(t *testing.T) {
	for i := range 8 {
		d := library
		for bit, f := range map[int]*string{1: &d.Name, 2: &d.Version, 4: &d.Platform} {
			if i&bit != 0 {
				*f = map[int]string{1: "framework", 2: "2.0", 4: "Framework Platform"}[bit]
			}
		}
		overhearing(t, sextant.DriverInfo{}, func(t *testing.T, b *bubble, e *eavesdropper) {
			_ = b.cl.AppendMetadata(library)
			before := e.greetedAnew(t, b)
			if err := b.cl.AppendMetadata(d); err != nil {
				t.Fatal(err)
			}
			want := d
			if d == library {
				want = sextant.DriverInfo{}
			}
			appended(t, before, e.greetedAnew(t, b), want)
		})
	}
}

// framework differs from the library only in its name, as the specification has it between the library and itself.
var framework = sextant.DriverInfo{Name: "framework", Version: "1.2", Platform: "Library Platform"}

// unrepeated appends descriptions to a client of the configuration's one, and checks that the last leaves the hello as it was.
func unrepeated(t *testing.T, configured sextant.DriverInfo, appended ...sextant.DriverInfo) {
	t.Helper()
	overhearing(t, configured, func(t *testing.T, b *bubble, e *eavesdropper) {
		var before, after bson.Raw
		for _, d := range appended {
			before = e.greetedAnew(t, b)
			if err := b.cl.AppendMetadata(d); err != nil {
				t.Fatal(err)
			}
			after = e.greetedAnew(t, b)
		}
		if !bytes.Equal(before, after) {
			t.Errorf("%s, before %s", after, before)
		}
		for _, path := range [][]string{{"driver", "name"}, {"driver", "version"}, {"platform"}} {
			if s := elements(after, path...); strings.HasSuffix(s, "|") || strings.Contains(s, "||") {
				t.Errorf("%v is %q: a bar without a text", path, s)
			}
		}
	})
}

// partly are the descriptions of a library that leave something unset. A name none may lack.
var partly = []sextant.DriverInfo{{Name: "library", Platform: "Library Platform"}, {Name: "library", Version: "1.2"}, {Name: "library"}}

// Broken by comparing with the newest description only.
func TestProseMetadata4WhatWasAppendedBeforeIsNotRepeated(t *testing.T) {
	unrepeated(t, sextant.DriverInfo{}, library, framework, library)
}

// Broken by forgetting what the configuration gave.
func TestProseMetadata5WhatTheConfigurationGaveIsNotRepeated(t *testing.T) {
	unrepeated(t, library, library)
}

// Broken by letting what is appended take the place of the configuration's description in the comparison.
func TestProseMetadata6WhatTheConfigurationGaveIsNotRepeatedAfterOthers(t *testing.T) {
	unrepeated(t, library, framework, library)
}

// Broken by a bar for a text that is empty, and by comparing only the descriptions that are complete.
func TestProseMetadata7EmptyIsUnsetAmongWhatWasAppended(t *testing.T) {
	for _, d := range partly {
		unrepeated(t, sextant.DriverInfo{}, d, d)
	}
}

// Broken by remembering the configuration's description only where it is complete.
func TestProseMetadata8EmptyIsUnsetInWhatTheConfigurationGave(t *testing.T) {
	for _, d := range partly {
		unrepeated(t, d, d)
	}
}

// Broken by saying it on the connections of the pool alone, or only in the legacy hello.
func TestProseMetadata9EveryHandshakeTellsOfBackpressure(t *testing.T) {
	told := func(t *testing.T, e *eavesdropper, hello string) {
		t.Helper()
		hellos := e.hellos(t)
		if len(hellos) == 0 {
			t.Error("nothing was heard")
		}
		for _, h := range hellos {
			if h.Lookup(hello).IsZero() || elements(h, "backpressure") != "2" {
				t.Errorf("%s, want a %s", h, hello)
			}
		}
	}
	overhearing(t, sextant.DriverInfo{}, func(t *testing.T, b *bubble, e *eavesdropper) {
		e.greetedAnew(t, b)
		time.Sleep(time.Minute) // for the connection that measures round trips
		if n := len(e.hellos(t)); n < 4 {
			t.Errorf("%d connections: two of the pool and two of the monitor greet", n)
		}
		told(t, e, "isMaster")
	})
	behindALoadBalancer(t, nil, func(t *testing.T, b *balanced) {
		e := &eavesdropper{dial: b.dial}
		b.dial = e.open
		cl := b.client(t, &sextant.Config{Hosts: []string{"lb"}, LoadBalanced: new(true)})
		defer cl.Close(context.Background())
		if err := ping(cl)(); err != nil {
			t.Fatal(err)
		}
		told(t, e, "hello")
	})
}

func TestLibraryThatCannotBeNamedIsRefused(t *testing.T) {
	bad := sextant.DriverInfo{Name: "a|b"}
	cl := must[*sextant.Client](t)(sextant.ConnectConfig(t.Context(), &sextant.Config{Hosts: []string{"a"}}))
	defer cl.Close(context.Background())
	if err := cl.AppendMetadata(bad); err == nil || !strings.Contains(err.Error(), `name "a|b"`) {
		t.Errorf("%v", err)
	}
	if _, err := sextant.ConnectConfig(t.Context(), &sextant.Config{Hosts: []string{"a"}, DriverInfo: bad}); err == nil || !strings.Contains(err.Error(), "DriverInfo: the name") {
		t.Errorf("%v", err)
	}
}
