package doctor

import (
	"net"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// strict is a mongos that is only reached through a load balancer: it refuses whoever does not say so.
func strict(c net.Conn) {
	for {
		msg, err := message(c)
		if err != nil {
			return
		}
		doc := append(plain(bson.E{Key: "msg", Value: "isdbgrid"}, bson.E{Key: "serviceId", Value: bson.ObjectID{7}})(nil), bson.E{Key: "ok", Value: 1})
		if balanced, _ := msg.Body.Lookup("loadBalanced").BooleanOK(); !balanced {
			doc = bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 354}, {Key: "codeName", Value: "LoadBalancerSupportMismatch"},
				{Key: "errmsg", Value: "The server is being accessed through a load balancer, but this driver does not have load balancing enabled"}}
		}
		reply(c, msg.RequestID, doc)
	}
}

func TestDoctorTellsLoadBalancersFromServers(t *testing.T) {
	balanced := bson.E{Key: "serviceId", Value: bson.ObjectID{7}}
	for _, c := range []struct {
		name, addr, options string
		verdict             Verdict
		cause, cure         string // empty: no finding
	}{
		{"a load balancer", fakes(t, plain(balanced))[0], "loadBalanced=true", Healthy, "", ""},
		{"a member of a set", fakes(t, member("rs0", true, nth(0), all))[0], "loadBalanced=true", Unreachable, "names no service (serviceId): what answers is a member of set rs0", "write replicaSet=rs0"},
		{"a standalone", fakes(t, plain())[0], "loadBalanced=true", Unreachable, "a standalone, not a load balancer", "leave out loadBalanced=true"},
		{"a mongos", fakes(t, plain(bson.E{Key: "msg", Value: "isdbgrid"}))[0], "loadBalanced=true", Unreachable, "a mongos that does not know", "loadBalancerPort"},
		{"nothing", closedPort(t), "loadBalanced=true", Unreachable, "connection refused", "start the server"},
		{"who hangs up", listen(t, hangUp), "loadBalanced=true", Unreachable, "closes the connection after the hello", "tls=true"},
		{"one that is not told of", listen(t, strict), "", Unreachable, "behind a load balancer", "add loadBalanced=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := look(t, "mongodb://"+c.addr+"/?"+c.options, zone{}, nil)
			if c.cause == "" {
				if d.Verdict != c.verdict || len(d.Findings) != 0 || d.Table()[1][5] != "LoadBalancer" {
					t.Errorf("%s: %v, %v", d.Verdict, d.Findings, d.Table())
				}
				return
			}
			stage := "hello"
			if c.name == "nothing" {
				stage = "dial"
			}
			d.expect(t, c.verdict, stage, c.addr, c.cause, c.cure)
			if len(d.Findings) != 1 {
				t.Errorf("%v", d.Findings)
			}
		})
	}
}
