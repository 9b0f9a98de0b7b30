package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Resolver asks DNS. A *net.Resolver is one.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// names remembers what each host name leads to, so that all parts of an examination speak of the same addresses, and a
// name that hangs is waited for once.
type names struct {
	r Resolver

	mu    sync.Mutex // guards known
	known map[string]answer
}

// answer is what DNS says about a host.
type answer struct {
	ips []string
	err error
}

// resolve looks up the host of each address that is not known yet, all at once.
func (n *names) resolve(ctx context.Context, limit time.Duration, addrs []string) {
	ctx, cancel := within(ctx, limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, a := range addrs {
		host := hostOf(a)
		n.mu.Lock()
		_, known := n.known[host]
		if !known {
			n.known[host] = answer{} // somebody is at it
		}
		n.mu.Unlock()
		if !known {
			wg.Go(func() { n.keep(host, n.look(ctx, host)) })
		}
	}
	wg.Wait()
}

func (n *names) keep(host string, a answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[host] = a
}

func (n *names) of(addr string) answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[hostOf(addr)]
}

func (n *names) look(ctx context.Context, host string) answer {
	if literal(host) || isSocket(host) {
		return answer{ips: []string{host}}
	}
	ips, err := n.r.LookupHost(ctx, host)
	if err == nil && len(ips) == 0 {
		err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	if err != nil && ctx.Err() != nil {
		err = &net.DNSError{Err: "no answer in time", Name: host, IsTimeout: true}
	}
	return answer{ips, err}
}

// dial opens a socket to a host as DNS has it: to all its addresses at once, the first that accepts is taken.
func (n *names) dial(ctx context.Context, open dialFunc, network, addr string) (net.Conn, error) {
	if network == "unix" {
		return open(ctx, network, addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	a := n.of(addr)
	if a.err != nil {
		return nil, a.err
	}
	if len(a.ips) == 0 { // not asked for: the set has just come to name it
		a.ips = []string{host}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		c   net.Conn
		err error
	}
	came := make(chan outcome, len(a.ips))
	for _, ip := range a.ips {
		go func() {
			c, err := open(ctx, network, net.JoinHostPort(ip, port))
			came <- outcome{c, err}
		}()
	}
	for left := len(a.ips); left > 0; left-- {
		o := <-came
		if o.err != nil {
			err = o.err
			continue
		}
		go func() {
			for range left - 1 {
				if late := <-came; late.c != nil {
					late.c.Close()
				}
			}
		}()
		return o.c, nil
	}
	return nil, err
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// hostOf is the name in "name:port", "[::1]:port", or a socket's path.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return strings.Trim(addr, "[]")
	}
	return host
}

func isSocket(addr string) bool {
	return strings.HasSuffix(addr, ".sock") || strings.Contains(addr, "/")
}

func literal(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// unresolved is the finding about a name that leads nowhere. by are those who advertise it, empty for a seed.
func unresolved(addr string, err error, by []string, set string) Finding {
	host := hostOf(addr)
	f := Finding{Stage: "dns", Server: addr, Severity: Trouble}
	dns, ok := errors.AsType[*net.DNSError](err)
	if ok && !dns.IsNotFound {
		f.Cause = "DNS did not say where this name leads: " + dns.Err
		f.Cure = "look at this host's resolver (/etc/resolv.conf, VPN) and try again; other hosts may be fine"
		return f
	}
	f.Cause = "the name does not resolve on this host"
	if len(by) == 0 {
		f.Cure = "check how it is written, and whether this host asks the right DNS server (VPN, search domain, /etc/hosts)"
		return f
	}
	f.Cause += fmt.Sprintf("; %s as member of set %s by this name", strings.Join(by, ", ")+advertises(len(by)), set)
	f.Cure = "make the name resolve here (DNS or /etc/hosts), or give the members names that all clients can use (rs.reconfig): clients reach members by the names that the set advertises"
	if where := foreign(host); where != "" {
		f.Cause += ". It looks like " + where
	}
	return f
}

func advertises(n int) string {
	if n == 1 {
		return " advertises it"
	}
	return " advertise it"
}

// foreign guesses whose name it is that means nothing here; "" if it looks like any other.
func foreign(host string) string {
	switch {
	case strings.HasSuffix(host, ".cluster.local") || strings.HasSuffix(host, ".svc"):
		return "the name of a Kubernetes service, which only pods of that cluster know"
	case !strings.Contains(host, "."):
		return "the name of a container, or of a host in another domain"
	case strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal"):
		return "a name that only its own network knows"
	}
	return ""
}
