package sextant

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/readpref"
)

// Config is everything that a client is told: one field for each option of a connection string, named as the option
// without the unit, and the seams that a string cannot hold. Make one with ParseURI and change it, or fill one in; the
// zero value of a field is the default. A client takes a copy.
type Config struct {
	Hosts    []string // seeds as "host:port"; without a port 27017. One is enough, one from each site is better.
	Username string
	Password string
	Database string // the database in the connection string: the default of AuthSource

	AppName                              string             // shown in the servers' logs, at most 128 bytes
	AuthMechanism                        string             // SCRAM-SHA-256, SCRAM-SHA-1, MONGODB-X509, MONGODB-AWS, MONGODB-OIDC, PLAIN; empty: the SCRAM that the server offers
	AuthMechanismProperties              map[string]string  // AWS_SESSION_TOKEN; ENVIRONMENT and TOKEN_RESOURCE of MONGODB-OIDC. Only here may a value hold a comma
	AuthSource                           string             // the database that holds the user; empty: "$external" where the mechanism wants it, else Database, else "admin"
	Compressors                          []string           // "snappy", "zlib", "zstd", in order of preference; none: messages are not compressed
	ConnectTimeout                       *time.Duration     // for one connection with its handshake; nil: 10 s, 0: no limit
	DirectConnection                     bool               // talk to the one host given, whatever it is, and to no other
	EnableOverloadRetargeting            bool               // retry at another member of the set when one was overloaded
	HeartbeatFrequency                   time.Duration      // between checks of a member; 0: 10 s, at least 500 ms
	LoadBalanced                         *bool              // the one host is a load balancer; nil: as the TXT record of SRVHost says, else false
	LocalThreshold                       *time.Duration     // width of the latency window; nil: 15 ms
	MaxAdaptiveRetries                   *int               // retries of an operation, of any kind, once a server was overloaded; nil: 2
	MaxConnecting                        int                // connections being opened at a time, for each member; 0: 2
	MaxIdleTime                          time.Duration      // of an unused connection; 0: no limit
	MaxPoolSize                          *int               // connections for each member; nil: 100, 0: no limit
	MinPoolSize                          int                // connections for each member that are kept open
	ProxyHost                            string             // a SOCKS5 proxy that every connection goes through; empty: none
	ProxyPort                            int                // 0: 1080
	ProxyUsername                        string             // with ProxyPassword, or neither
	ProxyPassword                        string             // never shown
	ReadConcern                          *concern.Read      // option readConcernLevel
	ReadPreference                       *readpref.ReadPref // options readPreference, readPreferenceTags, maxStalenessSeconds
	ReplicaSet                           string             // the set's name, which every member must bear; empty: whatever the seeds say
	RetryReads                           *bool              // nil: true
	RetryWrites                          *bool              // nil: true
	ServerMonitoringMode                 string             // "auto", "stream" or "poll"; empty: auto
	ServerSelectionTimeout               time.Duration      // how long an operation waits for a member that can serve it; 0: 30 s
	Timeout                              time.Duration      // of a whole operation whose context has no deadline; 0: no limit. Option timeoutMS
	SocketTimeout                        time.Duration      // of one attempt of an operation, from sending it to its reply; 0: no limit. Without effect beside Timeout
	SRVAllowedHostsSuffix                string             // the domain that hosts from DNS must lie below; empty: that of SRVHost
	SRVHost                              string             // of a mongodb+srv string: the name whose SRV record in DNS lists the hosts. See Resolve
	SRVMaxHosts                          int                // so many of the hosts from DNS, chosen by chance; 0: all
	SRVServiceName                       string             // the service whose SRV record is asked for; empty: "mongodb"
	TLS                                  bool               // options tls and ssl; implied by TLSConfig and by the other TLS options
	TLSCAFile                            string             // PEM file of the authorities to trust; empty: the system's
	TLSCertificateKeyFile                string             // PEM file of this client's certificate (its chain may follow) and key
	TLSCertificateKeyFilePassword        string             // of a key that is encrypted (PKCS#8 with PBES2, "ENCRYPTED PRIVATE KEY"); never shown
	TLSAllowInvalidCertificates          bool               // trust anybody: for tests only
	TLSAllowInvalidHostnames             bool               // trust a certificate made out to another name: for tests only
	TLSInsecure                          bool               // both of the former
	TLSDisableOCSPEndpointCheck          bool               // ask no authority whether a server's certificate was revoked (OCSP); what the server itself staples to it counts
	TLSDisableCertificateRevocationCheck bool               // take no notice of revocations at all
	WaitQueueTimeout                     time.Duration      // how long an operation waits for a connection; 0: as its context says
	WriteConcern                         *concern.Write     // options w, journal, wTimeoutMS
	ZlibCompressionLevel                 *int               // 0 (none) to 9 (best); nil or -1: zlib's own choice

	// DriverInfo is what a library built on this driver says of itself to the servers; the zero value is none. See
	// Client.AppendMetadata.
	DriverInfo DriverInfo

	// AWSCredentialProvider gives the keys for MONGODB-AWS, for each new connection, unless Username and Password are such
	// keys; it has a minute. Nil: the machine's are used (environment variables, web identity, ECS, EC2).
	AWSCredentialProvider func(ctx context.Context) (AWSCredentials, error)
	// OIDCMachineCallback gets the access tokens of a program for MONGODB-OIDC, OIDCHumanCallback those of a person who
	// logs in. One of them, or the property ENVIRONMENT, is needed.
	OIDCMachineCallback OIDCCallback
	OIDCHumanCallback   OIDCCallback
	// OIDCAllowedHosts are those to which a person's token may be sent, such as "*.example.com"; nil: those of MongoDB's
	// own service and this machine's. An empty list allows none.
	OIDCAllowedHosts []string

	// BSON says how Go values become BSON and the other way round: the switches of package bson, for everything that this
	// client writes and reads. Databases and collections may have their own. What results of the driver itself hold, such as
	// IndexInfo, does not depend on it.
	BSON bson.Options

	// HeartbeatTimeout, if it is not 0, notices a member that hangs: one that keeps its connections open and answers
	// nothing. The client then looks for a sign of life twice in this time, beside the hello that waits for news; after
	// one and a half times this time at the latest the member counts as unreachable, the operations in flight on it fail
	// with an error of the network, which the client retries on another member where it may, and the next ones go
	// elsewhere. 5 s is a good value where pauses of a server are shorter; at least 500 ms. 0 leaves it to the limits of
	// the specification: ConnectTimeout and one HeartbeatFrequency, 20 s as a rule.
	HeartbeatTimeout time.Duration
	// FailFast ends the wait for a member at once where waiting cannot help: every member that might serve fails for a cause
	// that lasts, which is a certificate, a port that speaks something else (TLS or none against what is configured, HTTP), a
	// refused login, a name that does not exist, or another set than the one asked for. By default only those of these causes
	// end it that leave nobody to wait for. A server that hangs up on the greeting may want TLS, or none, or may just be
	// dying: it is then dialled once more and greeted in the other way, in clear with nothing but the command hello; only if
	// it answers that, the cause lasts. A server that keeps silent may yet answer.
	FailFast bool
	// Strict makes every warning of an option that cannot be used an error: for tools, and for a configuration that is this
	// program's own.
	Strict bool
	// Warnings are the options of the connection string that are unknown or have no valid value, each with a suggestion.
	// One string is shared by programs in many languages, so they are no errors; they are logged. ParseURI fills them in. A
	// mechanism that sends a password or a token in clear, without TLS, is warned of too, by ParseURI and by the client.
	Warnings []Warning

	// Dial opens the sockets, to the proxy if there is one; nil: a net.Dialer. network is "tcp" or "unix". One that heeds no
	// context is given up when that ends, ConnectTimeout at the latest; what it then still returns is closed. Close waits
	// for it all the same, as long as the context that it is given allows.
	// A connection of its own kind whose deadlines do nothing is closed 100 ms after the context of who waits on it has
	// ended, which must end its Read and Write: a Read that does not heed Close either holds its caller.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// AddressMap says where a member is to be dialled that the set advertises under another address, as behind a tunnel, a
	// port forward or the wall of a container: dial is a "host:port" in the place of the advertised one, tlsServerName the
	// name that its certificate is for. What is left empty stays as advertised, the name too: a certificate is checked for
	// the advertised host however the member is reached. The advertised address goes on to name the member everywhere; Hosts
	// shows both. It is called for every connection, and by Hosts, from many goroutines, and should be quick; a panic is the
	// error of the connection. Seeds are mapped too.
	AddressMap func(advertised string) (dial, tlsServerName string)
	// Resolver answers for DNS where SRVHost is set; nil: net.DefaultResolver, without the system's search domains. It should
	// return when its context ends: it is not waited for any longer, but its goroutine stays until it does, even after Close.
	// Addresses are looked up by Dial.
	Resolver Resolver
	// SRVHostValidator says whether a host from DNS, in lower case and without a port, may be spoken to, in place of the rule
	// that it lies below the domain of SRVHost; nil: that rule. It is asked when the client is made, and again while the
	// client looks for changes in DNS.
	SRVHostValidator func(host string) error
	// TLSConfig is used as it is, but for a ServerName that is empty: that becomes the member's host name.
	TLSConfig *tls.Config
	// Logger takes what the client has to say: commands, pools, monitoring, selections, with the texts and the keys of the
	// logging specification, warnings of the configuration, and callbacks that panic. The attribute "component" is command,
	// connection, topology, serverSelection or client. Nearly all is of level Debug. A handler should be quick: commands are
	// logged by the goroutine that makes them; all else waits in a queue. Nil: the environment decides, by the variables
	// MONGODB_LOG_ALL, MONGODB_LOG_COMMAND, MONGODB_LOG_TOPOLOGY, MONGODB_LOG_SERVER_SELECTION, MONGODB_LOG_CONNECTION (off,
	// error, warn, notice, info, debug, trace), MONGODB_LOG_PATH (stderr, stdout or a file); by default nothing is logged.
	// With a Logger the environment has no say in that: a program that wants it to leaves Logger nil when os.Getenv says so.
	Logger *slog.Logger
	// LogLevels raise the least level of single components above that of the Logger's handler.
	LogLevels LogLevels
	// LogMaxDocumentLength is the number of characters after which documents in the log are cut off, with "..."; 0: as
	// MONGODB_LOG_MAX_DOCUMENT_LENGTH says, else 1,000.
	LogMaxDocumentLength int
	// Monitor is told what happens: commands, pools, heartbeats, topology changes, selections.
	Monitor *event.Monitor
}

// plainConfig is a Config without its methods.
type plainConfig Config

// veiled stands where something secret is not shown.
const veiled = "xxxxx"

// Format prints the configuration, for every verb without what may be secret: the passwords, and the values of
// AuthMechanismProperties.
func (c Config) Format(s fmt.State, verb rune) {
	if c.Password != "" {
		c.Password = veiled
	}
	if c.TLSCertificateKeyFilePassword != "" {
		c.TLSCertificateKeyFilePassword = veiled
	}
	if c.ProxyPassword != "" {
		c.ProxyPassword = veiled
	}
	if len(c.AuthMechanismProperties) > 0 {
		props := make(map[string]string, len(c.AuthMechanismProperties))
		for name := range c.AuthMechanismProperties {
			props[name] = veiled
		}
		c.AuthMechanismProperties = props
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), plainConfig(c))
}

// LogValue is what Format prints: no log handler gets to see the fields themselves.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c)) }
