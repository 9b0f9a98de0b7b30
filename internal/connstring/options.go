package connstring

// Options has one field for every option of the URI options specification, in its spelling. Pointers are nil when the
// option was not given. Times are integers in the unit of the option's name.
type Options struct {
	AppName                              string
	AuthMechanism                        string
	AuthMechanismProperties              map[string]string
	AuthSource                           string
	Compressors                          []string // in order of preference
	ConnectTimeoutMS                     *int     // 0: no limit
	DirectConnection                     *bool
	EnableOverloadRetargeting            *bool
	HeartbeatFrequencyMS                 *int // at least 500
	Journal                              *bool
	LoadBalanced                         *bool
	LocalThresholdMS                     *int
	MaxAdaptiveRetries                   *int
	MaxConnecting                        *int // at least 1
	MaxIdleTimeMS                        *int // 0: no limit
	MaxPoolSize                          *int // 0: no limit
	MaxStalenessSeconds                  *int // -1: no limit; other rules belong to selection
	MinPoolSize                          *int
	ProxyHost                            string
	ProxyPort                            *int
	ProxyUsername                        string
	ProxyPassword                        string
	ReadConcernLevel                     string
	ReadPreference                       string // one of the five modes, in their spelling
	ReadPreferenceTags                   []TagSet
	ReplicaSet                           string
	RetryReads                           *bool
	RetryWrites                          *bool
	ServerMonitoringMode                 string // stream, poll or auto
	ServerSelectionTimeoutMS             *int   // at least 1
	ServerSelectionTryOnce               *bool  // for drivers of one thread; of no effect here
	SocketTimeoutMS                      *int   // 0: no limit
	SRVAllowedHostsSuffix                string
	SRVMaxHosts                          *int // 0: no limit
	SRVServiceName                       string
	TimeoutMS                            *int // 0: no limit
	TLS                                  *bool
	TLSAllowInvalidCertificates          *bool
	TLSAllowInvalidHostnames             *bool
	TLSCAFile                            string
	TLSCertificateKeyFile                string
	TLSCertificateKeyFilePassword        string
	TLSDisableCertificateRevocationCheck *bool
	TLSDisableOCSPEndpointCheck          *bool
	TLSInsecure                          *bool
	W                                    any // nil, int or string
	WaitQueueTimeoutMS                   *int
	WTimeoutMS                           *int
	ZlibCompressionLevel                 *int // -1 to 9
}

// TagSet is one readPreferenceTags: names and values in order. The empty set matches every member.
type TagSet [][2]string

// option is a row of the table: a name, where its value goes, and what values it takes.
type option struct {
	name    string
	field   func(o *Options) any // a pointer to the field
	min     int                  // for integers
	max     int
	words   []string // for strings: the values there are; nil: any
	secret  bool     // its value is never shown
	emptyOK bool     // an empty value means something
	guards  bool     // to leave it out would weaken security: a bad value is an error

	password bool // and may hold any character
}

const maxInt32 = 1<<31 - 1

// modes are the read preferences, compressors and monitoring modes that a string can name.
var (
	modes           = []string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}
	compressorNames = []string{"snappy", "zlib", "zstd"}
	monitoringModes = []string{"stream", "poll", "auto"}
)

