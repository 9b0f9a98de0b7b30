package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/readpref"
)

// examination follows one connection string. Its steps share the timeout: DNS an eighth, a proxy a fifth, the seeds a fifth and a tenth for
// a second look, the same for members that the set advertises; what is left is for the client as it would be used.
type examination struct {
	Diagnosis
	timeout time.Duration
	names   names
	open    dialFunc // opens the sockets; the addresses are resolved already
	cfg     *sextant.Config
	options []string // of the connection string, as they are written
	oldName bool     // replicaSet=true
	set     string
}

// World is what an examination reaches out with.
type World struct {
	Resolver Resolver
	Open     func(ctx context.Context, network, addr string) (net.Conn, error) // the address is resolved already
}

// Examine follows the connection string and comes to a verdict within the timeout, whatever hangs. w may be nil.
func Examine(ctx context.Context, uri string, timeout time.Duration, w *World) *Diagnosis {
	if w == nil {
		w = &World{net.DefaultResolver, new(net.Dialer).DialContext}
	}
	ctx, cancel := within(ctx, timeout)
	defer cancel()
	x := &examination{timeout: timeout, open: w.Open, names: names{r: w.Resolver, known: map[string]answer{}}}
	x.Findings = []Finding{}
	x.Verdict = Unreachable
	if x.cfg = x.read(ctx, uri); x.cfg != nil {
		x.say("%s", summary(x.cfg, x.proxyAddress()))
		x.run(ctx)
	}
	slices.SortStableFunc(x.Findings, func(a, b Finding) int { return weight[a.Severity] - weight[b.Severity] })
	return &x.Diagnosis
}

func (x *examination) say(format string, args ...any) {
	x.Heading = append(x.Heading, fmt.Sprintf(format, args...))
}

// summary is what the connection string asks for, without secrets.
func summary(c *sextant.Config, proxy string) string {
	words := []string{"seeds " + strings.Join(c.Hosts, ", ")}
	if c.ReplicaSet != "" {
		words = append(words, "set "+c.ReplicaSet)
	}
	if c.DirectConnection {
		words = append(words, "directly")
	}
	if c.LoadBalanced != nil && *c.LoadBalanced {
		words = append(words, "a load balancer")
	}
	if c.TLS {
		words = append(words, "TLS")
	}
	if c.ProxyHost != "" {
		words = append(words, "through the proxy "+proxy)
	}
	if c.Username != "" {
		words = append(words, "user "+c.Username)
	}
	return strings.Join(words, "; ")
}

// run examines servers one by one, then the set that they make, then what a client can do with it.
func (x *examination) run(ctx context.Context) {
	if !slices.ContainsFunc(x.cfg.Hosts, isSocket) && !x.judgeProxy(ctx) {
		return
	}
	for _, h := range x.cfg.Hosts {
		if a := address(h); x.probe(a) == nil {
			x.probes = append(x.probes, &probe{addr: a, seed: true, by: "the URI"})
		}
	}
	x.probeAll(ctx, x.probes)
	x.set = x.mainSet()
	if !x.cfg.DirectConnection {
		x.probeAll(ctx, x.advertised())
	}
	for _, p := range x.probes {
		switch {
		case p.dnsErr != nil:
			x.add(unresolved(p.addr, p.dnsErr, x.advertisers(p.addr), x.set))
		case !p.answered():
			x.add(x.whyNot(p))
		}
	}
	x.judgeSet()
	x.judgeCertificates(time.Now())
	x.Verdict = x.use(ctx)
	if x.Verdict == Healthy && x.troubled() {
		x.Verdict = Degraded
	}
	if x.Verdict != Healthy && !x.troubled() {
		x.add(Finding{Stage: "routing", Severity: Trouble, Cause: "no member could be examined within the time limit", Cure: "try again with a longer --timeout"})
	}
}

// address is a host as the topology names it.
func address(host string) string {
	if isSocket(host) {
		return host
	}
	host = strings.ToLower(host)
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "27017")
}

func (x *examination) probe(addr string) *probe {
	i := slices.IndexFunc(x.probes, func(p *probe) bool { return p.addr == addr })
	if i < 0 {
		return nil
	}
	return x.probes[i]
}

// mainSet is the name of the set that a client would follow.
func (x *examination) mainSet() string {
	if x.cfg.ReplicaSet != "" {
		return x.cfg.ReplicaSet
	}
	for _, p := range x.probes {
		if p.answered() && p.member.SetName != "" {
			return p.member.SetName
		}
	}
	for _, p := range x.probes { // the TLS options are wrong, but the server is the right one
		if p.otherWay != nil && p.otherWay.member.SetName != "" {
			return p.otherWay.member.SetName
		}
	}
	return ""
}

// advertised adds a probe for each member that the set names and the connection string does not.
func (x *examination) advertised() []*probe {
	var more []*probe
	for _, a := range x.roster() {
		if p := x.probe(a); p != nil {
			p.by = "both"
			continue
		}
		p := &probe{addr: a, by: "the set"}
		x.probes, more = append(x.probes, p), append(more, p)
	}
	return more
}

// roster is every address that members of the set name, in the order in which they were heard.
func (x *examination) roster() []string {
	var out []string
	for _, p := range x.probes {
		if !p.answered() || p.member.SetName != x.set || x.set == "" {
			continue
		}
		for _, a := range slices.Concat(p.member.Hosts, p.member.Passives, p.member.Arbiters) {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// advertisers are the servers that name the address as a member.
func (x *examination) advertisers(addr string) (out []string) {
	for _, p := range x.probes {
		if p.answered() && slices.Contains(slices.Concat(p.member.Hosts, p.member.Passives, p.member.Arbiters), addr) {
			out = append(out, p.addr)
		}
	}
	return out
}

// use does what a program with this connection string does first: find a member and log in.
func (x *examination) use(ctx context.Context) Verdict {
	if x.oldName || !slices.ContainsFunc(x.probes, func(p *probe) bool { return p.answered() }) {
		return Unreachable
	}
	cfg := *x.cfg
	cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return x.names.dial(ctx, x.open, network, addr)
	}
	client, err := sextant.ConnectConfig(ctx, &cfg)
	if err != nil {
		x.unusable(err, x.options)
		return Unreachable
	}
	defer leave(client)
	x.settle(ctx, client)
	anybody := readpref.Nearest()
	if v, _ := client.Explain(ctx, sextant.Want{ReadPreference: anybody}); len(v.Eligible()) == 0 {
		if !x.troubled() {
			x.add(Finding{Stage: "routing", Severity: Trouble, Cause: v.Sentence, Cure: "see the members' lines above, and sextant explain"})
		}
		return Unreachable
	}
	if !x.login(ctx, client, anybody) {
		return Unreachable
	}
	if v, _ := client.Explain(ctx, sextant.Want{}); len(v.Eligible()) == 0 && client.ReadPreference().Mode() != readpref.PrimaryMode {
		x.add(Finding{Stage: "routing", Severity: Trouble, Cause: v.Sentence,
			Cure: "change the read preference of the connection string (mode, tags, maxStalenessSeconds) or the members' tags; sextant explain tries others"})
	}
	return Healthy
}

// settle waits until the client has heard of every member, good or bad.
func (x *examination) settle(ctx context.Context, client *sextant.Client) {
	ctx, cancel := within(ctx, x.timeout/5)
	defer cancel()
	if client.Refresh(ctx) != nil {
		return
	}
	unheard := func(m event.Member) bool { return !m.Kind.Known() && m.LastError == nil }
	for slices.ContainsFunc(client.Hosts().Members, unheard) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}
