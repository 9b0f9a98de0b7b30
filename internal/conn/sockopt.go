package conn

import (
	"net"
	"time"
)

// Idle sockets are kept alive as the specification recommends, so that a silent firewall does not drop them and a peer that
// is gone is found out after idle and all probes. Where the system can (Linux), bytes that nobody acknowledges end the
// connection after the same time, in place of the quarter of an hour of its own; less would cut the probes short.
const (
	keepIdle     = 120 * time.Second
	keepInterval = 10 * time.Second
	keepCount    = 9
	userTimeout  = keepIdle + keepCount*keepInterval
)

var dialer = &net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepIdle, Interval: keepInterval, Count: keepCount},
	Control:         limitUnacknowledged,
}
