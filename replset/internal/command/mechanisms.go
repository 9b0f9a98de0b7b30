package command

import (
	"bytes"
	"crypto/tls"
	"errors"
	"slices"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// OIDC is what members know of the identity providers whose tokens they take.
type OIDC struct {
	Providers []OIDCProvider
	// Check says whose token it is. An error refuses it.
	Check func(token string) (user string, err error)
}

// OIDCProvider is one identity provider, as clients are told of it.
type OIDCProvider struct {
	Issuer, ClientID string
	RequestScopes    []string
	Users            []string // who logs in there; with one provider alone: everybody
}

// offers says whether users of the database may log in by the mechanism here.
func (m *Member) offers(mechanism, db string) bool {
	switch mechanism {
	case scram1, scram256:
		return db != external
	case plain:
		return db == external
	case oidc:
		return db == external && m.opt.OIDC != nil
	}
	return false
}

// mechanisms are all that the member offers.
func (m *Member) mechanisms() []string {
	list := []string{x509, plain, scram1, scram256}
	if m.opt.OIDC != nil {
		list = append(list, oidc)
	}
	return list
}

// half is the server's half of an exchange.
func (m *Member) half(mechanism, db string) (exchange, error) {
	switch mechanism {
	case plain:
		return &plainExchange{users: m.opt.Users, db: db}, nil
	case oidc:
		return &oidcExchange{o: m.opt.OIDC}, nil
	}
	server, err := m.opt.Users.server(mechanism, db)
	if err != nil {
		return nil, err
	}
	return scramExchange{server.NewConversation()}, nil
}

// plainExchange takes RFC 4616's only message. There is no directory behind it: the set knows the passwords.
type plainExchange struct {
	users    *Users
	db, name string
}

func (p *plainExchange) user() string { return p.name }

func (p *plainExchange) step(payload []byte) ([]byte, bool, error) {
	parts := bytes.Split(payload, []byte{0}) // another identity, which must be the user's own, user, password
	if len(parts) != 3 || len(parts[0]) > 0 && !bytes.Equal(parts[0], parts[1]) {
		return nil, false, errors.New("no message of PLAIN")
	}
	p.name = string(parts[1])
	if !p.users.knows(p.name, string(parts[2]), p.db) {
		return nil, false, errAuth()
	}
	return nil, true, nil
}

// oidcExchange takes a token, or tells where to get one first.
type oidcExchange struct {
	o    *OIDC
	name string
}

func (x *oidcExchange) user() string { return x.name }

func (x *oidcExchange) step(payload []byte) (answer []byte, done bool, err error) {
	doc := bson.Raw(payload)
	if err := doc.Validate(); err != nil {
		return nil, false, err
	}
	token, given := doc.Lookup("jwt").StringValueOK()
	if !given {
		name, _ := doc.Lookup("n").StringValueOK()
		p, err := x.o.provider(name)
		if err != nil {
			return nil, false, err
		}
		info := bson.D{{Key: "issuer", Value: p.Issuer}}
		if p.ClientID != "" {
			info = append(info, bson.E{Key: "clientId", Value: p.ClientID})
		}
		if p.RequestScopes != nil {
			info = append(info, bson.E{Key: "requestScopes", Value: p.RequestScopes})
		}
		answer, err = bson.Marshal(info)
		return answer, false, err
	}
	if x.name, err = x.o.Check(token); err != nil {
		return nil, false, err
	}
	return nil, true, nil
}

// provider is that of the user. Where there are several, the name must be given and tells which.
func (o *OIDC) provider(user string) (*OIDCProvider, error) {
	if len(o.Providers) == 1 {
		return &o.Providers[0], nil
	}
	for i := range o.Providers {
		if slices.Contains(o.Providers[i].Users, user) {
			return &o.Providers[i], nil
		}
	}
	return nil, errors.New("no provider for this user")
}

// byCertificate logs in the user whose name is the subject of the client's certificate, in the form of RFC 2253. Unlike a
// server, a member takes no certificate for another member's.
func (m *Member) byCertificate(c *Conn, db string, doc bson.Raw) (bson.D, error) {
	mechanism, ok := doc.Lookup("mechanism").StringValueOK()
	switch {
	case !ok:
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "Auth mechanism not specified")
	case mechanism != x509 || db != external:
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "Unsupported mechanism '%s' on authentication database '%s'", mechanism, db)
	}
	s, secure := c.nc.(*tls.Conn)
	if !secure || m.opt.Users == nil || len(s.ConnectionState().PeerCertificates) == 0 {
		return nil, errAuth()
	}
	subject := s.ConnectionState().PeerCertificates[0].Subject.String()
	if name, given := doc.Lookup("user").StringValueOK(); given && name != subject || !m.opt.Users.has(subject, external, x509) {
		return nil, errAuth()
	}
	c.welcome(User{Name: subject, DB: external})
	return bson.D{{Key: "dbname", Value: external}, {Key: "user", Value: subject}}, nil
}
