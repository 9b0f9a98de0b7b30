package command

import (
	"strings"
	"testing"
)

// FuzzServerScram: no message of a client panics, makes the server hold much, or passes for a proof.
func FuzzServerScram(f *testing.F) {
	users, err := NewUsers(User{Name: "joe", Password: "pencil"}, User{Name: "=2C,n=", Password: "p"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, []byte("n,,n=joe,r=fyko+d2lbbFgONRv9qkxdawL"), []byte("c=biws,r=fyko+d2lbbFgONRv9qkxdawL,p=AAAA"))
	f.Add(false, []byte("n,a=ann,n=ann,r=x"), []byte("c=biws"))
	f.Add(true, []byte("p=tls-unique,,m=1,n=joe=2C,r=\x00"), []byte("e=other-error"))
	f.Add(true, []byte("y,,n==3D2C=2Cn=3D,r=abc,x=y"), []byte{})
	f.Fuzz(func(t *testing.T, modern bool, first, final []byte) {
		mechanism := scram1
		if modern {
			mechanism = scram256
		}
		m := &Member{opt: Options{Users: users}}
		half, err := m.half(mechanism, "admin")
		if err != nil {
			t.Fatal(err)
		}
		answer, done, err := half.step(first)
		if done && err == nil {
			t.Fatalf("%q alone was taken for a login", first)
		}
		if len(answer) > 2*len(first)+500 {
			t.Fatalf("%d bytes were answered with %d", len(first), len(answer))
		}
		nonce, _, _ := strings.Cut(string(answer), ",") // so that the proof is looked at, too
		for _, second := range []string{string(final), "c=biws," + nonce + ",p=" + string(final)} {
			if answer, done, err := half.step([]byte(second)); done && err == nil {
				t.Fatalf("%q after %q was taken for a proof: %q", second, first, answer)
			}
		}
		_ = half.user()
	})
}

// FuzzPlainAndOIDC: the exchanges of one message refuse whatever is none.
func FuzzPlainAndOIDC(f *testing.F) {
	users, err := NewUsers(User{Name: "ann", Password: "pencil", DB: external})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("\x00ann\x00pencils"))
	f.Add([]byte("ann\x00joe\x00"))
	f.Add([]byte{16, 0, 0, 0, 2, 'j', 'w', 't', 0, 2, 0, 0, 0, 'x', 0, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		m := &Member{opt: Options{Users: users, OIDC: &OIDC{Providers: []OIDCProvider{{Issuer: "a"}, {Issuer: "b", Users: []string{"joe"}}},
			Check: func(string) (string, error) { return "", errAuth() }}}}
		for _, mechanism := range []string{plain, oidc} {
			half, err := m.half(mechanism, external)
			if err != nil {
				t.Fatal(err)
			}
			if _, done, err := half.step(payload); done && err == nil && !strings.HasSuffix(string(payload), "\x00ann\x00pencil") {
				t.Fatalf("%s: %q was taken for a login", mechanism, payload)
			}
		}
	})
}
