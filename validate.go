package sextant

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/internal/topology"
)

// validate says what cannot be used whatever the servers say. With Strict, that is also any warning of an option.
func (c *Config) validate() error {
	for _, check := range []func() error{c.checkHosts, c.checkAuth, c.checkPool, c.checkTimes, c.checkModes, c.checkTexts, c.checkProxy, c.checkCompression, c.checkTogether, c.checkLog} {
		if err := check(); err != nil {
			return err
		}
	}
	var all []string
	for _, w := range c.Warnings {
		if !w.ofSecret() {
			all = append(all, w.String())
		}
	}
	if !c.Strict || len(all) == 0 {
		return nil
	}
	return configError("the connection string has options that cannot be used: %s", strings.Join(all, "; "))
}

func (c *Config) checkHosts() error {
	switch {
	case len(c.Hosts) == 0 && c.SRVHost == "":
		return configError("no host is given")
	case c.DirectConnection && len(c.Hosts) > 1:
		return configError("directConnection=true takes one host, and %d are given", len(c.Hosts))
	}
	for _, h := range c.Hosts {
		if err := checkHost(h); err != nil {
			return err
		}
	}
	return nil
}

// checkHost looks at a host with or without a port.
func checkHost(h string) error {
	if h == "" {
		return configError("a host is empty")
	}
	if topology.IsPath(h) && strings.HasSuffix(strings.ToLower(h), ".sock") {
		return nil
	}
	host, port, err := net.SplitHostPort(withPort(h))
	if err != nil || host == "" || connstring.BadText(h) != "" || strings.ContainsAny(h, " \t") {
		return configError("%q is not a host, with or without a port", h)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return configError("the port of %q must be a number from 1 to 65535", h)
	}
	return nil
}

func (c *Config) checkPool() error {
	switch {
	case c.MinPoolSize < 0:
		return configError("minPoolSize is negative (%d)", c.MinPoolSize)
	case given(c.MaxAdaptiveRetries) < 0:
		return configError("maxAdaptiveRetries is negative (%d)", *c.MaxAdaptiveRetries)
	case c.MaxConnecting < 0:
		return configError("maxConnecting is negative (%d)", c.MaxConnecting)
	case c.MaxPoolSize != nil && *c.MaxPoolSize < 0:
		return configError("maxPoolSize is negative (%d)", *c.MaxPoolSize)
	case c.MaxPoolSize != nil && *c.MaxPoolSize > 0 && c.MinPoolSize > *c.MaxPoolSize:
		return configError("minPoolSize (%d) is greater than maxPoolSize (%d)", c.MinPoolSize, *c.MaxPoolSize)
	}
	return nil
}

func (c *Config) checkTimes() error {
	for name, d := range map[string]time.Duration{
		"connectTimeoutMS": given(c.ConnectTimeout), "localThresholdMS": given(c.LocalThreshold), "maxIdleTimeMS": c.MaxIdleTime,
		"serverSelectionTimeoutMS": c.ServerSelectionTimeout, "socketTimeoutMS": c.SocketTimeout, "timeoutMS": c.Timeout, "waitQueueTimeoutMS": c.WaitQueueTimeout,
	} {
		if d < 0 {
			return configError("%s is negative (%v)", name, d)
		}
	}
	if c.HeartbeatFrequency != 0 && c.HeartbeatFrequency < topology.MinHeartbeatInterval {
		return configError("heartbeatFrequencyMS is %v: at least %v is needed", c.HeartbeatFrequency, topology.MinHeartbeatInterval)
	}
	if c.HeartbeatTimeout != 0 && c.HeartbeatTimeout < topology.MinHeartbeatInterval {
		return configError("HeartbeatTimeout is %v: 0, or at least %v", c.HeartbeatTimeout, topology.MinHeartbeatInterval)
	}
	return nil
}

// checkTexts refuses bytes that no server could read. The values are not shown: they may be secret.
func (c *Config) checkTexts() error {
	for name, v := range map[string]string{
		"user name": c.Username, "password": c.Password, "authSource": c.AuthSource, "database": c.Database, "appName": c.AppName,
	} {
		if !utf8.ValidString(v) {
			return configError("the %s is not UTF-8", name)
		}
	}
	for _, v := range c.AuthMechanismProperties {
		if !utf8.ValidString(v) {
			return configError("a value of authMechanismProperties is not UTF-8")
		}
	}
	if c.ReadConcern != nil && !utf8.ValidString(c.ReadConcern.Level) {
		return configError("the readConcernLevel is not UTF-8")
	}
	return c.checkCharacters()
}

