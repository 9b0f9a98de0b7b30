package doctor

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset"
)

func TestDoctorFindsAHealthySetHealthy(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 3, Users: []replset.User{{Name: "joe", Password: "s3cret"}}})
	d := look(t, strings.Replace(set.URI(), "://", "://joe:s3cret@", 1), zone{}, nil)
	if d.Verdict != Healthy || len(d.Findings) != 0 {
		t.Errorf("%s: %v", d.Verdict, d.Findings)
	}
	rows := d.Table()
	if len(rows) != 4 || rows[1][5] == "-" || !strings.HasPrefix(rows[1][6], "8.0") || rows[1][8] != "0 ms" {
		t.Errorf("table %v", rows)
	}
}

func TestDoctorSaysWhatListensOnAPort(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	secureWeb := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secureWeb.Close)
	without := replset.Run(t, replset.Options{}).Member(0).Addr()
	with := replset.Run(t, replset.Options{TLS: &replset.TLS{}}).Member(0).Addr()
	mutual := replset.Run(t, replset.Options{TLS: &replset.TLS{ClientCertificates: true}}).Member(0).Addr()
	for _, c := range []struct {
		name, addr, options string
		stage, cause, cure  string
	}{
		{"nothing", closedPort(t), "", "dial", "connection refused", "net.bindIp"},
		{"a server that wants TLS", with, "", "hello", "wants TLS", "tls=true"},
		{"a server that wants TLS and certificates", mutual, "", "hello", "wants TLS", "tls=true"},
		{"a server without TLS", without, "tls=true", "tls", "speaks no TLS", "leave out tls=true"},
		{"who hangs up on a plain hello", listen(t, hangUp), "", "hello", "closes the connection after the hello (EOF)", "access list"},
		{"who hangs up on a ClientHello", listen(t, hangUp), "tls=true", "tls", "EOF after ClientHello", "leave out tls=true"},
		{"who refuses with alert 80", listen(t, says("\x15\x03\x03\x00\x02\x02\x50")), "tls=true", "tls", "alert 80", "IP access list"},
		{"who wants a client certificate", mutual, "tls=true&tlsAllowInvalidCertificates=true", "tls", "client certificate", "tlsCertificateKeyFile"},
		{"a web server", web.Listener.Addr().String(), "", "hello", "HTTP server", "27017"},
		{"a web server, in TLS", web.Listener.Addr().String(), "tls=true", "tls", "HTTP server", "27017"},
		{"a web server with TLS, in plain", secureWeb.Listener.Addr().String(), "", "hello", "HTTP server", "27017"},
		{"another protocol", listen(t, says("SSH-2.0-OpenSSH_9.6\r\n")), "", "hello", "not MongoDB", "port"},
		{"an old socket", "%2Ftmp%2Fno-such-27017.sock", "", "dial", "no such socket", "pathPrefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := look(t, "mongodb://"+c.addr+"/?"+c.options, zone{}, nil)
			addr := strings.ReplaceAll(c.addr, "%2F", "/")
			d.expect(t, Unreachable, c.stage, addr, c.cause, c.cure)
		})
	}
}

func TestDoctorKnowsAFirewallByItsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := look(t, "mongodb://db1,db2", zone{hosts: map[string]string{"db1": "192.0.2.1", "db2": "192.0.2.2"}}, never)
		d.expect(t, Unreachable, "dial", "db1:27017", "packets are dropped", "firewall")
		d.expect(t, Unreachable, "dial", "db2:27017", "packets are dropped", "firewall")
	})
}

func TestDoctorKnowsWhoAcceptsAndSaysNothing(t *testing.T) {
	there := zone{hosts: map[string]string{"db": "192.0.2.1"}}
	for _, c := range []struct{ options, stage, server, cause, cure string }{
		{"", "hello", "db:27017", "does not answer the hello", "hangs"},
		{"loadBalanced=true", "hello", "db:27017", "does not answer the hello", "hangs"},
		{"tls=true", "tls", "db:27017", "does not answer the first message of TLS", "hung"},
		{"proxyHost=db", "proxy", "db:1080", "does not answer in time", "proxyPort"},
	} {
		synctest.Test(t, func(t *testing.T) {
			look(t, "mongodb://db/?"+c.options, there, mute).expect(t, Unreachable, c.stage, c.server, c.cause, c.cure)
		})
	}
}

