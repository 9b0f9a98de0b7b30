package conn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/internal/credential"
)

// handshaken is a handshake with a server whose certificate names two responders.
func handshaken(t *testing.T) tls.ConnectionState {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var chain []*x509.Certificate
	for i := range 2 {
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotAfter: time.Now().Add(time.Hour), IsCA: i == 0, BasicConstraintsValid: true,
			OCSPServer: []string{"http://one/", "http://two/"}}
		parent := c
		if i > 0 {
			parent = chain[0]
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, key)
		if err == nil {
			c, err = x509.ParseCertificate(der)
		}
		if err != nil {
			t.Fatal(err)
		}
		chain = append([]*x509.Certificate{c}, chain...)
	}
	return tls.ConnectionState{PeerCertificates: chain, VerifiedChains: [][]*x509.Certificate{chain}}
}

// Without the limit of five seconds the first check takes the ten of a request; without a memory every one takes five.
func TestSilentRespondersAreGivenUpAfterFiveSecondsAndLeftAloneForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := handshaken(t)
		var asked atomic.Int32
		r := &Revocation{Responders: credential.System{Dial: func(context.Context, string, string) (net.Conn, error) {
			asked.Add(1)
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }()
			return client, nil
		}}}
		for _, want := range []struct {
			took  time.Duration
			asked int32
			then  time.Duration
		}{{5 * time.Second, 2, time.Second}, {0, 2, time.Minute}, {5 * time.Second, 4, 0}} {
			start := time.Now()
			if err := r.check(t.Context(), state, nil); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took != want.took || asked.Load() != want.asked {
				t.Errorf("%v, %d questions; want %+v", took, asked.Load(), want)
			}
			time.Sleep(want.then)
		}
		r = &Revocation{Responders: r.Responders}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.check(ctx, state, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a connection whose time is up: %v", err)
		}
	})
}
