package sextant_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/mongoerr"
)

func TestConfigAndClientPrintNoSecret(t *testing.T) {
	cfg := must[*sextant.Config](t)(sextant.ParseURI("mongodb://joe:s3cr3t@localhost/?authMechanismProperties=SERVICE_NAME:s3cr3t&proxyHost=p&proxyUsername=joe&proxyPassword=s3cr3t"))
	cl := must[*sextant.Client](t)(sextant.ConnectConfig(context.Background(), &sextant.Config{Hosts: []string{"localhost"}, Username: "joe", Password: "s3cr3t"}))
	defer cl.Close(context.Background())
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("text", "cfg", cfg, "value", *cfg, "client", cl)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("json", "cfg", cfg, "value", *cfg, "client", cl)
	all := logged.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		all += fmt.Sprintf(strings.Repeat(verb, 4), cfg, *cfg, cl, cl.Database("shop"))
	}
	if strings.Contains(all, "s3cr3t") || strings.Contains(all, fmt.Sprintf("%x", "s3cr3t")) {
		at := strings.Index(all, "s3cr3t")
		t.Errorf("a secret is printed: ...%.100s", all[max(at-90, 0):])
	}
	if !strings.Contains(fmt.Sprintf("%+v", cfg), "Username:joe") || cfg.Password != "s3cr3t" || cfg.AuthMechanismProperties["SERVICE_NAME"] != "s3cr3t" {
		t.Errorf("the rest is not printed, or printing changed the configuration: %+v", cfg)
	}
}

func TestBytesThatAreNoTextAreRefusedInTheConfiguration(t *testing.T) {
	for _, cfg := range []sextant.Config{
		{Username: "joe\xff", Password: "x"}, {Username: "joe", Password: "s3cr3t\xff"}, {AuthSource: "a\xff"}, {AppName: "a\xff"},
		{Database: "a\xff"}, {ReadConcern: &concern.Read{Level: "a\xff"}}, {WriteConcern: &concern.Write{W: "a\xff"}},
	} {
		cfg.Hosts = []string{"localhost"}
		_, err := sextant.ConnectConfig(context.Background(), &cfg)
		if !mongoerr.IsConfig(err) || !strings.Contains(err.Error(), "UTF-8") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%v", err)
		}
	}
}
