package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/mongoerr"
)

// split cuts a connection string into what stands before the hosts, the hosts, and the options, which are only looked
// at by name: what they mean is the driver's to say.
func split(uri string) (head, hosts, path string, options []string) {
	uri, query, _ := strings.Cut(uri, "?")
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return "", uri, "", nil
	}
	user := ""
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, rest = rest[:at+1], rest[at+1:]
	}
	hosts, path, _ = strings.Cut(rest, "/")
	if query != "" {
		options = strings.Split(query, "&")
	}
	return scheme + "://" + user, hosts, path, options
}

func join(head, hosts, path string, options []string) string {
	uri := head + hosts + "/" + path
	if len(options) > 0 {
		uri += "?" + strings.Join(options, "&")
	}
	return uri
}

// option finds an option by its name, which is not sensitive to case.
func option(options []string, name string) (value string, ok bool) {
	for _, o := range options {
		if k, v, _ := strings.Cut(o, "="); strings.EqualFold(k, name) {
			return v, true
		}
	}
	return "", false
}

func without(options []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(options), func(o string) bool {
		k, _, _ := strings.Cut(o, "=")
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, k) })
	})
}

// read makes a configuration of the connection string, with the hosts that DNS has for it. Nil: the string cannot be
// used, which a finding says.
func (x *examination) read(ctx context.Context, uri string) *sextant.Config {
	head, hosts, path, options := split(uri)
	if value, _ := option(options, "replicaSet"); strings.EqualFold(value, "true") {
		// The set's real name is learned later; the finding is completed then.
		x.oldName = true
		uri = join(head, hosts, path, without(options, "replicaSet"))
	}
	x.options = options
	cfg, err := sextant.ParseURI(uri)
	if err != nil {
		x.unusable(err, options)
		return nil
	}
	if cfg.SRVHost != "" && !x.fromDNS(ctx, cfg) {
		return nil
	}
	for _, w := range cfg.Warnings {
		x.add(remark(w))
	}
	cfg.Warnings = nil
	if cfg.AppName == "" {
		cfg.AppName = "sextant doctor"
	}
	return cfg
}

// remark is the driver's warning as a finding. The one of an authMechanism that is written well is that it sends a secret in clear.
func remark(w sextant.Warning) Finding {
	switch {
	case w.Suggestion != "":
		return Finding{Stage: "uri", Severity: Note, Cause: w.String(), Cure: "write " + w.Suggestion}
	case w.Option == "authMechanism" && strings.Contains(w.Message, "in clear"):
		return Finding{Stage: "auth", Severity: Warning, Cause: w.String(), Cure: "add tls=true, and change a password that was sent without"}
	}
	return Finding{Stage: "uri", Severity: Note, Cause: w.String(), Cure: "leave it out, or correct it"}
}

// fromDNS gives a configuration the hosts and defaults that its SRV name stands for at this moment, by the rules of the
// driver. From then on it is one that lists its hosts.
func (x *examination) fromDNS(ctx context.Context, cfg *sextant.Config) bool {
	ctx, cancel := within(ctx, x.timeout/8)
	defer cancel()
	asked := &witness{Resolver: x.names.r}
	cfg.Resolver = asked
	err := cfg.Resolve(ctx)
	for _, line := range asked.answers() {
		x.say("%s", line)
	}
	if err != nil {
		x.add(unresolvable(cfg.SRVHost, err))
		return false
	}
	cfg.SRVHost, cfg.SRVServiceName, cfg.SRVAllowedHostsSuffix, cfg.SRVMaxHosts, cfg.Resolver = "", "", "", 0, nil
	return true
}

func unresolvable(host string, err error) Finding {
	cause, _, notFound := strings.Cut(strings.TrimPrefix(headline(err), "config: "), ": is the name right")
	f := Finding{Stage: "dns", Server: host, Severity: Trouble, Cause: cause,
		Cure: "correct what DNS has for this name (hosts below the domain of the string, or of srvAllowedHostsSuffix; at most one TXT record, " +
			"with the options authSource, replicaSet and loadBalanced), or list the hosts in a mongodb:// string"}
	if notFound {
		f.Cure = "check how the name is written, and whether this host asks the right DNS server (VPN, /etc/resolv.conf); a host without SRV records is written in a mongodb:// string"
	}
	if e, ok := errors.AsType[*mongoerr.Error](err); ok && e.Stage == mongoerr.StageDial {
		f.Cure = "some resolvers (of containers, VPNs, routers) do not pass on SRV records: ask another one, or list the hosts in a mongodb:// string"
	}
	return f
}

// witness notes what DNS answered, to be shown. Without SRV records nobody waits for the TXT record: its lookup may come
// back whenever it likes.
type witness struct {
	Resolver
	mu       sync.Mutex // guards all below
	srv, txt string
}

// answers are lines to show: without SRV records none, for a TXT record may then be known or not.
func (w *witness) answers() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.srv != "" {
		lines = append(lines, "SRV "+w.srv)
	}
	if w.srv != "" && w.txt != "" {
		lines = append(lines, "TXT: "+w.txt)
	}
	return lines
}

func (w *witness) note(kind *string, answer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*kind = answer
}

func (w *witness) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	cname, found, err := w.Resolver.LookupSRV(ctx, service, proto, name)
	var hosts []string
	for _, s := range found {
		hosts = append(hosts, net.JoinHostPort(strings.TrimSuffix(s.Target, "."), strconv.Itoa(int(s.Port))))
	}
	if len(hosts) > 0 {
		w.note(&w.srv, fmt.Sprintf("_%s._%s.%s: %s", service, proto, name, strings.Join(hosts, ", ")))
	}
	return cname, found, err
}

func (w *witness) LookupTXT(ctx context.Context, name string) ([]string, error) {
	found, err := w.Resolver.LookupTXT(ctx, name)
	w.note(&w.txt, strings.Join(found, "; "))
	return found, err
}
