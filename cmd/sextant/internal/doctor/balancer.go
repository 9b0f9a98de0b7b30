package doctor

import (
	"strings"

	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/mongoerr"
)

// balanced says whether the connection string's one host is to be a load balancer.
func (x *examination) balanced() bool { return x.cfg.LoadBalanced != nil && *x.cfg.LoadBalanced }

// noService says whether a server was taken for a load balancer and its hello named no service. The text is that of the
// load balancers specification, "connection establishment".
func noService(err *mongoerr.Error) bool {
	return strings.Contains(err.Message, "attempted to initialize in load balancing mode")
}

// whyNoService is for a server that is no load balancer, or whose servers do not know that they are behind one.
func whyNoService(p *probe) (cause, cure string) {
	cause = "loadBalanced=true is given, and the server's hello names no service (serviceId)"
	switch m := p.bare.member; {
	case m.SetName != "":
		return cause + ": what answers is a member of set " + m.SetName + ", not a load balancer",
			"leave out loadBalanced=true and write replicaSet=" + m.SetName
	case m.Kind == event.Standalone:
		return cause + ": what answers is a standalone, not a load balancer", "leave out loadBalanced=true"
	case m.Kind == event.Mongos:
		return cause + ": what answers is a mongos that does not know of a load balancer",
			"leave out loadBalanced=true if this is the mongos itself; else have the load balancer lead to its loadBalancerPort, with the PROXY protocol"
	}
	return cause, "leave out loadBalanced=true, or have the load balancer lead to the loadBalancerPort of each mongos, with the PROXY protocol"
}
