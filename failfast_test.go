package sextant_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset"
)

// TestFailFastKnowsAPortThatSpeaksSomethingElse goes by what servers truly do: a member closes, a web server answers, OpenSSL
// sends an alert. What merely closes is waited for, for so does a server that dies, and a forwarder with nobody behind it.
func TestFailFastKnowsAPortThatSpeaksSomethingElse(t *testing.T) {
	const http, alert = "HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x03\x00\x02\x02\x46"
	plain := replset.Run(t, replset.Options{Members: 1}).Member(0).Addr()
	secure := replset.Run(t, replset.Options{Members: 1, TLS: &replset.TLS{}}).Member(0).Addr()
	for name, tc := range map[string]struct {
		addr, query, words string
		lasts              bool
	}{
		"TLS to a plain member":        {plain, "tls=true", "a port without TLS", true},
		"plain to a member with TLS":   {secure, "tls=false", "it wants TLS (tls=true)", true},
		"TLS to HTTP":                  {answeringAll(t, http), "tls=true", "its bytes are an HTTP answer", true},
		"plain to HTTP":                {answeringAll(t, http), "tls=false", "malformed message", true},
		"plain to an alert":            {answeringAll(t, alert), "tls=false", "bytes that are a TLS record", true},
		"TLS to an alert":              {answeringAll(t, alert), "tls=true", "no version of TLS", true},
		"TLS to what closes":           {answeringAll(t, ""), "tls=true", "closed the connection", false},
		"plain to what closes":         {answeringAll(t, ""), "tls=false", "closed the connection", false},
		"plain to a message that ends": {answeringAll(t, "\x16\x03\x00\x00\x01\x00\x00"), "tls=false", "closed the connection", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := sextant.ParseURI("mongodb://" + tc.addr + "/?directConnection=true&" + tc.query)
			if err != nil {
				t.Fatal(err)
			}
			cfg.FailFast, cfg.ServerSelectionTimeout = true, 10*time.Second
			if !tc.lasts {
				cfg.ServerSelectionTimeout = 300 * time.Millisecond
			}
			cl, err := sextant.ConnectConfig(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close(context.Background())
			_, err = cl.Database("db").Collection("c").FindOne(t.Context(), bson.D{})
			if !mongoerr.IsSelection(err) || !strings.Contains(err.Error(), tc.words) {
				t.Fatalf("%v", err)
			}
			if strings.Contains(err.Error(), "(FailFast: waiting does not cure this)") != tc.lasts {
				t.Errorf("%v", err)
			}
		})
	}
}

// answeringAll listens, and answers whatever comes by the same bytes and the end of the connection.
func answeringAll(t *testing.T, with string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				_, _ = nc.Read(make([]byte, 64<<10))
				_, _ = io.WriteString(nc, with)
			}()
		}
	}()
	return l.Addr().String()
}
