package auth

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"github.com/xdg-go/stringprep"
)

const (
	// MinIterations is the least that a server may ask for: below it the password is cheap to guess for whoever
	// listened (auth specification: "MUST enforce a minimum iteration count of 4096").
	MinIterations = 4096
	// MaxIterations bounds the work that a stranger can put on the client: about two seconds.
	MaxIterations = 10_000_000

	gs2Header = "n,," // no channel binding, no other identity
)

// KeyRequest is everything that SCRAM's keys depend on. Secret is the password as the mechanism wants it; it must not
// be printed or kept in the clear.
type KeyRequest struct {
	Mechanism  string
	Secret     string
	Salt       []byte
	Iterations int
}

// Keys are what a KeyRequest derives, RFC 5802 section 3.
type Keys struct {
	Client []byte // ClientKey
	Stored []byte // H(ClientKey)
	Server []byte // ServerKey
}

// KeyFunc answers a request, from a cache or by Derive.
type KeyFunc func(KeyRequest) (Keys, error)

// Derive does the slow work: PBKDF2 over all iterations.
func (r KeyRequest) Derive() (Keys, error) {
	h := hashOf(r.Mechanism)
	salted, err := pbkdf2.Key(h, r.Secret, r.Salt, r.Iterations, h().Size())
	if err != nil {
		return Keys{}, fmt.Errorf("%s: %w", r.Mechanism, err)
	}
	k := Keys{Client: mac(h, salted, "Client Key"), Server: mac(h, salted, "Server Key")}
	stored := h()
	stored.Write(k.Client)
	k.Stored = stored.Sum(nil)
	return k, nil
}

// scramClient is the client's side of RFC 5802 (SHA-1) and RFC 7677 (SHA-256), without channel binding.
type scramClient struct {
	mechanism string
	secret    string
	keys      KeyFunc
	nonce     string
	bare      string // client-first-message-bare
	signature []byte // what the server must send, known after its first message
	done      bool
}

// NewScram begins a conversation by SCRAM-SHA-256 or SCRAM-SHA-1. nonce must be fresh random printable text without a
// comma (RFC 5802 section 5.1); keys may be nil, then every conversation derives its keys anew.
func NewScram(mechanism, username, password, nonce string, keys KeyFunc) (Conversation, error) {
	if mechanism != ScramSHA1 && mechanism != ScramSHA256 {
		return nil, fmt.Errorf("%s is no SCRAM", mechanism)
	}
	if username == "" {
		return nil, fmt.Errorf("%s needs a username", mechanism)
	}
	if nonce == "" || strings.ContainsRune(nonce, ',') {
		return nil, fmt.Errorf("%s needs a nonce without a comma", mechanism)
	}
	secret, err := prepare(mechanism, username, password)
	if err != nil {
		return nil, err
	}
	if keys == nil {
		keys = KeyRequest.Derive
	}
	name := strings.NewReplacer("=", "=3D", ",", "=2C").Replace(username)
	return &scramClient{mechanism: mechanism, secret: secret, keys: keys, nonce: nonce, bare: "n=" + name + ",r=" + nonce}, nil
}

// prepare turns the password into what the mechanism salts: SCRAM-SHA-1 keeps the digest of MongoDB's first mechanism,
// SCRAM-SHA-256 normalises with SASLprep (auth specification; user names are sent as they are).
func prepare(mechanism, username, password string) (string, error) {
	if mechanism == ScramSHA1 {
		sum := md5.Sum([]byte(username + ":mongo:" + password))
		return hex.EncodeToString(sum[:]), nil
	}
	secret, err := stringprep.SASLprep.Prepare(password)
	if err != nil {
		// The cause would quote the password.
		return "", fmt.Errorf("%s: the password holds characters that SASLprep (RFC 4013) prohibits", mechanism)
	}
	return secret, nil
}

func (s *scramClient) Start() (string, []byte) {
	return s.mechanism, []byte(gs2Header + s.bare)
}