// never opens a socket to somewhere where packets are dropped.
func never(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// mute opens a socket to a server that reads and never answers.
func mute(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go silence(far)
	return near, nil
}

func TestDoctorReadsNamesAsTheyAreSeenFromHere(t *testing.T) {
	two := these("mongo1:27017", "mongo2:27017")
	a := fakes(t, member("rs0", true, named("mongo1:27017"), two))
	d := look(t, "mongodb://"+a[0]+"/?replicaSet=rs0", zone{}, nil)
	d.expect(t, Unreachable, "dns", "mongo1:27017", "container", "rs.reconfig")
	d.expect(t, Unreachable, "dns", "mongo2:27017", a[0]+" advertises it as member of set rs0", "/etc/hosts")
	d.expect(t, Unreachable, "names", a[0], "calls itself mongo1:27017", "directConnection=true")
	d.expect(t, Unreachable, "names", a[0], "(mongo1:27017, mongo2:27017), none of which can be reached", "Config.AddressMap")
	if len(d.Findings) != 3 || len(d.Page()) != 2 || d.Page()[0].Server != "mongo1:27017, mongo2:27017" {
		t.Errorf("findings that are not needed, or said twice: %v", d.Page())
	}
	if d := look(t, "mongodb://"+a[0]+"/?directConnection=true", zone{}, nil); d.Verdict != Healthy {
		t.Errorf("directly: %s %v", d.Verdict, d.Findings)
	}
	look(t, "mongodb://db.missing.example", zone{}, nil).expect(t, Unreachable, "dns", "db.missing.example:27017", "does not resolve", "how it is written")
	k := fakes(t, member("rs0", true, named("m-0.mongo.ns.svc.cluster.local:27017"), these("m-0.mongo.ns.svc.cluster.local:27017")))
	look(t, "mongodb://"+k[0], zone{}, nil).expect(t, Unreachable, "dns", "m-0.mongo.ns.svc.cluster.local:27017", "Kubernetes", "resolve here")
}

func TestDoctorKnowsMembersBehindNATByTheSeedThatAnswers(t *testing.T) {
	inside := these("10.9.9.1:27017", "10.9.9.2:27017", "10.9.9.3:27017")
	a := fakes(t, member("rs0", true, named("10.9.9.1:27017"), inside))
	var d net.Dialer
	got := look(t, "mongodb://"+a[0]+"/?replicaSet=rs0", zone{}, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(addr, "10.") {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
		}
		return d.DialContext(ctx, network, addr)
	})
	got.expect(t, Unreachable, "dial", "10.9.9.2:27017", "no way to that address", "routes")
	got.expect(t, Unreachable, "names", a[0], "none of which can be reached from here", "Config.AddressMap")
	if len(got.Page()) != 2 {
		t.Errorf("more than the ways and the names: %v", got.Page())
	}
}

func TestDoctorNotesASeedThatCallsItselfSomethingElse(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1})
	_, port, _ := net.SplitHostPort(set.Member(0).Addr())
	d := look(t, "mongodb://localhost:"+port+"/?replicaSet=rs0", zone{}, nil)
	d.expect(t, Healthy, "names", "localhost:"+port, "calls itself "+set.Member(0).Addr(), "advertised names")
}

