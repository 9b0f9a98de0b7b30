package replset

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// TLS has the members of a set speak TLS alone, to clients and to each other, with certificates that an authority of the
// set's own signs. The zero value is TLS with everything in memory.
type TLS struct {
	// Dir is a folder for files that clients can be given: ca.pem, which they trust (tlsCAFile), and client.pem, with which
	// they show who they are (tlsCertificateKeyFile). It is made if need be. ca-key.pem beside them is the authority's key:
	// a set started later with the same folder has the same authority. Empty: there are no files; Set.TLSConfig has it
	// all. Run takes a folder of the test's.
	Dir string
	// ClientCertificates demands of clients that they show a certificate which the set's authority has signed. Without it
	// they may, and it must be good.
	ClientCertificates bool
	// Names are further hosts and addresses that the members' certificates are for, beside those that they advertise.
	Names []string
}

// Certificate says what stands in a certificate. The zero value is a good one.
type Certificate struct {
	Names     []string  // hosts and addresses that it is for; nil: those of the member
	NotBefore time.Time // zero: an hour ago
	NotAfter  time.Time // zero: in a year
	Stranger  bool      // signed by an authority that nobody knows
}

// identities are a set's authority and what it has signed.
type identities struct {
	opt    TLS
	ca     *authority
	client tls.Certificate

	mu     sync.Mutex                 // guards all below
	of     map[int]*tls.Config        // what each member shows, by its index
	issued map[[sha256.Size]byte]bool // the members' certificates, of all times
}

// newIdentities makes or loads the authority; members get theirs by certify.
func newIdentities(o TLS) (*identities, error) {
	id := &identities{opt: o, of: map[int]*tls.Config{}, issued: map[[sha256.Size]byte]bool{}}
	var err error
	if o.Dir == "" {
		id.ca, err = newAuthority()
	} else {
		id.ca, err = authorityIn(o.Dir)
	}
	if err != nil {
		return nil, err
	}
	if id.client, err = id.ca.sign("client", Certificate{}); err != nil || o.Dir == "" {
		return id, err
	}
	return id, writeIdentity(id.clientFile(), id.client)
}

// certify gives a member a new certificate. Its configuration is a new one too, so that no session of old is resumed.
func (id *identities) certify(i int, host string, c Certificate) error {
	if id == nil {
		return nil
	}
	if c.Names == nil {
		c.Names = id.namesOf(host)
	}
	ca := id.ca
	if c.Stranger {
		var err error
		if ca, err = newAuthority(); err != nil {
			return err
		}
	}
	cert, err := ca.sign(host, c)
	if err != nil {
		return err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientCAs: id.ca.pool(), ClientAuth: tls.VerifyClientCertIfGiven}
	if id.opt.ClientCertificates {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	id.of[i], id.issued[sha256.Sum256(cert.Certificate[0])] = cfg, true
	return nil
}

// namesOf are the names of a good certificate: the host that the member advertises, and every name of this machine for
// itself if that is one.
func (id *identities) namesOf(host string) []string {
	names := append([]string{host}, id.opt.Names...)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		names = append(names, "localhost", "127.0.0.1", "::1")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// server is the configuration with which member i meets its clients.
func (id *identities) server(i int) *tls.Config {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.of[i]
}

// dial is the configuration with which member i meets another one. It shows the authority's own certificate for clients,
// and takes whatever certificate a member was given, so that one which clients must refuse does not break up the set.
func (id *identities) dial(addr string) *tls.Config {
	host, _, _ := net.SplitHostPort(addr)
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, Certificates: []tls.Certificate{id.client}, InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			id.mu.Lock()
			defer id.mu.Unlock()
			if !id.issued[sha256.Sum256(s.PeerCertificates[0].Raw)] {
				return errors.New("this is no member of the set: its certificate is none that a member was given")
			}
			return nil
		}}
}

// options are the options of a connection string that lead to the set.
func (id *identities) options() string {
	if id == nil {
		return ""
	}
	out := "&tls=true"
	if id.opt.Dir == "" {
		return out
	}
	out += "&tlsCAFile=" + escape(id.caFile())
	if id.opt.ClientCertificates {
		out += "&tlsCertificateKeyFile=" + escape(id.clientFile())
	}
	return out
}

// escape writes a value of a connection string's option; slashes may stay as they are.
func escape(s string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(s))
}

// TLSConfig is what a client in this process needs to speak to the set, for Config.TLSConfig of the driver or any other:
// it trusts the set's authority, and shows a certificate. It is nil without Options.TLS. The caller may change it.
func (s *Set) TLSConfig() *tls.Config {
	if s.tls == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.tls.ca.pool(), Certificates: []tls.Certificate{s.tls.client}}
}

// TLSFiles are the files of TLS.Dir for clients: whom to trust, and who they are. Both are empty without that folder.
func (s *Set) TLSFiles() (caFile, clientFile string) {
	if s.tls == nil || s.tls.opt.Dir == "" {
		return "", ""
	}
	return s.tls.caFile(), s.tls.clientFile()
}

// Certify gives member i another certificate: one that has expired, or is for another host, or signed by a stranger. The
// next connections get to see it; those that are open stay. The zero Certificate is a good one again. The other members
// know each other by what they were given, and go on.
func (s *Set) Certify(i int, c Certificate) error {
	m, err := s.at(i)
	if err != nil {
		return err
	}
	if s.tls == nil {
		return errors.New("replset: the set does not speak TLS")
	}
	if err := s.tls.certify(i, hostOf(m.addr), c); err != nil {
		return fmt.Errorf("replset: certificate of member %d: %w", i, err)
	}
	return nil
}

// ClientCertificate makes a certificate for a client, of that common name.
func (s *Set) ClientCertificate(name string, c Certificate) (tls.Certificate, error) {
	if s.tls == nil {
		return tls.Certificate{}, errors.New("replset: the set does not speak TLS")
	}
	ca := s.tls.ca
	if c.Stranger {
		var err error
		if ca, err = newAuthority(); err != nil {
			return tls.Certificate{}, err
		}
	}
	return ca.sign(name, c)
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