// table has every known option.
var table = []option{
	{name: "appName", field: func(o *Options) any { return &o.AppName }},
	{name: "authMechanism", field: func(o *Options) any { return &o.AuthMechanism }, guards: true},
	{name: "authMechanismProperties", field: func(o *Options) any { return &o.AuthMechanismProperties }, secret: true},
	{name: "authSource", field: func(o *Options) any { return &o.AuthSource }},
	{name: "compressors", field: func(o *Options) any { return &o.Compressors }, words: compressorNames},
	{name: "connectTimeoutMS", field: func(o *Options) any { return &o.ConnectTimeoutMS }, max: maxInt32},
	{name: "directConnection", field: func(o *Options) any { return &o.DirectConnection }},
	{name: "enableOverloadRetargeting", field: func(o *Options) any { return &o.EnableOverloadRetargeting }},
	{name: "heartbeatFrequencyMS", field: func(o *Options) any { return &o.HeartbeatFrequencyMS }, min: 500, max: maxInt32},
	{name: "journal", field: func(o *Options) any { return &o.Journal }},
	{name: "loadBalanced", field: func(o *Options) any { return &o.LoadBalanced }},
	{name: "localThresholdMS", field: func(o *Options) any { return &o.LocalThresholdMS }, max: maxInt32},
	{name: "maxAdaptiveRetries", field: func(o *Options) any { return &o.MaxAdaptiveRetries }, max: maxInt32},
	{name: "maxConnecting", field: func(o *Options) any { return &o.MaxConnecting }, min: 1, max: maxInt32},
	{name: "maxIdleTimeMS", field: func(o *Options) any { return &o.MaxIdleTimeMS }, max: maxInt32},
	{name: "maxPoolSize", field: func(o *Options) any { return &o.MaxPoolSize }, max: maxInt32},
	{name: "maxStalenessSeconds", field: func(o *Options) any { return &o.MaxStalenessSeconds }, min: -1, max: maxInt32},
	{name: "minPoolSize", field: func(o *Options) any { return &o.MinPoolSize }, max: maxInt32},
	{name: "proxyHost", field: func(o *Options) any { return &o.ProxyHost }},
	{name: "proxyPort", field: func(o *Options) any { return &o.ProxyPort }, min: 1, max: 65535},
	{name: "proxyUsername", field: func(o *Options) any { return &o.ProxyUsername }},
	{name: "proxyPassword", field: func(o *Options) any { return &o.ProxyPassword }, secret: true, password: true},
	{name: "readConcernLevel", field: func(o *Options) any { return &o.ReadConcernLevel }},
	{name: "readPreference", field: func(o *Options) any { return &o.ReadPreference }, words: modes},
	{name: "readPreferenceTags", field: func(o *Options) any { return &o.ReadPreferenceTags }, emptyOK: true},
	{name: "replicaSet", field: func(o *Options) any { return &o.ReplicaSet }},
	{name: "retryReads", field: func(o *Options) any { return &o.RetryReads }},
	{name: "retryWrites", field: func(o *Options) any { return &o.RetryWrites }},
	{name: "serverMonitoringMode", field: func(o *Options) any { return &o.ServerMonitoringMode }, words: monitoringModes},
	{name: "serverSelectionTimeoutMS", field: func(o *Options) any { return &o.ServerSelectionTimeoutMS }, min: 1, max: maxInt32},
	{name: "serverSelectionTryOnce", field: func(o *Options) any { return &o.ServerSelectionTryOnce }},
	{name: "socketTimeoutMS", field: func(o *Options) any { return &o.SocketTimeoutMS }, max: maxInt32},
	{name: "srvAllowedHostsSuffix", field: func(o *Options) any { return &o.SRVAllowedHostsSuffix }},
	{name: "srvMaxHosts", field: func(o *Options) any { return &o.SRVMaxHosts }, max: maxInt32},
	{name: "srvServiceName", field: func(o *Options) any { return &o.SRVServiceName }},
	{name: "timeoutMS", field: func(o *Options) any { return &o.TimeoutMS }, max: maxInt32},
	{name: "tls", field: func(o *Options) any { return &o.TLS }, guards: true},
	{name: "tlsAllowInvalidCertificates", field: func(o *Options) any { return &o.TLSAllowInvalidCertificates }},
	{name: "tlsAllowInvalidHostnames", field: func(o *Options) any { return &o.TLSAllowInvalidHostnames }},
	{name: "tlsCAFile", field: func(o *Options) any { return &o.TLSCAFile }, guards: true},
	{name: "tlsCertificateKeyFile", field: func(o *Options) any { return &o.TLSCertificateKeyFile }, guards: true},
	{name: "tlsCertificateKeyFilePassword", field: func(o *Options) any { return &o.TLSCertificateKeyFilePassword }, guards: true, secret: true, password: true},
	{name: "tlsDisableCertificateRevocationCheck", field: func(o *Options) any { return &o.TLSDisableCertificateRevocationCheck }},
	{name: "tlsDisableOCSPEndpointCheck", field: func(o *Options) any { return &o.TLSDisableOCSPEndpointCheck }},
	{name: "tlsInsecure", field: func(o *Options) any { return &o.TLSInsecure }},
	{name: "w", field: func(o *Options) any { return &o.W }, max: maxInt32},
	{name: "waitQueueTimeoutMS", field: func(o *Options) any { return &o.WaitQueueTimeoutMS }, max: maxInt32},
	{name: "wTimeoutMS", field: func(o *Options) any { return &o.WTimeoutMS }, max: maxInt32},
	{name: "zlibCompressionLevel", field: func(o *Options) any { return &o.ZlibCompressionLevel }, min: -1, max: 9},
}

// byKey finds a row by its name in lower case.
var byKey = func() map[string]*option {
	m := make(map[string]*option, len(table))
	for i := range table {
		m[lower(table[i].name)] = &table[i]
	}
	return m
}()

// Value returns the parsed value of the option of that name, in any case: an int, bool, string, []string, []TagSet or
// map[string]string; nil if it is unset or unknown.
func (o *Options) Value(name string) any {
	key := lower(name)
	if canonical, ok := aliases[key]; ok {
		key = lower(canonical)
	}
	row, ok := byKey[key]
	if !ok {
		return nil
	}
	switch p := row.field(o).(type) {
	case **int:
		if *p != nil {
			return **p
		}
	case **bool:
		if *p != nil {
			return **p
		}
	case *string:
		if *p != "" {
			return *p
		}
	case *[]string:
		if *p != nil {
			return *p
		}
	case *[]TagSet:
		if *p != nil {
			return *p
		}
	case *map[string]string:
		if *p != nil {
			return *p
		}
	case *any:
		return *p
	}
	return nil
}
