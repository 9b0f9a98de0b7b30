package sextant_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sextantdb/sextant"
)

// dns answers as its zone says.
type dns struct {
	mu    sync.Mutex // guards what follows
	srv   map[string][]*net.SRV
	txt   map[string][]string
	fails map[string]error // by the name asked for; of TXT records under "TXT " and the host
	hang  bool             // answers when the context ends
	asked []string         // names of SRV records, and of TXT records as in fails
}

// newDNS makes a zone of lines "name target:port target:port"; a name with a service begins with an underscore.
func newDNS(lines ...string) *dns {
	d := &dns{srv: map[string][]*net.SRV{}, txt: map[string][]string{}, fails: map[string]error{}}
	for _, line := range lines {
		name, targets, _ := strings.Cut(line, " ")
		d.set(name, strings.Fields(targets)...)
	}
	return d
}

// set makes the SRV records of a name.
func (d *dns) set(name string, targets ...string) {
	if !strings.HasPrefix(name, "_") {
		name = "_mongodb._tcp." + name
	}
	var out []*net.SRV
	for _, t := range targets {
		host, port, err := net.SplitHostPort(t)
		if err != nil {
			panic(err)
		}
		n, err := net.LookupPort("tcp", port)
		if err != nil {
			panic(err)
		}
		out = append(out, &net.SRV{Target: host, Port: uint16(n)})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.srv[name] = out
}

// fail makes the answer for a name an error, nil for none.
func (d *dns) fail(name string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails[name] = err
}

func (d *dns) answer(ctx context.Context, name string) error {
	d.mu.Lock()
	d.asked = append(d.asked, name)
	err, hang := d.fails[name], d.hang
	d.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (d *dns) times(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, a := range d.asked {
		if a == name {
			n++
		}
	}
	return n
}

func (d *dns) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	name = "_" + service + "._" + proto + "." + name
	err := d.answer(ctx, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	answer, known := d.srv[name]
	if err == nil && !known {
		err = noSuchName(name)
	}
	if err != nil {
		return "", nil, err
	}
	return name, answer, nil
}

func (d *dns) LookupTXT(ctx context.Context, name string) ([]string, error) {
	err := d.answer(ctx, "TXT "+name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.txt[name] == nil {
		err = noSuchName(name)
	}
	if err != nil {
		return nil, err
	}
	return d.txt[name], nil
}

func noSuchName(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, Server: "10.0.0.53:53", IsNotFound: true}
}

func dnsTimeout(name string) error {
	return &net.DNSError{Err: "i/o timeout", Name: name, Server: "10.0.0.53:53", IsTimeout: true}
}

// resolved is the configuration of a string after DNS was asked.
func (d *dns) resolved(t *testing.T, uri string) (*sextant.Config, error) {
	t.Helper()
	cfg, err := sextant.ParseURI(uri)
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	cfg.Resolver = d
	return cfg, cfg.Resolve(t.Context())
}