// checkCharacters holds texts to what a connection string would be held to.
func (c *Config) checkCharacters() error {
	texts := map[string]string{
		"appName": c.AppName, "authSource": c.AuthSource, "database": c.Database, "replicaSet": c.ReplicaSet,
		"proxyUsername": c.ProxyUsername, "srvAllowedHostsSuffix": c.SRVAllowedHostsSuffix,
		"tlsCAFile": c.TLSCAFile, "tlsCertificateKeyFile": c.TLSCertificateKeyFile,
	}
	if c.ReadConcern != nil {
		texts["readConcernLevel"] = c.ReadConcern.Level
	}
	if c.WriteConcern != nil {
		texts["w"], _ = c.WriteConcern.W.(string)
	}
	for name, v := range texts {
		if bad := connstring.BadText(v); bad != "" {
			return configError("%s %s", name, bad)
		}
	}
	if bad := connstring.BadProxyHost(c.ProxyHost); bad != "" {
		return configError("proxyHost %s", bad)
	}
	return nil
}

func (c *Config) checkLog() error {
	switch {
	case c.LogMaxDocumentLength < 0:
		return configError("LogMaxDocumentLength is %d: it must not be negative", c.LogMaxDocumentLength)
	case c.Logger == nil && c.LogLevels != (LogLevels{}):
		return configError("LogLevels are given, but no Logger")
	}
	return nil
}

func (c *Config) checkModes() error {
	if err := c.ReadPreference.Validate(); err != nil {
		return configError("%s", words(err))
	}
	if err := c.WriteConcern.Validate(); err != nil {
		return configError("%s", words(err))
	}
	if err := c.BSON.Validate(); err != nil {
		return configError("%s", words(err))
	}
	switch c.ServerMonitoringMode {
	case "", "auto", "stream", "poll":
	default:
		return configError("serverMonitoringMode is %q: auto, stream or poll is possible", c.ServerMonitoringMode)
	}
	if len(c.AppName) > 128 {
		return configError("appName has %d bytes: at most 128 are allowed", len(c.AppName))
	}
	return nil
}

var compressors = []string{"snappy", "zlib", "zstd"}

func (c *Config) checkCompression() error {
	for _, name := range c.Compressors {
		if !slices.Contains(compressors, name) {
			return configError("there is no compressor %q; there are %s", name, strings.Join(compressors, ", "))
		}
	}
	if n := c.ZlibCompressionLevel; n != nil && (*n < -1 || *n > 9) {
		return configError("zlibCompressionLevel is %d: -1 to 9 is possible", *n)
	}
	return nil
}

func (c *Config) checkProxy() error {
	switch {
	case c.ProxyHost == "" && (c.ProxyPort != 0 || c.ProxyUsername != "" || c.ProxyPassword != ""):
		return configError("proxyPort, proxyUsername and proxyPassword need a proxyHost")
	case (c.ProxyUsername == "") != (c.ProxyPassword == ""):
		return configError("proxyUsername and proxyPassword need each other")
	case c.ProxyPort < 0 || c.ProxyPort > 65535:
		return configError("proxyPort is %d: it must be a number from 1 to 65535", c.ProxyPort)
	}
	return nil
}

// checkTogether holds options against each other that DNS may give too (load balancers specification, URI validation).
func (c *Config) checkTogether() error {
	if err := c.checkSRV(); err != nil || !given(c.LoadBalanced) {
		return err
	}
	switch {
	case len(c.Hosts) > 1:
		return configError("loadBalanced=true takes one host, and there are %d", len(c.Hosts))
	case c.ReplicaSet != "":
		return configError("loadBalanced=true and replicaSet must not be given together")
	case c.DirectConnection:
		return configError("loadBalanced=true and directConnection=true must not be given together")
	}
	return nil
}

// checkSRV refuses the options of mongodb+srv where there is none, and those that contradict it.
func (c *Config) checkSRV() error {
	if c.SRVHost == "" {
		if c.SRVMaxHosts != 0 || c.SRVServiceName != "" || c.SRVAllowedHostsSuffix != "" || c.SRVHostValidator != nil {
			return configError("srvMaxHosts, srvServiceName, srvAllowedHostsSuffix and SRVHostValidator are for mongodb+srv alone: there is no SRVHost")
		}
		return nil
	}
	switch {
	case c.DirectConnection:
		return configError("directConnection=true needs one host, and mongodb+srv may stand for several")
	case c.SRVMaxHosts < 0:
		return configError("srvMaxHosts is negative (%d)", c.SRVMaxHosts)
	case c.SRVMaxHosts > 0 && c.ReplicaSet != "":
		return configError("srvMaxHosts and replicaSet must not be given together: a set says itself who belongs to it")
	case c.SRVMaxHosts > 0 && given(c.LoadBalanced):
		return configError("srvMaxHosts and loadBalanced=true must not be given together")
	case c.SRVServiceName != "" && !connstring.ValidService(c.SRVServiceName):
		return configError("srvServiceName %q is no service name: letters, digits and single hyphens inside, at most 62 characters", c.SRVServiceName)
	case c.SRVAllowedHostsSuffix != "" && c.SRVHostValidator != nil:
		return configError("srvAllowedHostsSuffix and SRVHostValidator must not be given together")
	}
	return nil
}
