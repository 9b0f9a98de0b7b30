package connstring

// aliases are old names that are still taken for the new ones. ssl is no old name but an equal one, without a warning.
var aliases = map[string]string{
	"ssl":      "tls",
	"wtimeout": "wTimeoutMS",
	"j":        "journal",
}

type oldName struct{ message, suggestion string }

// oldNames are options of old drivers and of other languages' option objects, with what serves their purpose today.
var oldNames = map[string]oldName{
	"connectionsperhost":    {"the name of the old Java driver", "maxPoolSize"},
	"minconnectionsperhost": {"the name of the old Java driver", "minPoolSize"},
	"poolsize":              {"an old name", "maxPoolSize"},
	"setpoolsize":           {"the name of the old PHP driver", "maxPoolSize"},
	"threadsallowedtoblockforconnectionmultiplier": {"the number of waiters is not limited any more", ""},
	"waitqueuemultiple":                            {"the number of waiters is not limited any more", ""},
	"waitqueuesize":                                {"the number of waiters is not limited any more", ""},
	"maxwaitqueuesize":                             {"the number of waiters is not limited any more", ""},
	"maxwaittime":                                  {"the name of the old Java driver", "waitQueueTimeoutMS"},
	"sockettimeout":                                {"the unit belongs to the name", "socketTimeoutMS"},
	"connecttimeout":                               {"the unit belongs to the name", "connectTimeoutMS"},
	"timeout":                                      {"the unit belongs to the name", "timeoutMS"},
	"maxconnectionidletime":                        {"the name of the Java driver", "maxIdleTimeMS"},
	"maxidletime":                                  {"the unit belongs to the name", "maxIdleTimeMS"},
	"heartbeatfrequency":                           {"the unit belongs to the name", "heartbeatFrequencyMS"},
	"heartbeatinterval":                            {"the name of another driver", "heartbeatFrequencyMS"},
	"updaterintervalms":                            {"the name of the old Java driver", "heartbeatFrequencyMS"},
	"pinginterval":                                 {"the name of the old PHP driver", "heartbeatFrequencyMS"},
	"updaterintervalnomasterms":                    {"the least time between checks is fixed at 500 ms", ""},
	"minheartbeatfrequency":                        {"the least time between checks is fixed at 500 ms", ""},
	"minheartbeatfrequencyms":                      {"the least time between checks is fixed at 500 ms", ""},
	"heartbeatconnectretryfrequency":               {"the least time between checks is fixed at 500 ms", ""},
	"slaveacceptablelatencyms":                     {"the name of the old Java driver", "localThresholdMS"},
	"acceptablelatencyms":                          {"the name of the old Java driver", "localThresholdMS"},
	"secondaryacceptablelatencyms":                 {"the name of old drivers", "localThresholdMS"},
	"localthreshold":                               {"the unit belongs to the name", "localThresholdMS"},
	"autoconnectretry":                             {"retries have options of their own", "retryReads and retryWrites"},
	"maxautoconnectretrytime":                      {"the wait for a member has an option of its own", "serverSelectionTimeoutMS"},
	"serverselectiontimeout":                       {"the unit belongs to the name", "serverSelectionTimeoutMS"},
	"requiredreplicasetname":                       {"the name of the Java driver", "replicaSet"},
	"rs_name":                                      {"the name of old drivers", "replicaSet"},
	"setname":                                      {"the name of old drivers", "replicaSet"},
	"safe":                                         {"acknowledgement is the write concern's affair", "w"},
	"fsync":                                        {"it was removed from MongoDB", "journal"},
	"persist":                                      {"one client keeps its connections by itself", ""},
	"connect":                                      {"one host without discovery has an option of its own", "directConnection"},
	"readpref":                                     {"an old name", "readPreference"},
	"read_preference":                              {"names are in camelCase", "readPreference"},
	"read_preference_tags":                         {"names are in camelCase", "readPreferenceTags"},
	"readconcern":                                  {"the level has an option of its own", "readConcernLevel"},
	"writeconcern":                                 {"the parts of the write concern are options of their own", "w, wTimeoutMS and journal"},
	"maxstaleness":                                 {"the unit belongs to the name", "maxStalenessSeconds"},
	"maxstalenessms":                               {"the unit is the second", "maxStalenessSeconds"},
	"authdb":                                       {"the name of other drivers", "authSource"},
	"sslcertificateauthorityfile":                  {"the name of another driver", "tlsCAFile"},
	"ssl_ca_certs":                                 {"the name of another driver", "tlsCAFile"},
	"sslclientcertificatekeyfile":                  {"the name of another driver", "tlsCertificateKeyFile"},
	"sslclientcertificatekeypassword":              {"the name of another driver", "tlsCertificateKeyFilePassword"},
	"sslinsecure":                                  {"the name of another driver", "tlsInsecure"},
	"sslverifycertificate":                         {"the name of another driver", "tlsAllowInvalidCertificates"},
	"sslinvalidhostnameallowed":                    {"the name of another driver", "tlsAllowInvalidHostnames"},
	"uuidrepresentation":                           {"it is for drivers of languages with a UUID type of their own", ""},
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
