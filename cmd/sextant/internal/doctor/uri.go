package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/sextantdb/sextant"
)

const srvScheme = "mongodb+srv://"

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

// read makes a configuration of the connection string. With SRV records it asks DNS first, and then reads the string
// that lists the hosts. Nil: the string cannot be used, which a finding says.
func (x *examination) read(ctx context.Context, uri string) *sextant.Config {
	head, hosts, path, options := split(uri)
	if value, _ := option(options, "replicaSet"); strings.EqualFold(value, "true") {
		// The set's real name is learned later; the finding is completed then.
		x.oldName = true
		options = without(options, "replicaSet")
		uri = join(head, hosts, path, options)
	}
	if strings.HasPrefix(uri, srvScheme) {
		var ok bool
		if uri, ok = x.fromSRV(ctx, head, hosts, path, options); !ok {
			return nil
		}
	}
	cfg, err := sextant.ParseURI(uri)
	if err != nil {
		x.unusable(err)
		return nil
	}
	for _, w := range cfg.Warnings {
		cure := w.Suggestion
		if cure == "" {
			cure = "leave it out, or correct it"
		}
		x.add(Finding{Stage: "uri", Severity: Note, Cause: w.String(), Cure: cure})
	}
	cfg.Warnings = nil
	if cfg.AppName == "" {
		cfg.AppName = "sextant doctor"
	}
	return cfg
}

func (x *examination) unusable(err error) {
	x.add(Finding{Stage: "uri", Severity: Trouble, Cause: headline(err),
		Cure: `write it as "mongodb://host1:27017,host2:27017/?replicaSet=name"; in names and passwords, characters such as @ : / % are percent-encoded`})
}

// fromSRV turns mongodb+srv:// into the mongodb:// that it stands for at this moment.
func (x *examination) fromSRV(ctx context.Context, head, host, path string, options []string) (uri string, ok bool) {
	service := "mongodb"
	if s, given := option(options, "srvServiceName"); given {
		service = s
	}
	ctx, cancel := within(ctx, x.timeout/8)
	defer cancel()
	record := fmt.Sprintf("_%s._tcp.%s", service, host)
	_, found, err := x.names.r.LookupSRV(ctx, service, "tcp", host)
	if err != nil || len(found) == 0 {
		x.add(noSRV(record, host, err))
		return "", false
	}
	var seeds []string
	for _, s := range found {
		target := strings.TrimSuffix(strings.ToLower(s.Target), ".")
		if _, suffixed := option(options, "srvAllowedHostsSuffix"); !suffixed && !sameDomain(target, host) {
			x.add(Finding{Stage: "dns", Server: target, Severity: Trouble,
				Cause: fmt.Sprintf("the SRV record %s names %s, which is outside of the domain of %s", record, target, host),
				Cure:  "clients refuse it, since it could lead elsewhere: correct the record, or name the allowed domain with srvAllowedHostsSuffix"})
			return "", false
		}
		seeds = append(seeds, net.JoinHostPort(target, strconv.Itoa(int(s.Port))))
	}
	x.say("SRV %s: %s", record, strings.Join(seeds, ", "))
	more, ok := x.fromTXT(ctx, host, options)
	if !ok {
		return "", false
	}
	options = append(without(options, "srvServiceName", "srvMaxHosts", "srvAllowedHostsSuffix"), more...)
	_, tls := option(options, "tls")
	if _, ssl := option(options, "ssl"); !tls && !ssl {
		options = append(options, "tls=true")
	}
	return join("mongodb://"+strings.TrimPrefix(head, srvScheme), strings.Join(seeds, ","), path, options), true
}

// fromTXT are the options that DNS adds to those of the string.
func (x *examination) fromTXT(ctx context.Context, host string, options []string) (more []string, ok bool) {
	texts, err := x.names.r.LookupTXT(ctx, host)
	dns, _ := errors.AsType[*net.DNSError](err)
	bad := func(cause string) ([]string, bool) {
		x.add(Finding{Stage: "dns", Server: host, Severity: Trouble, Cause: cause,
			Cure: "a set has at most one TXT record, with the options authSource, replicaSet and loadBalanced: correct it in DNS"})
		return nil, false
	}
	switch {
	case dns != nil && dns.IsNotFound:
		return nil, true
	case err != nil:
		return bad("the TXT record cannot be read: " + headline(err))
	case len(texts) > 1:
		return bad(fmt.Sprintf("there are %d TXT records", len(texts)))
	case len(texts) == 0:
		return nil, true
	}
	for o := range strings.SplitSeq(texts[0], "&") {
		name, _, _ := strings.Cut(o, "=")
		if !slices.ContainsFunc([]string{"authSource", "replicaSet", "loadBalanced"}, func(n string) bool { return strings.EqualFold(n, name) }) {
			return bad(fmt.Sprintf("the TXT record holds the option %q", name))
		}
		if _, given := option(options, name); !given {
			more = append(more, o)
		}
	}
	x.say("TXT: %s", texts[0])
	return more, true
}

// sameDomain says whether a target of SRV records shares the domain of the name that was asked for (specification
// "initial DNS seedlist discovery").
func sameDomain(target, host string) bool {
	host = strings.ToLower(host)
	if strings.Count(host, ".") < 2 {
		return strings.HasSuffix(target, "."+host) && strings.Count(target, ".") > strings.Count(host, ".")
	}
	_, domain, _ := strings.Cut(host, ".")
	return strings.HasSuffix(target, "."+domain)
}

func noSRV(record, host string, err error) Finding {
	f := Finding{Stage: "dns", Server: host, Severity: Trouble, Cause: "there is no SRV record " + record,
		Cure: "check the name; for a host that is a server itself write mongodb:// in place of mongodb+srv://"}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsNotFound {
		f.Cause = fmt.Sprintf("DNS did not answer for the SRV record %s: %s", record, dns.Err)
		f.Cure = "some resolvers (of containers, VPNs, routers) do not pass on SRV records: ask another one, or list the hosts in a mongodb:// string"
	}
	return f
}
