package connstring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DefaultService is the service whose SRV record is asked for unless srvServiceName names another.
const DefaultService = "mongodb"

// Lookup is what a mongodb+srv string asks of DNS, and the judge of the answers. It asks nothing itself: answers come in
// as arguments (initial DNS seedlist discovery specification).
type Lookup struct {
	Host     string                  // the host of the string, as NormalHost leaves it
	Service  string                  // srvServiceName; "" is DefaultService
	Suffix   string                  // srvAllowedHostsSuffix, as NormalSuffix leaves it; "" is the domain of Host
	Validate func(host string) error // judges in place of the domain; nil: the domain does
}

// Record is one SRV record of an answer. Priority and weight have no meaning here.
type Record struct {
	Target string
	Port   uint16
}

// ServiceName is Service or its default.
func (l *Lookup) ServiceName() string {
	if l.Service == "" {
		return DefaultService
	}
	return l.Service
}

// Name is the name whose SRV record is asked for. The TXT record is asked for under Host.
func (l *Lookup) Name() string { return "_" + l.ServiceName() + "._tcp." + l.Host }

// Domain is what every host must lie below: the suffix that was given, or the host without its first label if two more
// are left, or else the host itself.
func (l *Lookup) Domain() string {
	if l.Suffix != "" {
		return l.Suffix
	}
	if strings.Count(l.Host, ".") < 2 {
		return l.Host
	}
	_, domain, _ := strings.Cut(l.Host, ".")
	return domain
}

// Judge parts the records into hosts that may be seeds, "host:port", each once and in the order of the answer, and
// reasons why the others may not. Whoever can forge DNS could else send the client, and its password, anywhere.
func (l *Lookup) Judge(records []Record) (hosts []string, refused []error) {
	for _, r := range records {
		host, err := l.judge(r)
		switch {
		case err != nil:
			refused = append(refused, err)
		case !slices.Contains(hosts, host):
			hosts = append(hosts, host)
		}
	}
	return hosts, refused
}

func (l *Lookup) judge(r Record) (string, error) {
	host, err := NormalHost(r.Target)
	switch {
	case r.Target == "." || r.Target == "":
		return "", fmt.Errorf("the SRV record %s says that the service is not offered (its target is a dot)", l.Name())
	case err != nil:
		return "", fmt.Errorf("the SRV record %s leads to %q, which is no host name: %w", l.Name(), r.Target, err)
	case r.Port == 0:
		return "", fmt.Errorf("the SRV record %s leads to port 0 of %s", l.Name(), host)
	case l.Validate != nil:
		if err := l.Validate(host); err != nil {
			return "", fmt.Errorf("the SRV record %s leads to %s, which SRVHostValidator refuses: %w", l.Name(), host, err)
		}
	case !strings.HasSuffix(host, "."+l.Domain()):
		return "", l.outside(host)
	}
	return fmt.Sprintf("%s:%d", host, r.Port), nil
}

// outside is the error for a host of another domain.
func (l *Lookup) outside(host string) error {
	if l.Suffix != "" {
		return fmt.Errorf("the SRV record %s leads to %s, which is not below %s as srvAllowedHostsSuffix demands: correct the record or the option", l.Name(), host, l.Suffix)
	}
	return fmt.Errorf("the SRV record %s leads to %s, which is not below %s, the domain of the connection string: correct the record, or allow the other domain with srvAllowedHostsSuffix", l.Name(), host, l.Domain())
}

// Choose takes most of the hosts by chance, or all if there are no more or most is 0. chance(n) is a number from 0 to
// n-1.
func Choose(hosts []string, most int, chance func(n int) int) []string {
	if most <= 0 || most >= len(hosts) {
		return hosts
	}
	return Shuffle(hosts, chance)[:most]
}

// Shuffle is a copy of the hosts in an order of chance (Fisher and Yates).
func Shuffle(hosts []string, chance func(n int) int) []string {
	out := slices.Clone(hosts)
	for i := len(out) - 1; i > 0; i-- {
		j := chance(i + 1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// defaults are the options that a TXT record may give, by their keys.
var defaults = []string{"authsource", "replicaset", "loadbalanced"}

// ParseTXT reads the TXT records of a host: none, or one with options that hold unless the string gives them. Each
// record is one text, its strings already joined. The fields AuthSource, ReplicaSet and LoadBalanced of the result are
// set; the warnings are those that the same options in a string would cause.
func ParseTXT(host string, records []string) (*Options, []Warning, error) {
	switch len(records) {
	case 0:
		return &Options{}, nil, nil
	case 1:
	default:
		return nil, nil, fmt.Errorf("%s has %d TXT records, and one at most is allowed: join them, or move what has to do with other services to another name", host, len(records))
	}
	pairs, err := parsePairs(records[0])
	if err != nil {
		return nil, nil, fmt.Errorf("the TXT record of %s: %s", host, strings.TrimPrefix(err.Error(), prefix))
	}
	u := &URI{Scheme: SchemeSRV, pairs: pairs}
	for i, p := range pairs {
		if !slices.Contains(defaults, p.key) {
			return nil, nil, fmt.Errorf("the TXT record of %s holds %s: only authSource, replicaSet and loadBalanced may stand there; give it in the connection string", host, optionLabel(p.name, i))
		}
	}
	u.apply()
	if err := cmp.Or(u.fault, u.checkAuth()); err != nil {
		return nil, nil, fmt.Errorf("the TXT record of %s: %s", host, strings.TrimPrefix(err.Error(), prefix))
	}
	for i := range u.Warnings {
		u.Warnings[i].Message += " (in the TXT record of " + host + ")"
	}
	return &u.Options, u.Warnings, nil
}
