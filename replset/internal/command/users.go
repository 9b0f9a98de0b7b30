package command

import (
	"context"
	"crypto/hmac"
	"crypto/md5" // #nosec: SCRAM-SHA-1 of MongoDB is defined over it
	"crypto/rand"
	"crypto/sha1" // #nosec: only its size
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
	"github.com/xdg-go/scram"
)

var userCommands = []Spec{
	{Name: "createUser", Flags: OnExternal, Handler: createUser, Fields: "=:string pwd:string customData:object roles:array! digestPassword:safeBool authenticationRestrictions:objects mechanisms:strings", Listed: true},
	{Name: "updateUser", Flags: OnExternal, Handler: updateUser, Fields: "=:string pwd:string customData:object roles:array digestPassword:safeBool authenticationRestrictions:objects mechanisms:strings", Listed: true},
	{Name: "dropUser", Flags: OnExternal, Handler: dropUser, Fields: "=:string", Listed: true},
	{Name: "usersInfo", Flags: OnExternal, Handler: usersInfo, Fields: "showPrivileges:safeBool showCredentials:safeBool showAuthenticationRestrictions:safeBool showCustomData:safeBool authenticatedMechanism:string filter:object", Listed: true},
	{Name: "rolesInfo", Handler: rolesInfo, Fields: "showPrivileges showBuiltinRoles:safeBool showAuthenticationRestrictions:safeBool", Listed: true},
}

const (
	scram1   = "SCRAM-SHA-1"
	scram256 = "SCRAM-SHA-256"
	plain    = "PLAIN"
	x509     = "MONGODB-X509"
	oidc     = "MONGODB-OIDC"
	external = "$external" // the database of the users of the last three
	// iterations is the least that clients accept: this server guards no secrets worth more.
	iterations = 4096
)

// User is who may authenticate. Every user may do everything.
type User struct {
	Name, Password string
	DB             string   // the authentication database, "admin" if empty
	Mechanisms     []string // nil: all that the database allows
}

// allowed are the mechanisms of a database's users, if they have a password; MONGODB-X509 needs none.
func allowed(db, password string) []string {
	switch {
	case db != external:
		return []string{scram1, scram256}
	case password == "":
		return []string{x509}
	}
	return []string{x509, plain}
}

// Users are the users of a set, shared by its members. They are kept beside the data, not in it: nothing of them is
// replicated, and there are no roles.
type Users struct {
	mu     sync.Mutex // guards byName
	byName map[string]*credentials
}

// credentials are what a server stores of a user: keys, no password.
type credentials struct {
	user       User // without the password
	mechanisms map[string]scram.StoredCredentials
}

