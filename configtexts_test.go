package sextant_test

import (
	"strings"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
)

// TestTextsOfAConfigAreHeldToWhatAConnectionStringIsHeldTo, with the option's name in the error.
func TestTextsOfAConfigAreHeldToWhatAConnectionStringIsHeldTo(t *testing.T) {
	for name, set := range map[string]func(*sextant.Config, string){
		"appName":          func(c *sextant.Config, v string) { c.AppName = v },
		"replicaSet":       func(c *sextant.Config, v string) { c.ReplicaSet = v },
		"proxyHost":        func(c *sextant.Config, v string) { c.ProxyHost = v },
		"readConcernLevel": func(c *sextant.Config, v string) { c.ReadConcern = &concern.Read{Level: v} },
		"w":                func(c *sextant.Config, v string) { c.WriteConcern = &concern.Write{W: v} },
		"tlsCAFile":        func(c *sextant.Config, v string) { c.TLS, c.TLSCAFile = true, v },
		"is not a host":    func(c *sextant.Config, v string) { c.Hosts = []string{v} },
		"authMechanismProperties": func(c *sextant.Config, v string) {
			c.AuthMechanism, c.Username, c.Password, c.AuthMechanismProperties = "MONGODB-AWS", "AKID", "x", map[string]string{"AWS_SESSION_TOKEN": v}
		},
		"authSource": func(c *sextant.Config, v string) { c.Username, c.Password, c.AuthSource = "joe", "x", v },
	} {
		for _, bad := range []string{" ", "\t", "a\x00b", "a\nb"} {
			cfg := &sextant.Config{Hosts: []string{"h"}}
			set(cfg, bad)
			cl, err := sextant.ConnectConfig(t.Context(), cfg)
			if err == nil {
				cl.Close(t.Context())
			}
			if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s of %q: %v", name, bad, err)
			}
		}
	}
}