func TestDoctorSaysWhatIsWrongWithASet(t *testing.T) {
	set := replset.Run(t, replset.Options{Config: []replset.MemberOptions{{Priority: new(2.0)}, {}, {Arbiter: true}}})
	other := replset.Run(t, replset.Options{SetName: "rs1"})
	a, b := set.Member(0).Addr(), other.Member(0).Addr()
	arbiter := set.Member(2).Addr()
	uri := func(options string, hosts ...string) string {
		return "mongodb://" + strings.Join(hosts, ",") + "/?" + options
	}

	look(t, uri("replicaSet=rs7", a), zone{}, nil).expect(t, Unreachable, "set", a, "a member of set rs0", "replicaSet=rs0")
	look(t, uri("replicaSet=true", a), zone{}, nil).expect(t, Unreachable, "uri", "", "old PHP driver", "write replicaSet=rs0")
	look(t, uri("replicaSet=rs0", arbiter), zone{}, nil).expect(t, Healthy, "roles", arbiter, "arbiter", "with data")
	look(t, uri("", a, b), zone{}, nil).expect(t, Degraded, "set", "", "2 sets: rs0", "one set only")
	look(t, uri("replicaSet=rs0", a, b), zone{}, nil).expect(t, Degraded, "set", b, "a member of set rs1", "out of the connection string")
	look(t, uri("readPreference=secondary&readPreferenceTags=dc:mars", a), zone{}, nil).expect(t, Degraded, "routing", "", "other tags", "sextant explain")

	alone := fakes(t, plain())[0]
	look(t, uri("replicaSet=rs0", alone), zone{}, nil).expect(t, Unreachable, "set", alone, "standalone, not a member of set rs0", "leave out replicaSet")
	look(t, uri("", alone, a), zone{}, nil).expect(t, Degraded, "set", alone, "standalone among several seeds", "one set only")
	mongos := fakes(t, plain(bson.E{Key: "msg", Value: "isdbgrid"}))[0]
	look(t, uri("replicaSet=rs0", mongos), zone{}, nil).expect(t, Unreachable, "set", mongos, "mongos", "leave out replicaSet")
	ghost := fakes(t, func([]string) bson.D {
		return append(plain()(nil)[1:], bson.E{Key: "isreplicaset", Value: true}, bson.E{Key: "isWritablePrimary", Value: false})
	})[0]
	look(t, uri("", ghost), zone{}, nil).expect(t, Unreachable, "set", ghost, "not initiated", "rs.initiate()")
	old := fakes(t, replace(plain(), bson.E{Key: "maxWireVersion", Value: 5}))[0]
	look(t, uri("", old), zone{}, nil).expect(t, Unreachable, "versions", old, "older than MongoDB 4.0", "upgrade")

	if err := set.Kill(1); err != nil { // with the arbiter, the primary stays
		t.Fatal(err)
	}
	d := look(t, uri("replicaSet=rs0", a), zone{}, nil)
	d.expect(t, Degraded, "dial", set.Member(1).Addr(), "refused", "start the server")
	d.expect(t, Degraded, "roles", "", "w: majority wait", "members with data")
}

func TestDoctorSaysWhyThereIsNoPrimary(t *testing.T) {
	few := fakes(t, member("rs0", false, nth(0), func(a []string) []string { return []string{a[0], "gone1:27017", "gone2:27017"} }))
	look(t, "mongodb://"+few[0], zone{}, nil).expect(t, Degraded, "roles", "", "1 of 3 members answer, and 2 must agree", "majority")
	both := fakes(t, member("rs0", false, nth(0), all), member("rs0", false, nth(1), all))
	look(t, "mongodb://"+both[0], zone{}, nil).expect(t, Degraded, "roles", "", "though 2 of 2 members answer", "rs.status()")
	there := closedPort(t)
	led := fakes(t, member("rs0", false, nth(0), func(a []string) []string { return append([]string{there}, a...) }, bson.E{Key: "primary", Value: there}),
		member("rs0", false, nth(1), func(a []string) []string { return append([]string{there}, a...) }, bson.E{Key: "primary", Value: there}))
	d := look(t, "mongodb://"+led[0], zone{}, nil)
	d.expect(t, Degraded, "roles", "", "the members say that "+there+" is the primary, and it can not be reached", "the way to that member")
	if len(d.Findings) != 2 {
		t.Errorf("%v", d.Findings)
	}
	arbiter := fakes(t, replace(member("rs0", false, nth(0), these(there), bson.E{Key: "arbiterOnly", Value: true}, bson.E{Key: "arbiters", Value: []string{}}), bson.E{Key: "secondary", Value: false}))
	lone := look(t, "mongodb://"+arbiter[0], zone{}, nil)
	lone.expect(t, Unreachable, "roles", arbiter[0], "this seed is an arbiter", "members with data")
	for _, f := range lone.Findings {
		if strings.Contains(f.Cure, "reads with secondaryPreferred") {
			t.Errorf("nobody serves reads: %v", f)
		}
	}
	twins := fakes(t, member("rs0", true, nth(0), all), member("rs0", true, nth(1), all), member("rs0", false, nth(2), all))
	look(t, "mongodb://"+twins[0], zone{}, nil).expect(t, Degraded, "roles", "", "2 members take themselves for the primary", "steps down")
}

