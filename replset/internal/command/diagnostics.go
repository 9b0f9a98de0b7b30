package command

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

var diagnosticCommands = []Spec{
	{Name: "ping", Flags: BeforeAuth, Handler: ping, Fields: "-"},
	{Name: "buildInfo", Aliases: []string{"buildinfo"}, Flags: BeforeAuth, Handler: buildInfo},
	{Name: "connectionStatus", Flags: BeforeAuth, Handler: connectionStatus, Fields: "showPrivileges:safeBool", Since: wire60},
	{Name: "whatsmyuri", Flags: BeforeAuth, Handler: whatsMyURI},
	{Name: "features", Flags: BeforeAuth, Handler: features, Fields: "oidReset:safeBool", Since: wire60},
	{Name: "getParameter", Flags: AdminOnly, Handler: getParameter},
	{Name: "setParameter", Flags: AdminOnly, Handler: setParameter},
	{Name: "serverStatus", Handler: serverStatus},
	{Name: "hostInfo", Flags: AdminOnly, Handler: hostInfo, Fields: "-", Since: wire60},
	{Name: "getCmdLineOpts", Flags: AdminOnly, Handler: getCmdLineOpts, Fields: "-", Since: wire60},
	{Name: "getLog", Flags: AdminOnly, Handler: getLog, Fields: "-", Since: wire60},
	{Name: "getLastError", Aliases: []string{"getlasterror"}, Handler: getLastError},
	{Name: "listCommands", Flags: BeforeAuth, Handler: listCommands},
	{Name: "fsync", Flags: AdminOnly, Handler: fsync, Fields: "lock:safeBool fsyncLockAcquisitionTimeoutMillis:int forBackup:safeBool allowFsyncFailure:safeBool", Since: wire80},
	{Name: "fsyncUnlock", Flags: AdminOnly, Handler: fsyncUnlock},
	{Name: "profile", Handler: profile},
	{Name: "setFeatureCompatibilityVersion", Flags: AdminOnly, Handler: setCompatibility, Fields: "confirm:safeBool downgradeOnDiskChanges:safeBool fromConfigServer:safeBool phase changeTimestamp"},
	{Name: "getDefaultRWConcern", Flags: AdminOnly, Handler: getDefaultRWConcern, Fields: "inMemory:bool", Since: wire44},
}

func ping(context.Context, *Member, *Request) (bson.D, error) { return nil, nil }

func buildInfo(_ context.Context, m *Member, _ *Request) (bson.D, error) {
	return bson.D{
		{Key: "version", Value: m.opt.Persona.Version},
		{Key: "gitVersion", Value: "0000000000000000000000000000000000000000"},
		{Key: "modules", Value: []string{}},
		{Key: "allocator", Value: "go"},
		{Key: "javascriptEngine", Value: "none"},
		{Key: "sysInfo", Value: "deprecated"},
		{Key: "versionArray", Value: m.opt.Persona.versionArray()},
		{Key: "bits", Value: int32(64)},
		{Key: "debug", Value: false},
		{Key: "maxBsonObjectSize", Value: int32(maxDocument)},
		{Key: "storageEngines", Value: []string{"sextant"}},
		{Key: "sextant", Value: "embedded replica set for development and tests"},
	}, nil
}

func connectionStatus(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	users, roles := []bson.D{}, []bson.D{}
	for _, u := range r.Conn.users {
		users = append(users, bson.D{{Key: "user", Value: u.Name}, {Key: "db", Value: u.DB}})
		roles = append(roles, bson.D{{Key: "role", Value: "root"}, {Key: "db", Value: "admin"}})
	}
	info := bson.D{{Key: "authenticatedUsers", Value: users}, {Key: "authenticatedUserRoles", Value: roles}}
	if value.Truthy(r.Field("showPrivileges")) {
		info = append(info, bson.E{Key: "authenticatedUserPrivileges", Value: privileges(len(users) > 0)})
	}
	return bson.D{{Key: "authInfo", Value: info}}, nil
}

// privileges are those of root, which every user is.
func privileges(root bool) []bson.D {
	if !root {
		return []bson.D{}
	}
	return []bson.D{{{Key: "resource", Value: bson.D{{Key: "anyResource", Value: true}}}, {Key: "actions", Value: []string{"anyAction"}}}}
}

func whatsMyURI(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	return bson.D{{Key: "you", Value: r.Conn.nc.RemoteAddr().String()}}, nil
}

func features(context.Context, *Member, *Request) (bson.D, error) {
	return bson.D{{Key: "js", Value: bson.D{}}}, nil
}

// parameters are those that clients and test runners ask for.
func (m *Member) parameters() bson.D {
	return bson.D{
		{Key: "authenticationMechanisms", Value: m.mechanisms()},
		{Key: "enableTestCommands", Value: true},
		{Key: "featureCompatibilityVersion", Value: bson.D{{Key: "version", Value: m.opt.Persona.Series()}}},
		{Key: "logLevel", Value: int32(0)},
		{Key: "maxIncomingConnections", Value: int32(maxConns)},
		{Key: "requireApiVersion", Value: false},
		{Key: "transactionLifetimeLimitSeconds", Value: int32(60)},
	}
}

