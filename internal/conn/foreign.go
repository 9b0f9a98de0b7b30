package conn

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/sextantdb/sextant/internal/wire"
	"github.com/sextantdb/sextant/mongoerr"
)

// foreign marks the cause of a failure for which the server's own bytes vouch: it speaks another protocol than this client,
// so that only another configuration helps.
type foreign struct{ error }

func (f foreign) Unwrap() error { return f.error }

// IsForeign says whether the server was heard to speak another protocol than the one that it was spoken to in: TLS in the
// place of none, none in the place of TLS, HTTP.
func IsForeign(err error) bool {
	_, ok := errors.AsType[foreign](err)
	return ok
}

// marked is err, marked if the first bytes of the server are surely of a foreign protocol. The length of a message of 790
// bytes looks like the oldest TLS, and a server may die in the middle of that.
func (c *Conn) marked(err error) error {
	b := c.rbuf[c.used:]
	if g := wire.Guess(b); c.phase != mongoerr.StageHandshake || g == "" || g == "a TLS record" && b[2] == 0 {
		return err
	}
	return foreign{err}
}

// diagnosed is err, or a surer one where o.Diagnose is set and the server has hung up on its greeting. A server that dies
// does that too, as does a forwarder with nobody behind it; so the server is greeted once more in the other way. That it
// answers is the proof. It is told nothing but the word hello in clear, and gets no answer to what it says in TLS.
func (o *Options) diagnosed(ctx context.Context, addr string, err error) error {
	e, ok := errors.AsType[*mongoerr.Error](err)
	if !ok || !o.Diagnose || !isHangUp(err) || IsForeign(err) || ctx.Err() != nil {
		return err
	}
	other := *o
	other.Reached, other.Revocation = nil, nil
	switch {
	case e.Stage == mongoerr.StageTLS && o.TLS != nil:
		if other.TLS = nil; answersPlain(ctx, addr, &other) {
			return failure(mongoerr.StageTLS, addr, foreign{e.Cause}, "the server hangs up on TLS and answers without: it is a port without TLS")
		}
	case e.Stage == mongoerr.StageHandshake && o.TLS == nil:
		if other.TLS = unverified; answersTLS(ctx, addr, &other) {
			return failure(mongoerr.StageHandshake, addr, foreign{e.Cause}, "the server hangs up on plain bytes and answers in TLS: it wants TLS (tls=true)")
		}
	}
	return err
}

// unverified is for a connection on which nothing is ever said: who the server is does not matter.
var unverified = &tls.Config{InsecureSkipVerify: true}

func answersTLS(ctx context.Context, addr string, o *Options) bool {
	nc, err := dial(ctx, addr, o)
	if err != nil {
		return alertWords(err) != ""
	}
	nc.Close()
	return true
}

func answersPlain(ctx context.Context, addr string, o *Options) bool {
	nc, err := dial(ctx, addr, o)
	if err != nil {
		return false
	}
	c := newConn(nc, addr)
	defer c.Close()
	_, err = c.command(ctx, "admin", appendBareHello)
	return err == nil
}