func TestDoctorComparesClocksLagsAndVersions(t *testing.T) {
	wrote := func(ago time.Duration) bson.E {
		return bson.E{Key: "lastWrite", Value: bson.D{{Key: "lastWriteDate", Value: time.Now().Add(-ago)}}}
	}
	off := func(d time.Duration) bson.E { return bson.E{Key: "localTime", Value: time.Now().Add(d)} }
	a := fakes(t, member("rs0", true, nth(0), all, wrote(0)), replace(member("rs0", false, nth(1), all, wrote(2*time.Minute)),
		off(-3*time.Minute), bson.E{Key: "maxWireVersion", Value: 17}))
	d := look(t, "mongodb://"+a[0]+"/?replicaSet=rs0", zone{}, nil)
	d.expect(t, Degraded, "clock", a[1], "3 minutes behind", "NTP")
	d.expect(t, Degraded, "lag", a[1], "120 s behind", "maxStalenessSeconds")
	d.expect(t, Degraded, "versions", "", "6.0, 7.0", "upgrade")
	b := fakes(t, replace(member("rs0", true, nth(0), all), off(time.Hour)), replace(member("rs0", false, nth(1), all), off(time.Hour)))
	look(t, "mongodb://"+b[0]+"/?replicaSet=rs0", zone{}, nil).expect(t, Degraded, "clock", "", "this host is 60 minutes behind those of all servers", "this host")
}

func TestDoctorFollowsSRVRecords(t *testing.T) {
	set := replset.Run(t, replset.Options{Members: 1})
	_, port, _ := net.SplitHostPort(set.Member(0).Addr())
	n, _ := net.LookupPort("tcp", port)
	z := func(target string, txt ...string) zone {
		return zone{hosts: map[string]string{"db1.example.org": "127.0.0.1"},
			srv: map[string][]*net.SRV{"_mongodb._tcp.cluster.example.org": {{Target: target, Port: uint16(n)}}},
			txt: map[string][]string{"cluster.example.org": txt}}
	}
	const uri = "mongodb+srv://cluster.example.org/?tls=false"
	d := look(t, uri, z("db1.example.org.", "replicaSet=rs0"), nil)
	d.expect(t, Healthy, "names", "db1.example.org:"+port, "calls itself "+set.Member(0).Addr(), "advertised names")
	if text := strings.Join(d.Heading, "\n"); !strings.Contains(text, "TXT: replicaSet=rs0") || !strings.Contains(text, "db1.example.org:"+port) {
		t.Errorf("heading %s", text)
	}
	look(t, uri, z("db1.example.org.", "replicaSet=rs7"), nil).expect(t, Unreachable, "set", "db1.example.org:"+port, "asks for set rs7", "rs0")
	look(t, uri, z("db1.evil.com."), nil).expect(t, Unreachable, "dns", "cluster.example.org", "leads to db1.evil.com, which is not below example.org", "srvAllowedHostsSuffix")
	look(t, uri+"&srvAllowedHostsSuffix=good.example.org", z("db1.evil.com."), nil).expect(t, Unreachable, "dns", "cluster.example.org", "not below good.example.org", "srvAllowedHostsSuffix")
	look(t, uri+"&srvAllowedHostsSuffix=com", z("db1.evil.com."), nil).expect(t, Unreachable, "uri", "", "srvAllowedHostsSuffix", "")
	look(t, uri+"&directConnection=true", z("db1.example.org."), nil).expect(t, Unreachable, "uri", "", "directConnection", "")
	look(t, uri+"&srvServiceName=a.b", z("db1.example.org."), nil).expect(t, Unreachable, "uri", "", "srvServiceName", "")
	look(t, uri+"&srvMaxHosts=1", z("db1.example.org.", "replicaSet=rs0"), nil).expect(t, Unreachable, "dns", "cluster.example.org", "srvMaxHosts", "")
	look(t, "mongodb+srv://cluster.example.org:27017/", z("db1.example.org."), nil).expect(t, Unreachable, "uri", "", "without a port", "")
	look(t, uri, z("db1.example.org.", "replicaSet=rs0", "authSource=x"), nil).expect(t, Unreachable, "dns", "cluster.example.org", "2 TXT records", "at most one")
	look(t, uri, z("db1.example.org.", "retryWrites=true"), nil).expect(t, Unreachable, "dns", "cluster.example.org", "option retryWrites", "authSource")
	look(t, "mongodb+srv://nowhere.example.org", zone{}, nil).expect(t, Unreachable, "dns", "nowhere.example.org", "no SRV record _mongodb._tcp.nowhere.example.org", "mongodb://")
	look(t, "mongodb+srv://cluster.example.org", z("db1.example.org."), nil).expect(t, Unreachable, "tls", "db1.example.org:"+port, "speaks no TLS", "leave out")
}