func getParameter(_ context.Context, m *Member, r *Request) (bson.D, error) {
	all, _ := r.Field("getParameter").StringValueOK()
	if doc, ok := r.Field("getParameter").DocumentOK(); ok {
		if yes, _ := doc.Lookup("allParameters").BooleanOK(); yes {
			all = "*"
		}
	}
	if all == "*" {
		return m.parameters(), nil
	}
	var d bson.D
	for _, p := range m.parameters() {
		if !r.Field(p.Key).IsZero() {
			d = append(d, p)
		}
	}
	if d == nil {
		return nil, mongoerr.Server(mongoerr.CodeInvalidOptions, "no option found to get")
	}
	return d, nil
}

// setParameter knows the parameters that test runners set and that have no effect here.
func setParameter(_ context.Context, m *Member, r *Request) (bson.D, error) {
	for key := range r.Body.All() {
		switch key {
		case "logLevel", "requireApiVersion", "transactionLifetimeLimitSeconds":
			was, _ := m.parameters().Get(key)
			return bson.D{{Key: "was", Value: was}}, nil
		case "setParameter", "$db", "lsid", "$clusterTime", "$readPreference", "maxTimeMS", "comment":
			continue
		}
		return nil, mongoerr.Server(mongoerr.CodeInvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options ", key)
	}
	return nil, mongoerr.Server(mongoerr.CodeInvalidOptions, "no option found to set, use help:true to see options ")
}

// serverStatus tells what harnesses read. Not told: the counters of a storage engine.
func serverStatus(_ context.Context, m *Member, _ *Request) (bson.D, error) {
	open, ever := m.connections()
	up := time.Since(m.started)
	st := m.state.Load()
	return bson.D{
		{Key: "host", Value: m.Addr()},
		{Key: "version", Value: m.opt.Persona.Version},
		{Key: "process", Value: "mongod"},
		{Key: "pid", Value: int64(os.Getpid())},
		{Key: "uptime", Value: up.Seconds()},
		{Key: "uptimeMillis", Value: up.Milliseconds()},
		{Key: "localTime", Value: time.Now()},
		{Key: "connections", Value: bson.D{
			{Key: "current", Value: int32(open)}, {Key: "available", Value: int32(maxConns - open)}, {Key: "totalCreated", Value: ever}}},
		{Key: "opcounters", Value: m.opCounters()},
		{Key: "mem", Value: bson.D{{Key: "bits", Value: int32(strconv.IntSize)}, {Key: "resident", Value: resident()}, {Key: "supported", Value: true}}},
		{Key: "metrics", Value: bson.D{{Key: "cursor", Value: bson.D{{Key: "open", Value: bson.D{{Key: "total", Value: int64(m.cursors.count())}}}}}}},
		{Key: "logicalSessionRecordCache", Value: bson.D{{Key: "activeSessionsCount", Value: int32(len(m.sessions.list()))}}},
		{Key: "repl", Value: m.setFields(st, false)},
		{Key: "storageEngine", Value: bson.D{
			{Key: "name", Value: "sextant"}, {Key: "supportsCommittedReads", Value: true}, {Key: "persistent", Value: m.opt.Disk.persistent()},
			{Key: "supportsSnapshotReadConcern", Value: m.opt.Persona.snapshots()}}},
	}, nil
}

// opCounters count commands, those of writes too, where a server counts documents.
func (m *Member) opCounters() bson.D {
	counts := bson.D{}
	for _, kind := range []string{"insert", "query", "update", "delete", "getmore", "command"} {
		counts = append(counts, bson.E{Key: kind, Value: int64(0)})
	}
	for name, n := range m.opt.Counters.all() {
		kind := opNames[name]
		switch kind {
		case "":
			kind = "command"
		case "remove":
			kind = "delete"
		}
		i := slices.IndexFunc(counts, func(e bson.E) bool { return e.Key == kind })
		counts[i].Value = counts[i].Value.(int64) + n
	}
	return counts
}

// resident is the memory that the process has of the system, in MB.
func resident() int32 {
	total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(total)
	return int32((total[0].Value.Uint64() - total[1].Value.Uint64()) >> 20)
}

func hostInfo(_ context.Context, m *Member, _ *Request) (bson.D, error) {
	return bson.D{
		{Key: "system", Value: bson.D{
			{Key: "currentTime", Value: time.Now()}, {Key: "hostname", Value: m.Addr()}, {Key: "numCores", Value: int32(runtime.NumCPU())},
			{Key: "cpuArch", Value: runtime.GOARCH}}},
		{Key: "os", Value: bson.D{{Key: "type", Value: runtime.GOOS}, {Key: "name", Value: runtime.GOOS}, {Key: "version", Value: runtime.Version()}}},
		{Key: "extra", Value: bson.D{}},
	}, nil
}

func getCmdLineOpts(_ context.Context, m *Member, _ *Request) (bson.D, error) {
	return bson.D{
		{Key: "argv", Value: []string{"sextant"}},
		{Key: "parsed", Value: bson.D{
			{Key: "replication", Value: bson.D{{Key: "replSet", Value: m.opt.Config.SetName}}},
			{Key: "setParameter", Value: bson.D{{Key: "enableTestCommands", Value: "true"}}}}},
	}, nil
}

func getLog(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	name, ok := r.Field("getLog").StringValueOK()
	if !ok {
		return nil, mongoerr.Server(mongoerr.CodeTypeMismatch, "Argument to getLog must be of type String; found %s", bsonName(r.Field("getLog").Type))
	}
	switch name {
	case "*":
		return bson.D{{Key: "names", Value: []string{"global", "startupWarnings"}}}, nil
	case "global", "startupWarnings":
		return bson.D{{Key: "totalLinesWritten", Value: int32(0)}, {Key: "log", Value: []string{}}}, nil
	}
	return nil, mongoerr.Server(mongoerr.CodeOperationFailed, "No log named '%s'", name)
}

// getLastError answers the oldest clients, whose writes are commands by now and report their own errors.
func getLastError(_ context.Context, m *Member, r *Request) (bson.D, error) {
	return bson.D{
		{Key: "lastOp", Value: opTimeDocument(m.Store.Latest().OpTime())},
		{Key: "connectionId", Value: r.Conn.ID},
		{Key: "n", Value: int32(0)},
		{Key: "syncMillis", Value: int32(0)},
		{Key: "writtenTo", Value: nil},
		{Key: "err", Value: nil},
	}, nil
}

func listCommands(_ context.Context, m *Member, _ *Request) (bson.D, error) {
	var d bson.D
	for name, spec := range m.table {
		if name == spec.Name {
			d = append(d, bson.E{Key: name, Value: bson.D{{Key: "requiresAuth", Value: spec.Flags&BeforeAuth == 0},
				{Key: "adminOnly", Value: spec.Flags&AdminOnly != 0}}})
		}
	}
	return bson.D{{Key: "commands", Value: d}}, nil
}

// fsync waits until everything that was written before would outlive a crash. It does not lock.
func fsync(ctx context.Context, m *Member, r *Request) (bson.D, error) {
	if value.Truthy(r.Field("lock")) {
		return nil, mongoerr.Server(mongoerr.CodeNotImplemented, "fsync with lock is not served: writes would go on")
	}
	if err := m.awaitDurable(ctx); err != nil {
		return nil, err
	}
	return bson.D{{Key: "numFiles", Value: int32(1)}}, nil
}

func fsyncUnlock(context.Context, *Member, *Request) (bson.D, error) {
	return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "fsyncUnlock called when not locked")
}

