package sextant

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/cluster"
	"github.com/sextantdb/sextant/internal/conn"
	"github.com/sextantdb/sextant/internal/operation"
	"github.com/sextantdb/sextant/internal/topology"
)

// Connect makes a client from a connection string such as "mongodb://db1,db2:27018/?replicaSet=rs0". It does no I/O, unless
// the string begins with mongodb+srv: then it asks DNS for the hosts (see Config.Resolve). The first operation, WaitReady
// or Refresh begins to look for the members. A string that cannot be used is an error at once.
func Connect(ctx context.Context, uri string) (*Client, error) {
	cfg, err := ParseURI(uri)
	if err != nil {
		return nil, err
	}
	return ConnectConfig(ctx, cfg)
}

// ConnectConfig makes a client from a configuration, of which it takes a copy. It does no I/O but reading the files that
// TLS options name, opening the one for the log that the environment names, and asking DNS if there is an SRVHost and no
// host (see Config.Resolve; ctx bounds that).
func ConnectConfig(ctx context.Context, cfg *Config) (*Client, error) {
	switch {
	case ctx == nil:
		return nil, configError("the context is nil")
	case cfg == nil:
		return nil, configError("the configuration is nil")
	}
	c := *cfg
	c.Hosts, c.Warnings = slices.Clone(cfg.Hosts), cfg.warned()
	if err := c.settle(ctx); err != nil {
		return nil, err
	}
	cc, err := c.cluster()
	if err != nil {
		return nil, err
	}
	cc.ID = bson.NewObjectID()
	book := c.newLogbook(cc.ID)
	book.warn(c.Warnings)
	cc.Log, cc.Panicked = book.forCluster(), book.panicked
	book.crowded(clients.enter(c.crowdKey()), c.crowdKey())
	cl := &Client{cfg: &c, metadata: cc.Conn.Metadata, cluster: cluster.New(*cc), done: make(chan struct{}), log: book}
	cl.set = settings{readPref: c.ReadPreference, readConcern: c.ReadConcern, writeConcern: c.WriteConcern, bson: c.BSON}
	cl.exec = operation.New(operation.Config{
		Cluster: cl.cluster, RetryReads: isTrue(c.RetryReads), RetryWrites: isTrue(c.RetryWrites), Monitor: c.Monitor, Anonymous: c.login() == nil,
		MaxAdaptiveRetries: c.MaxAdaptiveRetries, OverloadRetarget: c.EnableOverloadRetargeting,
		SocketTimeout: c.socketTimeout(),
		Log:           book.forCommands(), Panicked: book.panicked,
	})
	return cl, nil
}

// settle refuses what cannot be used, asks DNS where it has to, and looks again at what that made of the configuration.
func (c *Config) settle(ctx context.Context) error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.SRVHost == "" || len(c.Hosts) > 0 {
		return nil
	}
	if err := c.Resolve(ctx); err != nil {
		return err
	}
	return c.validate()
}

// socketTimeout gives way to a limit of whole operations, which includes all attempts (client side operations timeout).
func (c *Config) socketTimeout() time.Duration {
	if c.Timeout > 0 {
		return 0
	}
	return c.SocketTimeout
}

// isTrue is the value of an option that is on unless it is switched off.
func isTrue(v *bool) bool { return v == nil || *v }

// cluster is the configuration of the client's cluster.
func (c *Config) cluster() (*cluster.Config, error) {
	tls, err := c.tls()
	if err != nil {
		return nil, err
	}
	user, err := c.credential()
	if err != nil {
		return nil, err
	}
	metadata := conn.ClientMetadata(c.AppName)
	if d := c.DriverInfo; d != (DriverInfo{}) {
		if err := metadata.Append(conn.DriverInfo(d)); err != nil {
			return nil, configError("DriverInfo: %v", err)
		}
	}
	cc := &cluster.Config{
		Topology: topology.Config{
			Seeds: c.seeds(), SetName: c.ReplicaSet, Direct: c.DirectConnection, HeartbeatInterval: c.HeartbeatFrequency,
			LocalThreshold: c.LocalThreshold, LoadBalanced: given(c.LoadBalanced),
		},
		Conn:                   conn.Options{Metadata: metadata, Credential: user, TLS: tls, Revocation: c.revocation(tls), Dial: c.Dial, AddressMap: c.AddressMap, Compression: c.compression(), Proxy: c.proxy(), LoadBalanced: given(c.LoadBalanced)},
		ServerSelectionTimeout: c.ServerSelectionTimeout, MonitoringMode: c.ServerMonitoringMode,
		MaxPoolSize: c.MaxPoolSize, MinPoolSize: c.MinPoolSize, MaxConnecting: c.MaxConnecting, MaxIdleTime: c.MaxIdleTime,
		WaitTimeout: c.WaitQueueTimeout, Monitor: c.Monitor, ConnectTimeout: c.ConnectTimeout,
		HeartbeatTimeout: c.HeartbeatTimeout, FailFast: c.FailFast,
	}
	if c.SRVHost != "" {
		q, err := c.lookup()
		if err != nil {
			return nil, err
		}
		cc.Topology.SRV = true
		cc.SRV = &cluster.SRV{Lookup: q, Resolver: c.resolver(), MaxHosts: c.SRVMaxHosts, Failed: c.srvFailed(q.Name())}
	}
	return cc, nil
}

// seeds are the hosts as the topology names members: lower case, with a port.
func (c *Config) seeds() []string {
	out := make([]string, len(c.Hosts))
	for i, h := range c.Hosts {
		out[i] = withPort(h)
	}
	return out
}

// withPort is a host as the topology names it, with the port 27017 where there is none. The path of a Unix socket has none.
func withPort(host string) string {
	if topology.IsPath(host) {
		return host
	}
	host = topology.NormalAddress(host)
	afterBracket := host[strings.LastIndexByte(host, ']')+1:]
	if strings.Contains(afterBracket, ":") {
		return host
	}
	return host + ":27017"
}