func (s *scramClient) Step(challenge []byte) ([]byte, bool, error) {
	if s.done {
		return nil, true, nil
	}
	if s.signature == nil {
		payload, err := s.answer(string(challenge))
		return payload, false, err
	}
	if err := s.verify(string(challenge)); err != nil {
		return nil, false, err
	}
	s.done = true
	return nil, true, nil
}

// answer turns the server's first message into the client's final message.
func (s *scramClient) answer(first string) ([]byte, error) {
	f, err := s.parseFirst(first)
	if err != nil {
		return nil, err
	}
	keys, err := s.keys(KeyRequest{Mechanism: s.mechanism, Secret: s.secret, Salt: f.salt, Iterations: f.iterations})
	if err != nil {
		return nil, err
	}
	final := "c=" + base64.StdEncoding.EncodeToString([]byte(gs2Header)) + ",r=" + f.nonce
	message := s.bare + "," + first + "," + final
	h := hashOf(s.mechanism)
	proof := mac(h, keys.Stored, message)
	subtle.XORBytes(proof, proof, keys.Client)
	s.signature = mac(h, keys.Server, message)
	return []byte(final + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

// serverFirst is server-first-message of RFC 5802 section 7.
type serverFirst struct {
	nonce      string
	salt       []byte
	iterations int
}

func (s *scramClient) parseFirst(text string) (f serverFirst, err error) {
	parts := strings.Split(text, ",")
	if strings.HasPrefix(text, "m=") {
		return f, s.errorf("the server wants an extension that this driver does not know")
	}
	if strings.HasPrefix(text, "e=") {
		return f, s.errorf("the server refused: %s", printable(parts[0][2:]))
	}
	if len(parts) < 3 || !strings.HasPrefix(parts[0], "r=") || !strings.HasPrefix(parts[1], "s=") || !strings.HasPrefix(parts[2], "i=") {
		return f, s.errorf("the server's first message is not of the form r=,s=,i=")
	}
	f.nonce = parts[0][2:]
	if !strings.HasPrefix(f.nonce, s.nonce) || len(f.nonce) == len(s.nonce) {
		return f, s.errorf("the server's nonce does not extend the client's")
	}
	if f.salt, err = base64.StdEncoding.DecodeString(parts[1][2:]); err != nil || len(f.salt) == 0 {
		return f, s.errorf("the server's salt is not base64")
	}
	if f.iterations, err = strconv.Atoi(parts[2][2:]); err != nil {
		return f, s.errorf("the server's iteration count is not a number")
	}
	if f.iterations < MinIterations || f.iterations > MaxIterations {
		return f, s.errorf("the server's iteration count %d is not within %d and %d", f.iterations, MinIterations, MaxIterations)
	}
	return f, nil
}

// verify checks that the server knows the user's key too.
func (s *scramClient) verify(final string) error {
	if text, refused := strings.CutPrefix(final, "e="); refused {
		return s.errorf("the server refused: %s", printable(text))
	}
	text, ok := strings.CutPrefix(final, "v=")
	if !ok {
		return s.errorf("the server's final message is not of the form v=")
	}
	text, _, _ = strings.Cut(text, ",")
	got, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return s.errorf("the server's signature is not base64")
	}
	if !hmac.Equal(got, s.signature) {
		return fmt.Errorf("%s: %w", s.mechanism, ErrServerSignature)
	}
	return nil
}

// ErrServerSignature is wrapped when the server could not prove that it knows the user's key: whoever answers is not
// the server that the password was made for.
var ErrServerSignature = errors.New("the server's signature is wrong: it does not know this user's key")

func (s *scramClient) errorf(format string, args ...any) error {
	return fmt.Errorf(s.mechanism+": "+format, args...)
}

// printable bounds and quotes what a stranger wants to have printed.
func printable(text string) string {
	if len(text) > 80 {
		text = text[:80]
	}
	return strconv.QuoteToASCII(text)
}

func hashOf(mechanism string) func() hash.Hash {
	if mechanism == ScramSHA1 {
		return sha1.New
	}
	return sha256.New
}

func mac(h func() hash.Hash, key []byte, message string) []byte {
	m := hmac.New(h, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}