// profile tells that nothing is profiled, and refuses to begin.
func profile(_ context.Context, _ *Member, r *Request) (bson.D, error) {
	level, ok := truncated(r.Field(r.Name))
	switch {
	case !ok:
		return nil, wrongField("profile", "profile", r.Field(r.Name), "int")
	case level > 0:
		return nil, mongoerr.Server(mongoerr.CodeNotImplemented, "profiling is not served")
	}
	return bson.D{{Key: "was", Value: int32(0)}, {Key: "slowms", Value: int32(100)}, {Key: "sampleRate", Value: 1.0}}, nil
}

// setCompatibility takes the version that there is: the set cannot act as an older one than it claims to be.
func setCompatibility(_ context.Context, m *Member, r *Request) (bson.D, error) {
	want, ok := r.Field(r.Name).StringValueOK()
	switch {
	case !ok:
		return nil, wrongField(r.Name, r.Name, r.Field(r.Name), "string")
	case m.opt.Persona.wire >= wire70 && !value.Truthy(r.Field("confirm")):
		return nil, mongoerr.Server(7369100, "Once you have upgraded to %s, you will not be able to downgrade FCV and binary version without support assistance. "+
			"Please re-run this command with 'confirm: true' to acknowledge this and continue with the FCV upgrade.", want)
	case want != m.opt.Persona.Series():
		return nil, mongoerr.Server(mongoerr.CodeNotImplemented, "a feature compatibility version other than %s is not served", m.opt.Persona.Series())
	}
	return nil, nil
}

func getDefaultRWConcern(_ context.Context, m *Member, _ *Request) (bson.D, error) {
	mode, members := m.defaultWrite()
	var w any = mode
	if mode == "" {
		w = int32(members)
	}
	return bson.D{
		{Key: "defaultReadConcern", Value: bson.D{{Key: "level", Value: "local"}}},
		{Key: "defaultWriteConcern", Value: bson.D{{Key: "w", Value: w}, {Key: "wtimeout", Value: int32(0)}}},
		{Key: "defaultWriteConcernSource", Value: "implicit"},
		{Key: "defaultReadConcernSource", Value: "implicit"},
	}, nil
}
