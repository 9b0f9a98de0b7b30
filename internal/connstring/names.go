package connstring

// aliases are old names that are still taken for the new ones. ssl is no old name but an equal one, without a warning.
var aliases = map[string]string{
	"ssl":      "tls",
	"wtimeout": "wTimeoutMS",
	"j":        "journal",
}

type oldName struct{ message, suggestion string }

// Reasons that several names share.
const (
	unit     = "the unit belongs to the name"
	oldJava  = "the name of the old Java driver"
	java     = "the name of the Java driver"
	oldPHP   = "the name of the old PHP driver"
	old      = "an old name"
	other    = "the name of another driver"
	waiters  = "the number of waiters is not limited any more"
	leastGap = "the least time between checks is fixed at 500 ms"
	reborn   = "connections that are lost are replaced in any case"
	inCode   = "it is set in the program, not in a connection string"
	always   = "it is so in any case"
	unhedged = "servers ignore it since 8.1, and only sharded clusters knew it before"
	perfile  = "it is for another driver; give certificate and key in one PEM file. TLS is on for its sake"
	kerberos = "properties of a mechanism share one option"
	uuid     = "it is for drivers of languages with a UUID type of their own; here Config.BSON says what a UUID is"
)

// noLists is of options that would guard the client, so that to pass over them is an error.
var noLists = oldName{message: "lists of revoked certificates are not read; authorities are asked by OCSP"}

// oldNames are options of old drivers and of other languages' drivers and option objects, with what serves their purpose
// today. Names that are a known option but for hyphens, underscores and a unit are found without being listed.
var oldNames = map[string]oldName{
	// pools
	"connectionsperhost": {oldJava, "maxPoolSize"}, "minconnectionsperhost": {oldJava, "minPoolSize"},
	"poolsize": {old, "maxPoolSize"}, "setpoolsize": {oldPHP, "maxPoolSize"}, "poollimit": {"the name of mgo", "maxPoolSize"},
	"threadsallowedtoblockforconnectionmultiplier": {waiters, ""}, "waitqueuemultiple": {waiters, ""}, "waitqueuesize": {waiters, ""},
	"maxwaitqueuesize": {waiters, ""}, "maxwaittime": {oldJava, "waitQueueTimeoutMS"}, "maxconnectionidletime": {java, "maxIdleTimeMS"},
	"maxlifetimems":         {"connections live as long as they are good; those unused for long are closed by another option", "maxIdleTimeMS"},
	"maxconnectionlifetime": {"connections live as long as they are good; those unused for long are closed by another option", "maxIdleTimeMS"},
	"maxlifetime":           {"connections live as long as they are good; those unused for long are closed by another option", "maxIdleTimeMS"},
	"persist":               {"one client keeps its connections by itself", ""}, "autostartrequest": {"one operation uses one connection", ""},
	"hedge": {unhedged, ""}, "hedgedread": {unhedged, ""}, "hedgedreads": {unhedged, ""},
	// times
	"pinginterval": {oldPHP, "heartbeatFrequencyMS"}, "heartbeatinterval": {other, "heartbeatFrequencyMS"},
	"hainterval": {"the name of the old Node.js driver", "heartbeatFrequencyMS"}, "updaterintervalms": {oldJava, "heartbeatFrequencyMS"},
	"updaterintervalnomasterms": {leastGap, ""}, "minheartbeatfrequency": {leastGap, ""}, "minheartbeatfrequencyms": {leastGap, ""},
	"heartbeatconnectretryfrequency": {leastGap, ""}, "socketcheckintervalms": {"every connection is looked at before it is used", ""},
	"networktimeout": {"the name of an old driver", "socketTimeoutMS"}, "synctimeout": {"the name of mgo", "serverSelectionTimeoutMS"},
	"updaterconnecttimeoutms": {oldJava, "connectTimeoutMS"}, "updatersockettimeoutms": {oldJava, "connectTimeoutMS"},
	"heartbeattimeout": {"Config.HeartbeatTimeout is set in the program", ""}, "maxtimems": {"it belongs to a command, not to a client", "timeoutMS"},
	"sockettimeout": {unit, "socketTimeoutMS"}, "timeout": {unit, "timeoutMS"},
	// routing
	"slaveacceptablelatencyms": {oldJava, "localThresholdMS"}, "acceptablelatencyms": {oldJava, "localThresholdMS"},
	"secondaryacceptablelatencyms": {"the name of old drivers", "localThresholdMS"}, "acceptablelatency": {other, "localThresholdMS"},
	"readpref": {old, "readPreference"}, "tags": {other, "readPreferenceTags"}, "readpreferencetagsets": {other, "readPreferenceTags"},
	"maxstalenessms": {"the unit is the second", "maxStalenessSeconds"}, "requiredreplicasetname": {java, "replicaSet"},
	"rsname": {"the name of old drivers", "replicaSet"}, "setname": {"the name of old drivers", "replicaSet"},
	"connect":        {"one host without discovery has an option of its own", "directConnection"},
	"connectionmode": {"one host without discovery has an option of its own", "directConnection"},
	"direct":         {"the name of mgo", "directConnection"}, "mode": {other, "readPreference"}, "ha": {"members are always watched", ""},
	"slaveokay": {"it was left out of MongoDB's options", "readPreference=secondaryPreferred"},
	"ipv6":      {"addresses of both kinds are tried", ""}, "family": {"addresses of both kinds are tried", ""},
	// reads, writes, retries
	"readconcern": {"the level has an option of its own", "readConcernLevel"}, "safe": {"acknowledgement is the write concern's affair", "w"},
	"writeconcern": {"the parts of the write concern are options of their own", "w, wTimeoutMS and journal"},
	"fsync":        {"it was removed from MongoDB", "journal"}, "jwait": {old, "journal"}, "wtime": {old, "wTimeoutMS"},
	"autoconnectretry":        {"retries have options of their own", "retryReads and retryWrites"},
	"maxautoconnectretrytime": {"the wait for a member has an option of its own", "serverSelectionTimeoutMS"},
	"autoreconnect":           {reborn, ""}, "reconnecttries": {reborn, ""}, "reconnectinterval": {reborn, ""}, "reconnectwait": {reborn, ""},
	"buffermaxentries": {"an operation that finds no member waits", "serverSelectionTimeoutMS"},
	"buffercommands":   {"an operation that finds no member waits", "serverSelectionTimeoutMS"},
	// credentials
	"authdb": {other, "authSource"}, "authenticationdatabase": {other, "authSource"}, "source": {"the name of mgo", "authSource"},
	"mechanism":            {"the name of mgo", "authMechanism"},
	"gssapiservicename":    {kerberos, "authMechanismProperties=SERVICE_NAME:..."},
	"canonicalizehostname": {kerberos, "authMechanismProperties=CANONICALIZE_HOST_NAME:..."},
	"gssapihost":           {kerberos, "authMechanismProperties=SERVICE_HOST:..."},
	"user":                 {"it stands before the @", ""}, "username": {"it stands before the @", ""}, "password": {"it stands before the @", ""},
	// TLS: those without a meaning of today's; see oldTLSNames for the others
	"sslkeyfile": {perfile, "tlsCertificateKeyFile"}, "sslcert": {perfile, "tlsCertificateKeyFile"},
	"sslkey": {perfile, "tlsCertificateKeyFile"}, "tlscertificatefile": {perfile, "tlsCertificateKeyFile"},
	"tlscrlfile": noLists,
	"sslcrlfile": noLists,
	"sslcrl":     noLists,
	"crlfile":    noLists,
	// what has become a matter of course, or of the program
	"usenewurlparser": {always, ""}, "useunifiedtopology": {always, ""}, "keepalive": {always, ""}, "socketkeepalive": {always, ""},
	"keepaliveinitialdelay": {always, ""}, "nodelay": {always, ""}, "tcpnodelay": {always, ""},
	"uuidrepresentation": {uuid, ""}, "guids": {uuid, ""}, "documentclass": {inCode, ""}, "tzaware": {inCode, ""},
	"unicodedecodeerrorhandler": {inCode, ""}, "typeregistry": {inCode, ""}, "serverapi": {inCode, ""}, "monitorcommands": {inCode, ""},
	"driverinfo": {inCode, ""}, "ignoreundefined": {inCode, ""}, "promotevalues": {inCode, ""}, "promotelongs": {inCode, ""},
	"promotebuffers": {inCode, ""}, "forceserverobjectid": {inCode, ""}, "streamtype": {inCode, ""}, "loglevel": {inCode, ""},
}