func TestDoctorEndsInTimeWhateverHangs(t *testing.T) {
	there := map[string]string{"db1": "192.0.2.1", "db2": "192.0.2.2", "db3": "192.0.2.3", "db4": "192.0.2.4"}
	for name, w := range map[string]*World{
		"DNS": {zone{hang: true}, never}, "a dial": {zone{hosts: there}, never}, "a server": {zone{hosts: there}, mute},
		"one server": {zone{hosts: map[string]string{"db1": "127.0.0.1"}}, mute},
	} {
		for _, options := range []string{"", "tls=true", "proxyHost=db1"} {
			t.Run(name+" "+options, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					d := Examine(t.Context(), "mongodb://db1,db2,db3,db4/?"+options, time.Second, w)
					if took := time.Since(start); took > time.Second {
						t.Errorf("it took %v", took)
					}
					if d.Verdict != Unreachable || len(d.Findings) != 4 && options != "proxyHost=db1" || len(d.Findings) == 0 {
						t.Errorf("%s: %v", d.Verdict, d.Findings)
					}
				})
			})
		}
	}
}

func TestDoctorShowsNoSecret(t *testing.T) {
	set := replset.Run(t, replset.Options{Users: []replset.User{{Name: "joe", Password: "right"}}})
	_, proxyPort, _ := net.SplitHostPort(listen(t, socks("other", 0)))
	for _, uri := range []string{
		strings.Replace(set.URI(), "://", "://joe:hunter2@", 1),
		"mongodb://joe:hunter2@" + closedPort(t) + "/?replicaSet=true&nonsense=1",
		"mongodb://joe:hunter2:x@localhost/?w=a@b",
		"mongodb://joe:hunter2@",
		"mongodb+srv://joe:hunter2@nowhere.example.org/",
		"mongodb://joe:hunter2%@localhost",
		"http://joe:hunter2@localhost",
		"joe:hunter2@localhost",
		"mongodb://joe:hunter2@" + set.Member(0).Addr() + "/?authMechanism=MONGODB-X509",
		"mongodb://joe:hunter2@" + set.Member(0).Addr() + "/?authMechanism=PLAIN",
		"mongodb://AKID:hunter2@" + set.Member(0).Addr() + "/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:hunter2",
		"mongodb://joe:hunter2@localhost/?proxyHost=localhost&proxyPort=" + proxyPort + "&proxyUsername=joe&proxyPassword=hunter2",
		"mongodb://joe:hunter2@" + set.Member(0).Addr() + "/?authMechanism=GSSAPI&authMechanismProperties=SERVICE_NAME:hunter2",
	} {
		d := look(t, uri, zone{}, nil)
		text := strings.Join(d.Heading, "\n")
		for _, f := range d.Findings {
			text += "\n" + f.String()
		}
		if strings.Contains(text, "hunter2") || d.Verdict != Unreachable {
			t.Errorf("%s: %s", d.Verdict, text)
		}
	}
}
