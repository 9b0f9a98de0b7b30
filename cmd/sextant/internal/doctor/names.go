package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// judgeName compares what a seed is called here with what it calls itself.
func (x *examination) judgeName(p *probe) {
	m := p.member
	if m.Me == "" || strings.EqualFold(m.Me, p.addr) || m.SetName != x.set || x.cfg.DirectConnection {
		return
	}
	f := Finding{Stage: "names", Server: p.addr, Severity: Note,
		Cause: fmt.Sprintf("this seed calls itself %s: clients ask it once and then use the names that the set advertises (%s)", m.Me, strings.Join(x.roster(), ", ")),
		Cure:  "write the advertised names in the connection string"}
	switch me := x.probe(address(m.Me)); {
	case x.cutOff():
		f.Severity = Trouble
		f.Cause += ", none of which can be reached from here"
		f.Cure = "make the advertised names lead to the members from here (DNS, /etc/hosts, port forwarding), or give the members names that all clients can use (rs.reconfig); " +
			"a tool that this seed suffices for may use directConnection=true, and a Go program may set Config.AddressMap, which says where to dial for each advertised name"
	case me != nil && !me.answered():
		f.Severity = Trouble
		f.Cause += ", and " + m.Me + " can not be reached from here"
		f.Cure = "make the advertised name lead to the server from here, or change it with rs.reconfig; a tool that needs this member only may use directConnection=true"
	}
	x.add(f)
}

// cutOff says that a seed answers, and nobody by the names that its set advertises.
func (x *examination) cutOff() bool {
	roster := x.roster()
	return len(roster) > 0 && !slices.ContainsFunc(roster, func(a string) bool {
		p := x.probe(a)
		return p != nil && p.answered()
	})
}