// today is what an unknown option stands for, by what is known of other drivers; else by its looks.
func today(key string) oldName {
	bare := bare(key)
	if o, ok := oldNames[bare]; ok {
		return o
	}
	if o, ok := oldNames[key]; ok {
		return o
	}
	if row := byKey[bare]; row != nil {
		return oldName{"names are in camelCase", row.name}
	}
	for _, ending := range []string{"ms", "seconds"} {
		if row := byKey[bare+ending]; row != nil {
			return oldName{unit, row.name}
		}
	}
	return oldName{"", nearest(key)}
}

// nearest is the known option whose name is the fewest typing errors away, "" if none is near.
func nearest(key string) string {
	if len(key) > 64 {
		return ""
	}
	best, name := 1+len(key)/3, ""
	if best > 4 {
		best = 4
	}
	for i := range table {
		if d := distance(key, lower(table[i].name)); d < best {
			best, name = d, table[i].name
		}
	}
	return name
}

func suggestionFor(row *option, value string) string {
	if row.name == "replicaSet" {
		return "replicaSet=rs0"
	}
	if _, isBool := row.field(&Options{}).(**bool); isBool {
		if b, old, _ := parseBool(value); old {
			return row.name + "=" + map[bool]string{true: "true", false: "false"}[b]
		}
		return ""
	}
	best, word := 4, ""
	for _, w := range row.words {
		if d := distance(lower(value), lower(w)); d < best {
			best, word = d, w
		}
	}
	if word == "" {
		return ""
	}
	return row.name + "=" + word
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that make b of a.
func distance(a, b string) int {
	if n := len(a) - len(b); n > 4 || n < -4 {
		return 5 // never near, whatever the rest
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
