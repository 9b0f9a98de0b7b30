package sextant

import (
	"time"

	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/readpref"
)

// Warning is an option of a connection string that was left out, since it is unknown or its value makes no sense, or
// that should be written otherwise; or a login whose secret is sent in clear.
type Warning struct {
	Option     string // as written
	Value      string // as written; empty where it may be a secret
	Message    string // what is the matter
	Suggestion string // what to write instead; may be empty
}

// String is the warning in one line.
func (w Warning) String() string { return connstring.Warning(w).String() }

// ParseURI reads a connection string into a Config, to be changed or to be given to ConnectConfig. What cannot be a
// connection string is an error; options that are unknown or have no valid value are in Config.Warnings. No error and no
// warning shows a password.
func ParseURI(uri string) (*Config, error) {
	u, err := connstring.Parse(uri)
	if err != nil {
		return nil, mongoerr.Wrap(mongoerr.StageConfig, err, "%s", err.Error())
	}
	c := fromURI(u)
	if err := c.fromReadOptions(u); err != nil {
		return nil, err
	}
	c.fromWriteOptions(u)
	c.fromTLSOptions(u)
	for _, w := range u.Warnings {
		c.Warnings = append(c.Warnings, Warning(w))
	}
	c.Warnings = append(append(c.Warnings, withoutEffect(u)...), c.inClear()...)
	return c, nil
}

// fromURI takes over the options that have a field of their own.
func fromURI(u *connstring.URI) *Config {
	return &Config{
		Hosts: u.Hosts, Username: u.Username, Password: u.Password, Database: u.Database,
		AppName: u.AppName, AuthMechanism: u.AuthMechanism, AuthMechanismProperties: u.AuthMechanismProperties,
		AuthSource:  u.AuthSource,
		Compressors: u.Compressors, ConnectTimeout: millisPointer(u.ConnectTimeoutMS),
		DirectConnection: given(u.DirectConnection), HeartbeatFrequency: millis(u.HeartbeatFrequencyMS),
		EnableOverloadRetargeting: given(u.EnableOverloadRetargeting), MaxAdaptiveRetries: u.MaxAdaptiveRetries,
		LoadBalanced: u.LoadBalanced, LocalThreshold: millisPointer(u.LocalThresholdMS),
		MaxConnecting: given(u.MaxConnecting), MaxIdleTime: millis(u.MaxIdleTimeMS),
		MaxPoolSize: u.MaxPoolSize, MinPoolSize: given(u.MinPoolSize),
		ProxyHost: u.ProxyHost, ProxyPort: given(u.ProxyPort), ProxyUsername: u.ProxyUsername, ProxyPassword: u.ProxyPassword,
		ReplicaSet: u.ReplicaSet, RetryReads: u.RetryReads, RetryWrites: u.RetryWrites,
		ServerMonitoringMode: u.ServerMonitoringMode, SocketTimeout: millis(u.SocketTimeoutMS), SRVHost: u.SRVHost, SRVMaxHosts: given(u.SRVMaxHosts),
		SRVServiceName: u.SRVServiceName, SRVAllowedHostsSuffix: u.SRVAllowedHostsSuffix, ServerSelectionTimeout: millis(u.ServerSelectionTimeoutMS),
		Timeout: millis(u.TimeoutMS), WaitQueueTimeout: millis(u.WaitQueueTimeoutMS), ZlibCompressionLevel: u.ZlibCompressionLevel,
	}
}

// fromTLSOptions takes over the TLS options. They imply tls=true; beside an explicit tls=false they have no effect.
func (c *Config) fromTLSOptions(u *connstring.URI) {
	if c.TLS = u.Secure(); !c.TLS {
		return
	}
	c.TLSCAFile, c.TLSCertificateKeyFile = u.TLSCAFile, u.TLSCertificateKeyFile
	c.TLSCertificateKeyFilePassword = u.TLSCertificateKeyFilePassword
	c.TLSInsecure = given(u.TLSInsecure)
	c.TLSAllowInvalidCertificates, c.TLSAllowInvalidHostnames = given(u.TLSAllowInvalidCertificates), given(u.TLSAllowInvalidHostnames)
	c.TLSDisableOCSPEndpointCheck = given(u.TLSDisableOCSPEndpointCheck)
	c.TLSDisableCertificateRevocationCheck = given(u.TLSDisableCertificateRevocationCheck)
}

// fromReadOptions makes one read preference of three options, and the read concern.
func (c *Config) fromReadOptions(u *connstring.URI) error {
	if u.ReadConcernLevel != "" {
		c.ReadConcern = &concern.Read{Level: u.ReadConcernLevel}
	}
	stale := u.MaxStalenessSeconds != nil && *u.MaxStalenessSeconds >= 0
	if u.ReadPreference == "" && len(u.ReadPreferenceTags) == 0 && !stale {
		return nil
	}
	mode := readpref.PrimaryMode
	if u.ReadPreference != "" {
		var err error
		if mode, err = readpref.ParseMode(u.ReadPreference); err != nil {
			return configError("readPreference: %s", words(err))
		}
	}
	var opts []readpref.Option
	if len(u.ReadPreferenceTags) > 0 {
		opts = append(opts, readpref.TagSets(tagSets(u.ReadPreferenceTags)...))
	}
	if stale {
		opts = append(opts, readpref.MaxStaleness(time.Duration(*u.MaxStalenessSeconds)*time.Second))
	}
	rp, err := readpref.New(mode, opts...)
	if err != nil {
		return configError("the options readPreference, readPreferenceTags, maxStalenessSeconds: %s", words(err))
	}
	c.ReadPreference = rp
	return nil
}

func tagSets(in []connstring.TagSet) []readpref.TagSet {
	out := make([]readpref.TagSet, len(in))
	for i, set := range in {
		out[i] = readpref.TagSet{}
		for _, kv := range set {
			out[i] = append(out[i], readpref.Tag{Key: kv[0], Value: kv[1]})
		}
	}
	return out
}

// fromWriteOptions makes one write concern of three options.
func (c *Config) fromWriteOptions(u *connstring.URI) {
	if u.W == nil && u.Journal == nil && u.WTimeoutMS == nil {
		return
	}
	c.WriteConcern = &concern.Write{W: u.W, Journal: u.Journal, WTimeout: millis(u.WTimeoutMS)}
}

func millis(n *int) time.Duration { return time.Duration(given(n)) * time.Millisecond }

func millisPointer(n *int) *time.Duration {
	if n == nil {
		return nil
	}
	return new(millis(n))
}

// given is what p points to, the zero value if to nothing.
func given[V any](p *V) (v V) {
	if p != nil {
		v = *p
	}
	return v
}

// withoutEffect warns of options that are understood but change nothing.
func withoutEffect(u *connstring.URI) []Warning {
	var out []Warning
	add := func(present bool, option, value, message string) {
		if present {
			out = append(out, Warning{Option: option, Value: value, Message: message})
		}
	}
	for _, name := range u.WithoutTLS() {
		add(true, name, "", "it has no effect beside tls=false")
	}
	add(given(u.SocketTimeoutMS) > 0 && given(u.TimeoutMS) > 0, "socketTimeoutMS", "", "it has no effect beside timeoutMS, which bounds whole operations")
	add(u.ServerSelectionTryOnce != nil, "serverSelectionTryOnce", "", "it has no effect: it is for drivers of one thread; serverSelectionTimeoutMS says how long to wait")
	return out
}