// NewUsers derives the keys of the users. An empty list makes a set in which nobody can authenticate.
func NewUsers(list ...User) (*Users, error) {
	u := &Users{byName: map[string]*credentials{}}
	for _, user := range list {
		if err := u.set(user, user.Mechanisms); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (u *Users) set(user User, mechanisms []string) error {
	if user.DB == "" {
		user.DB = "admin"
	}
	if user.Name == "" {
		return fmt.Errorf("a user needs a name")
	}
	if mechanisms == nil {
		mechanisms = allowed(user.DB, user.Password)
	}
	c := &credentials{user: User{Name: user.Name, DB: user.DB}, mechanisms: map[string]scram.StoredCredentials{}}
	for _, mechanism := range mechanisms {
		if !slices.Contains(allowed(user.DB, user.Password), mechanism) {
			return fmt.Errorf("user %s of %s cannot have the mechanism %s", user.Name, user.DB, mechanism)
		}
		keys, err := derive(mechanism, user)
		if err != nil {
			return fmt.Errorf("user %s: %w", user.Name, err)
		}
		c.mechanisms[mechanism] = keys
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byName[user.DB+"."+user.Name] = c
	return nil
}

func derive(mechanism string, user User) (scram.StoredCredentials, error) {
	salt := make([]byte, saltSize(mechanism))
	if _, err := rand.Read(salt); err != nil {
		return scram.StoredCredentials{}, err
	}
	return deriveWith(mechanism, user, string(salt))
}

// saltSize is as long as a server's salts are: the digest less the four bytes of a block's number. libmongoc, and so the
// drivers over it, takes no other.
func saltSize(mechanism string) int {
	if mechanism == scram1 {
		return sha1.Size - 4
	}
	return sha256.Size - 4
}

func deriveWith(mechanism string, user User, salt string) (scram.StoredCredentials, error) {
	var client *scram.Client
	var err error
	switch mechanism {
	case x509: // the certificate is the proof
		return scram.StoredCredentials{}, nil
	case plain: // kept as the keys of SCRAM are, so that no password is
		client, err = scram.SHA256.NewClientUnprepped(user.Name, user.Password, "")
	case scram256:
		client, err = scram.SHA256.NewClient(user.Name, user.Password, "")
	case scram1: // whose password is a digest, never prepared
		sum := md5.Sum([]byte(user.Name + ":mongo:" + user.Password)) // #nosec
		client, err = scram.SHA1.NewClientUnprepped(user.Name, hexOf(sum[:]), "")
	default:
		return scram.StoredCredentials{}, fmt.Errorf("unknown mechanism %s", mechanism)
	}
	if err != nil {
		return scram.StoredCredentials{}, err
	}
	return client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: salt, Iters: iterations})
}

func (u *Users) lookup(name, db string) *credentials {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.byName[db+"."+name]
}

// knows says whether there is such a user with such a password.
func (u *Users) knows(name, password, db string) bool {
	c := u.lookup(name, db)
	if c == nil {
		return false
	}
	want, has := c.mechanisms[plain]
	got, err := deriveWith(plain, User{Name: name, Password: password}, want.Salt)
	return has && err == nil && hmac.Equal(got.StoredKey, want.StoredKey)
}

// has says whether there is such a user and may use the mechanism.
func (u *Users) has(name, db, mechanism string) bool {
	c := u.lookup(name, db)
	if c == nil {
		return false
	}
	_, ok := c.mechanisms[mechanism]
	return ok
}

// mechanisms are those of the user "db.name", nil if there is no such user.
func (u *Users) mechanisms(name string) []string {
	db, user, _ := strings.Cut(name, ".")
	c := u.lookup(user, db)
	if c == nil {
		return nil
	}
	var list []string
	for _, mechanism := range []string{scram1, scram256} {
		if _, ok := c.mechanisms[mechanism]; ok {
			list = append(list, mechanism)
		}
	}
	return list
}

// server is the server's half of a mechanism on an authentication database.
func (u *Users) server(mechanism, db string) (*scram.Server, error) {
	hash := scram.SHA256
	if mechanism == scram1 {
		hash = scram.SHA1
	}
	return hash.NewServer(func(name string) (scram.StoredCredentials, error) {
		c := u.lookup(name, db)
		if c == nil {
			return scram.StoredCredentials{}, fmt.Errorf("no such user")
		}
		keys, ok := c.mechanisms[mechanism]
		if !ok {
			return scram.StoredCredentials{}, fmt.Errorf("the user has no such mechanism")
		}
		return keys, nil
	})
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// newUUID is a random (version 4) UUID.
func newUUID() (u [16]byte) {
	_, _ = rand.Read(u[:]) // never fails
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// usersOf refuses to manage users in a set that was started without authentication.
func usersOf(m *Member) (*Users, error) {
	if m.opt.Users == nil {
		return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "this set was started without authentication: it keeps no users")
	}
	return m.opt.Users, nil
}

func createUser(_ context.Context, m *Member, r *Request) (bson.D, error) {
	name, _ := r.Field("createUser").StringValueOK()
	if r.Field("pwd").IsZero() && r.DB != external {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db")
	}
	if err := m.checkRoles(r, true); err != nil {
		return nil, err
	}
	u, err := usersOf(m)
	if err != nil {
		return nil, err
	}
	if u.lookup(name, r.DB) != nil {
		return nil, mongoerr.Server(51003, "User \"%s@%s\" already exists", name, r.DB)
	}
	return nil, u.store(name, r)
}

func updateUser(_ context.Context, m *Member, r *Request) (bson.D, error) {
	name, _ := r.Field("updateUser").StringValueOK()
	if err := m.checkRoles(r, false); err != nil {
		return nil, err
	}
	u, err := usersOf(m)
	if err != nil {
		return nil, err
	}
	if u.lookup(name, r.DB) == nil {
		return nil, noUser(name, r.DB)
	}
	if r.Field("pwd").IsZero() {
		return nil, nil
	}
	return nil, u.store(name, r)
}

// checkRoles holds the roles of a user to the form of such.
func (m *Member) checkRoles(r *Request, required bool) error {
	v, generated := r.Field("roles"), m.opt.Persona.wire >= wire50
	roles, ok := v.ArrayOK()
	switch {
	case value.Nullish(v) && !required:
		return nil
	case v.IsZero():
		return mongoerr.Server(mongoerr.CodeBadValue, `"%s" command requires a "roles" array`, r.Spec.Name)
	case !ok:
		return wrongOld("roles", v, "array")
	}
	for _, e := range roles.All() {
		_, byName := e.StringValueOK()
		d, _ := e.DocumentOK()
		role, db := d.Lookup("role"), d.Lookup("db")
		switch {
		case byName || role.Type == bson.TypeString && db.Type == bson.TypeString:
		case generated:
			return mongoerr.Server(mongoerr.CodeBadValue, "Role name must be either a document or string")
		default:
			return mongoerr.Server(mongoerr.CodeBadValue, "User and role names must be either strings or objects")
		}
	}
	return nil
}

// store sets a user as createUser and updateUser describe it. Roles are accepted and without effect.
func (u *Users) store(name string, r *Request) error {
	pwd, ok := r.Field("pwd").StringValueOK()
	if (!ok || pwd == "") && !(r.DB == external && r.Field("pwd").IsZero()) {
		return mongoerr.Server(mongoerr.CodeBadValue, "User passwords must be of string type and not empty")
	}
	var mechanisms []string
	if v := r.Field("mechanisms"); !v.IsZero() {
		if mechanisms, ok = stringList(v); !ok || len(mechanisms) == 0 {
			return mongoerr.Server(mongoerr.CodeBadValue, "mechanisms field must be a non-empty array of strings")
		}
	}
	if err := u.set(User{Name: name, Password: pwd, DB: r.DB}, mechanisms); err != nil {
		return mongoerr.Server(mongoerr.CodeBadValue, "%v", err)
	}
	return nil
}

func noUser(name, db string) error {
	return mongoerr.Server(mongoerr.CodeUserNotFound, "User '%s@%s' not found", name, db)
}

func dropUser(_ context.Context, m *Member, r *Request) (bson.D, error) {
	name, _ := r.Field("dropUser").StringValueOK()
	if m.opt.Users == nil || m.opt.Users.lookup(name, r.DB) == nil {
		return nil, noUser(name, r.DB)
	}
	u := m.opt.Users
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byName, r.DB+"."+name)
	return nil, nil
}

// usersInfo lists the users of a database, or one of them. Not told: roles, custom data, credentials.
func usersInfo(_ context.Context, m *Member, r *Request) (bson.D, error) {
	list := []bson.D{}
	if m.opt.Users == nil {
		return bson.D{{Key: "users", Value: list}}, nil
	}
	want, one := r.Field("usersInfo").StringValueOK()
	m.opt.Users.mu.Lock()
	defer m.opt.Users.mu.Unlock()
	for id, c := range m.opt.Users.byName {
		if c.user.DB == r.DB && (!one || c.user.Name == want) {
			list = append(list, bson.D{{Key: "_id", Value: id}, {Key: "user", Value: c.user.Name}, {Key: "db", Value: c.user.DB},
				{Key: "roles", Value: []bson.D{{{Key: "role", Value: "root"}, {Key: "db", Value: "admin"}}}}})
		}
	}
	return bson.D{{Key: "users", Value: list}}, nil
}

func rolesInfo(context.Context, *Member, *Request) (bson.D, error) {
	return bson.D{{Key: "roles", Value: []bson.D{}}}, nil
}
