package sextant_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/event"
	"github.com/sextantdb/sextant/readpref"
	"github.com/sextantdb/sextant/replset"
)

// record is one record of a log.
type record struct {
	level   slog.Level
	message string
	at      time.Time
	attrs   map[string]any
}

// records is a log handler that keeps what it gets.
type records struct {
	level slog.Leveler // nil: Debug
	mu    sync.Mutex   // guards list
	list  []record
}

func (r *records) Enabled(_ context.Context, l slog.Level) bool {
	if r.level == nil {
		return l >= slog.LevelDebug
	}
	return l >= r.level.Level()
}

func (r *records) Handle(_ context.Context, rec slog.Record) error {
	out := record{rec.Level, rec.Message, rec.Time, map[string]any{}}
	rec.Attrs(func(a slog.Attr) bool { out.attrs[a.Key] = a.Value.Any(); return true })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, out)
	return nil
}

func (r *records) WithAttrs([]slog.Attr) slog.Handler { return r }
func (r *records) WithGroup(string) slog.Handler      { return r }

func (r *records) all() []record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// of are the records of a message.
func (r *records) of(message string) (out []record) {
	for _, rec := range r.all() {
		if rec.message == message {
			out = append(out, rec)
		}
	}
	return out
}

// command are the records of a message about a command.
func (r *records) command(message, name string) (out []record) {
	for _, rec := range r.of(message) {
		if rec.attrs["commandName"] == name {
			out = append(out, rec)
		}
	}
	return out
}

// clear forgets everything.
func (r *records) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}

// logged runs a test in a bubble with a client that logs everything.
func logged(t *testing.T, edit func(*replset.Options, *sextant.Config), f func(t *testing.T, b *bubble, log *records)) {
	t.Helper()
	log := &records{}
	inBubble(t, func(o *replset.Options, c *sextant.Config) {
		primaryFirst(o)
		c.Logger = slog.New(log)
		if edit != nil {
			edit(o, c)
		}
	}, func(t *testing.T, b *bubble) { f(t, b, log) })
}

// duty is what the specifications demand of the records of a message.
type duty struct {
	level     slog.Level
	component string
	keys      string // separated by blanks
}

const (
	ofCommand   = "commandName databaseName requestId operationId driverConnectionId serverConnectionId serverHost serverPort "
	ofServer    = "serverHost serverPort "
	ofHeartbeat = "topologyId awaited driverConnectionId " + ofServer
	ofSelection = "selector operationId operation topologyDescription "
)

// duties are the tables of the specifications CLAM, CMAP, SDAM logging and server selection.
var duties = map[string]duty{
	"Command started":             {slog.LevelDebug, "command", ofCommand + "command"},
	"Command succeeded":           {slog.LevelDebug, "command", ofCommand + "durationMS reply"},
	"Command failed":              {slog.LevelDebug, "command", ofCommand + "durationMS failure"},
	"Connection pool created":     {slog.LevelDebug, "connection", ofServer + "maxIdleTimeMS minPoolSize maxPoolSize maxConnecting waitQueueTimeoutMS"},
	"Connection pool ready":       {slog.LevelDebug, "connection", ofServer},
	"Connection pool cleared":     {slog.LevelDebug, "connection", ofServer},
	"Connection pool closed":      {slog.LevelDebug, "connection", ofServer},
	"Connection created":          {slog.LevelDebug, "connection", ofServer + "driverConnectionId"},
	"Connection ready":            {slog.LevelDebug, "connection", ofServer + "driverConnectionId durationMS"},
	"Connection closed":           {slog.LevelDebug, "connection", ofServer + "driverConnectionId reason"},
	"Connection checkout started": {slog.LevelDebug, "connection", ofServer},
	"Connection checkout failed":  {slog.LevelDebug, "connection", ofServer + "reason error durationMS"},
	"Connection checked out":      {slog.LevelDebug, "connection", ofServer + "driverConnectionId durationMS"},
	"Connection checked in":       {slog.LevelDebug, "connection", ofServer + "driverConnectionId"},

	"Starting topology monitoring": {slog.LevelDebug, "topology", "topologyId"},
	"Stopped topology monitoring":  {slog.LevelDebug, "topology", "topologyId"},
	"Starting server monitoring":   {slog.LevelDebug, "topology", "topologyId " + ofServer},
	"Stopped server monitoring":    {slog.LevelDebug, "topology", "topologyId " + ofServer},
	"Topology description changed": {slog.LevelDebug, "topology", "topologyId previousDescription newDescription"},
	"Server heartbeat started":     {slog.LevelDebug, "topology", ofHeartbeat},
	"Server heartbeat succeeded":   {slog.LevelDebug, "topology", ofHeartbeat + "serverConnectionId durationMS reply"},
	"Server heartbeat failed":      {slog.LevelDebug, "topology", ofHeartbeat + "durationMS failure"},

	"Server selection started":                        {slog.LevelDebug, "serverSelection", ofSelection},
	"Server selection succeeded":                      {slog.LevelDebug, "serverSelection", ofSelection + ofServer},
	"Server selection failed":                         {slog.LevelDebug, "serverSelection", ofSelection + "failure"},
	"Waiting for suitable server to become available": {slog.LevelInfo, "serverSelection", ofSelection + "remainingTimeMS"},
}

func TestLogHasEveryMessageOfTheSpecificationsWithItsKeys(t *testing.T) {
	logged(t, func(_ *replset.Options, c *sextant.Config) {
		c.MaxPoolSize, c.MinPoolSize, c.MaxIdleTime, c.WaitQueueTimeout = new(2), 1, time.Minute, 100*time.Millisecond
		c.ServerSelectionTimeout = time.Second
	}, func(t *testing.T, b *bubble, log *records) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		_, _ = b.cl.Database("shop").RunCommand(t.Context(), bson.D{{Key: "noSuchCommand", Value: 1}})
		_, _ = b.orders().FindOne(t.Context(), bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Secondary(readpref.Tags("dc", "mars"))})
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Block: time.Second})
		var wg sync.WaitGroup
		for range 3 { // one more than there are connections
			wg.Go(func() { _, _ = b.orders().FindOne(t.Context(), bson.D{}) })
		}
		wg.Wait()
		if err := b.set.Kill(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := b.cl.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		topologies := map[any]bool{}
		for _, rec := range log.all() {
			d, ok := duties[rec.message]
			if !ok {
				t.Errorf("no specification has the message %q", rec.message)
				continue
			}
			if rec.level != d.level || rec.attrs["component"] != d.component {
				t.Errorf("%s: level %v of component %v", rec.message, rec.level, rec.attrs["component"])
			}
			for key := range strings.FieldsSeq(d.keys) {
				if _, ok := rec.attrs[key]; !ok {
					t.Errorf("%s lacks %s: %v", rec.message, key, rec.attrs)
				}
			}
			if id, ok := rec.attrs["topologyId"]; ok {
				topologies[id] = true
			}
		}
		for message := range duties {
			if len(log.of(message)) == 0 {
				t.Errorf("no record %q", message)
			}
		}
		if len(topologies) != 1 {
			t.Errorf("topologyId: %v", topologies)
		}
		for _, rec := range log.all() { // commands are logged by who makes them, all else in its own order by another goroutine
			if rec.attrs["component"] == "command" {
				continue
			}
			if rec.message != "Server selection started" && rec.message != "Starting topology monitoring" {
				t.Errorf("the first record is %q", rec.message)
			}
			break
		}
	})
}

func TestLogTellsReasonsInTheSpecificationsWords(t *testing.T) {
	logged(t, func(_ *replset.Options, c *sextant.Config) {
		c.MaxPoolSize, c.WaitQueueTimeout = new(1), 100*time.Millisecond
		c.RetryReads = new(false)
	}, func(t *testing.T, b *bubble, log *records) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Times: 1, Block: time.Second})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = b.orders().FindOne(t.Context(), bson.D{}) })
		}
		wg.Wait()
		b.fail(t, 0, replset.FailCommand{Commands: []string{"find"}, Times: 1, CloseConnection: true})
		_, _ = b.orders().FindOne(t.Context(), bson.D{})
		_ = b.cl.Close(t.Context())
		reasons := map[any]bool{}
		for _, rec := range slices.Concat(log.of("Connection closed"), log.of("Connection checkout failed")) {
			reasons[rec.attrs["reason"]] = true
		}
		for _, want := range []string{"Wait queue timeout elapsed without a connection becoming available",
			"An error occurred while using the connection"} {
			if !reasons[want] {
				t.Errorf("no reason %q in %v", want, reasons)
			}
		}
	})
}

// Broken by logging what a connection says before it is ready, or what monitors ask.
func TestLogHasNoCommandsOfHandshakesAndHeartbeats(t *testing.T) {
	logged(t, func(o *replset.Options, c *sextant.Config) {
		o.Users = []replset.User{{Name: "joe", Password: "s3cret"}}
		c.Username, c.Password = "joe", "s3cret"
	}, func(t *testing.T, b *bubble, log *records) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		_ = b.cl.Close(t.Context())
		for _, rec := range log.all() {
			switch rec.attrs["commandName"] {
			case nil, "insert", "endSessions":
			default:
				t.Errorf("%s %v", rec.message, rec.attrs)
			}
			for key, v := range rec.attrs {
				if s, ok := v.(string); ok && strings.Contains(s, "s3cret") {
					t.Errorf("%s shows the password in %s", rec.message, key)
				}
			}
		}
	})
}

func TestLogTellsNothingOfSensitiveCommandsAndTheirFailures(t *testing.T) {
	logged(t, nil, func(t *testing.T, b *bubble, log *records) {
		for _, name := range []string{"authenticate", "saslStart", "saslContinue", "getnonce", "createUser", "updateUser", "copydbgetnonce",
			"copydbsaslstart", "copydb", "hello", "ismaster", "isMaster"} {
			cmd := bson.D{{Key: name, Value: 1}, {Key: "secret", Value: "hunter2"}, {Key: "speculativeAuthenticate", Value: bson.D{{Key: "saslStart", Value: 1}}}}
			_, _ = b.cl.Database("admin").RunCommand(t.Context(), cmd)
			started := log.command("Command started", name)
			over := append(log.command("Command succeeded", name), log.command("Command failed", name)...)
			if len(started) != 1 || len(over) != 1 {
				t.Errorf("%s: %d started, %d over", name, len(started), len(over))
				continue
			}
			if started[0].attrs["command"] != "{}" {
				t.Errorf("%s shows %v", name, started[0].attrs["command"])
			}
			if r, ok := over[0].attrs["reply"]; ok && r != "{}" {
				t.Errorf("the reply to %s shows %v", name, r)
			}
			if f, ok := over[0].attrs["failure"].(string); ok && (strings.Contains(f, "hunter2") || !strings.Contains(f, "the command failed")) {
				t.Errorf("the failure of %s shows %s", name, f)
			}
		}
		_, _ = b.cl.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}})
		if s, _ := log.command("Command started", "hello")[1].attrs["command"].(string); !strings.HasPrefix(s, `{"hello":1`) {
			t.Errorf("a hello that is not sensitive shows %s", s)
		}
	})
}

func length(v any) int {
	s, _ := v.(string)
	return utf8.RuneCountInString(s)
}

// Broken by a default limit other than 1,000 characters, or by an ellipsis that counts.
func TestProseCLAM1DefaultTruncationLimit(t *testing.T) {
	logged(t, nil, func(t *testing.T, b *bubble, log *records) {
		docs := make([]bson.D, 100)
		for i := range docs {
			docs[i] = bson.D{{Key: "x", Value: "y"}}
		}
		if _, err := b.orders().InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
		if n := length(log.command("Command started", "insert")[0].attrs["command"]); n != 1000+len("...") {
			t.Errorf("the insert is %d characters long", n)
		}
		if n := length(log.command("Command succeeded", "insert")[0].attrs["reply"]); n == 0 || n > 1000+len("...") {
			t.Errorf("its reply is %d characters long", n)
		}
		cur, err := b.orders().Find(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		defer cur.Close(t.Context())
		if n := length(log.command("Command succeeded", "find")[0].attrs["reply"]); n != 1000+len("...") {
			t.Errorf("the reply to find is %d characters long", n)
		}
	})
}

// Broken by not looking at the configured limit. (An error in the log holds the server's words, not its reply.)
func TestProseCLAM2ExplicitTruncationLimit(t *testing.T) {
	logged(t, func(_ *replset.Options, c *sextant.Config) { c.LogMaxDocumentLength = 5 }, func(t *testing.T, b *bubble, log *records) {
		if _, err := b.cl.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: true}}); err != nil {
			t.Fatal(err)
		}
		if s := log.command("Command started", "hello")[0].attrs["command"]; s != `{"hel...` {
			t.Errorf("the command shows %v", s)
		}
		if n := length(log.command("Command succeeded", "hello")[0].attrs["reply"]); n != 5+len("...") {
			t.Errorf("the reply is %d characters long", n)
		}
	})
}

// Broken by counting bytes, or by cutting within a character.
func TestProseCLAM3TruncationOfMultiByteCharacters(t *testing.T) {
	const prefix = `{"echo":"`
	logged(t, func(_ *replset.Options, c *sextant.Config) { c.LogMaxDocumentLength = len(prefix) + 3 }, func(t *testing.T, b *bubble, log *records) {
		for _, text := range []string{"äöüß…", "日本語日本語", "😀😀😀😀😀", "aä日😀z", strings.Repeat("😀", 1<<16), "x" + strings.Repeat("ä", 1<<16)} {
			log.clear()
			_, _ = b.cl.Database("admin").RunCommand(t.Context(), bson.D{{Key: "echo", Value: text}})
			want := prefix + string([]rune(text)[:3]) + "..."
			if got := log.command("Command started", "echo")[0].attrs["command"]; got != want {
				t.Errorf("%.20s: the log shows %q, want %q", text, got, want)
			}
		}
	})
}

func TestLogKeepsToTheLevelsOfHandlerAndComponents(t *testing.T) {
	level, command := &slog.LevelVar{}, &slog.LevelVar{}
	log := &records{level: level}
	inBubble(t, func(_ *replset.Options, c *sextant.Config) {
		c.Logger, c.ServerSelectionTimeout = slog.New(log), time.Second
		c.LogLevels = sextant.LogLevels{Command: command, Connection: slog.LevelInfo, Topology: slog.LevelWarn}
		c.Monitor = nil
	}, func(t *testing.T, b *bubble) {
		step := func(h, c slog.Level) []record {
			t.Helper()
			level.Set(h)
			command.Set(c)
			log.clear()
			_, _ = b.orders().FindOne(t.Context(), bson.D{}, sextant.FindOneOptions{ReadPreference: readpref.Secondary(readpref.Tags("dc", "mars"))})
			_ = b.insert(t)
			synctest.Wait()
			return log.all()
		}
		components := func(list []record) (out []string) {
			for _, r := range list {
				if c := r.attrs["component"].(string); !slices.Contains(out, c) {
					out = append(out, c)
				}
			}
			slices.Sort(out)
			return out
		}
		if list := step(slog.LevelInfo, slog.LevelDebug); len(list) < 1 || slices.ContainsFunc(list, func(r record) bool { return r.message != "Waiting for suitable server to become available" }) {
			t.Errorf("at level Info: %v", list)
		}
		if list := step(slog.LevelWarn, slog.LevelDebug); len(list) != 0 {
			t.Errorf("at level Warn: %v", list)
		}
		if got := components(step(slog.LevelDebug, slog.LevelDebug)); !slices.Equal(got, []string{"command", "serverSelection"}) {
			t.Errorf("with commands: %v", got)
		}
		if got := components(step(slog.LevelDebug, slog.LevelError)); !slices.Equal(got, []string{"serverSelection"}) {
			t.Errorf("without commands: %v", got)
		}
	})
}

func TestRecordsHaveTheTimeOfTheirEvent(t *testing.T) {
	logged(t, nil, func(t *testing.T, b *bubble, log *records) {
		time.Sleep(time.Minute)
		from := time.Now()
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if out := log.of("Connection checkout started"); len(out) != 1 || !out[0].at.Equal(from) {
			t.Errorf("%v, want %v", out, from)
		}
	})
}

// brokenHandler panics wherever it is asked.
type brokenHandler struct{ *records }

func (brokenHandler) Enabled(context.Context, slog.Level) bool  { panic("enabled") }
func (brokenHandler) Handle(context.Context, slog.Record) error { panic("handle") }
func (h brokenHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }

// stuckHandler does not return before the gate opens, for whatever is not logged by the caller itself.
type stuckHandler struct {
	*records
	gate chan struct{}
}

func (h stuckHandler) Handle(ctx context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "Command ") {
		<-h.gate
	}
	return h.records.Handle(ctx, r)
}

func TestHandlerThatPanicsOrHangsHarmsNoOperation(t *testing.T) {
	for name, hangs := range map[string]bool{"panics": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			var gate chan struct{}
			inBubble(t, func(_ *replset.Options, c *sextant.Config) {
				gate = make(chan struct{})
				c.Logger = slog.New(brokenHandler{&records{}})
				if hangs {
					c.Logger = slog.New(stuckHandler{&records{}, gate})
				}
			}, func(t *testing.T, b *bubble) {
				defer close(gate)
				for range 3 {
					if err := b.insert(t); err != nil {
						t.Error(err)
					}
				}
				if took := b.at(); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = b.cl.Close(ctx)
				if took := b.at(); took > 10*time.Second {
					t.Errorf("Close ended after %v", took)
				}
			})
		})
	}
}

// fromEnvironment makes a client with these variables set, uses it once and gives what the file holds.
func fromEnvironment(t *testing.T, set *replset.Set, variables map[string]string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "log")
	for _, name := range []string{"ALL", "COMMAND", "TOPOLOGY", "SERVER_SELECTION", "CONNECTION", "MAX_DOCUMENT_LENGTH"} {
		t.Setenv("MONGODB_LOG_"+name, variables[name])
	}
	t.Setenv("MONGODB_LOG_PATH", file)
	if path, ok := variables["PATH"]; ok {
		t.Setenv("MONGODB_LOG_PATH", path)
	}
	cl, err := sextant.Connect(t.Context(), set.URI())
	if err != nil {
		t.Fatal(err)
	}
	if err := ping(cl)(); err != nil {
		t.Fatal(err)
	}
	if err := cl.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func TestEnvironmentDecidesWhatIsLoggedWithoutALogger(t *testing.T) {
	set := replset.Run(t, replset.Options{})
	for _, c := range []struct {
		variables map[string]string
		has, not  string // components
	}{
		{nil, "", "command topology serverSelection connection client"},
		{map[string]string{"ALL": "off"}, "", "command topology serverSelection connection client"},
		{map[string]string{"ALL": "DEBUG"}, "command topology serverSelection connection", "client"},
		{map[string]string{"ALL": "trace", "COMMAND": "off"}, "topology serverSelection connection", "command"},
		{map[string]string{"COMMAND": "debug"}, "command", "topology serverSelection connection client"},
		{map[string]string{"COMMAND": "info", "TOPOLOGY": "Debug"}, "topology", "command serverSelection connection"},
		{map[string]string{"SERVER_SELECTION": "debug", "CONNECTION": "notice"}, "serverSelection", "command topology connection"},
		{map[string]string{"CONNECTION": "debug"}, "connection", "command topology serverSelection"},
		{map[string]string{"ALL": "emergency"}, "", "command topology serverSelection connection client"},
		{map[string]string{"ALL": "loud"}, "", "command topology serverSelection connection client"},
		{map[string]string{"COMMAND": "debug", "TOPOLOGY": "loud"}, "command client", "topology"},
		{map[string]string{"COMMAND": "debug", "MAX_DOCUMENT_LENGTH": "many"}, "command client", "topology"},
	} {
		text := fromEnvironment(t, set, c.variables)
		for component := range strings.FieldsSeq(c.has) {
			if !strings.Contains(text, "component="+component) {
				t.Errorf("%v: no %s in\n%s", c.variables, component, text)
			}
		}
		for component := range strings.FieldsSeq(c.not) {
			if strings.Contains(text, "component="+component) {
				t.Errorf("%v: %s in\n%s", c.variables, component, text)
			}
		}
	}
	if text := fromEnvironment(t, set, map[string]string{"COMMAND": "debug", "MAX_DOCUMENT_LENGTH": "7"}); !strings.Contains(text, `...`) || strings.Contains(text, `$db`) {
		t.Errorf("not cut:\n%s", text)
	}
}

func TestLogPathNamesStdoutStderrOrAFileThatIsAppendedTo(t *testing.T) {
	set := replset.Run(t, replset.Options{})
	file := filepath.Join(t.TempDir(), "appended")
	if err := os.WriteFile(file, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fromEnvironment(t, set, map[string]string{"ALL": "debug", "PATH": file})
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "before\n") || !strings.Contains(string(text), "Command started") ||
		!strings.Contains(string(text), "Stopped topology monitoring") {
		t.Errorf("%v, %s", err, text)
	}
	for path, stream := range map[string]**os.File{"STDOUT": &os.Stdout, "stderr": &os.Stderr, "": &os.Stderr, "/no/such/folder/log": &os.Stderr} {
		got := filepath.Join(t.TempDir(), "stream")
		f, err := os.Create(got)
		if err != nil {
			t.Fatal(err)
		}
		before := *stream
		*stream = f
		fromEnvironment(t, set, map[string]string{"COMMAND": "debug", "PATH": path})
		*stream = before
		f.Close()
		text, _ := os.ReadFile(got)
		if !strings.Contains(string(text), "Command started") || strings.Contains(string(text), "MONGODB_LOG_PATH") != strings.HasPrefix(path, "/no") {
			t.Errorf("path %q: %s", path, text)
		}
	}
}

func TestLoggerComesBeforeTheEnvironment(t *testing.T) {
	t.Setenv("MONGODB_LOG_ALL", "debug")
	t.Setenv("MONGODB_LOG_MAX_DOCUMENT_LENGTH", "3")
	log := &records{level: slog.LevelError}
	set := replset.Run(t, replset.Options{})
	cl := connect(t, set.URI(), func(c *sextant.Config) { c.Logger = slog.New(log) })
	if err := ping(cl)(); err != nil {
		t.Fatal(err)
	}
	if list := log.all(); len(list) != 0 {
		t.Errorf("%v", list)
	}
	cut, whole := &records{}, &records{}
	_ = ping(connect(t, set.URI(), func(c *sextant.Config) { c.Logger = slog.New(cut) }))()
	_ = ping(connect(t, set.URI(), func(c *sextant.Config) { c.Logger, c.LogMaxDocumentLength = slog.New(whole), 10_000 }))()
	for _, c := range []struct {
		log  *records
		want bool
	}{{cut, true}, {whole, false}} {
		if s, _ := c.log.of("Command started")[0].attrs["command"].(string); strings.HasSuffix(s, "...") != c.want {
			t.Errorf("the command is %q", s)
		}
	}
}

func TestLogOptionsThatCannotBeAreRefused(t *testing.T) {
	for want, cfg := range map[string]*sextant.Config{
		"LogMaxDocumentLength": {Hosts: []string{"a"}, LogMaxDocumentLength: -1},
		"no Logger":            {Hosts: []string{"a"}, LogLevels: sextant.LogLevels{Command: slog.LevelDebug}},
	} {
		if _, err := sextant.ConnectConfig(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Broken by recovering from a callback's panic without a word.
func TestCallbackThatPanicsIsLogged(t *testing.T) {
	logged(t, func(_ *replset.Options, c *sextant.Config) {
		c.Monitor = &event.Monitor{
			CommandStarted:  func(context.Context, *event.CommandStartedEvent) { panic("started") },
			TopologyChanged: func(*event.TopologyEvent) { panic("topology") },
		}
	}, func(t *testing.T, b *bubble, log *records) {
		if err := b.insert(t); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		seen := map[any]bool{}
		for _, rec := range log.of("A callback panicked") {
			seen[rec.attrs["callback"]] = true
			if rec.level != slog.LevelError || rec.attrs["component"] != "client" || !strings.Contains(rec.attrs["stack"].(string), "log_test.go") {
				t.Errorf("%v %v", rec.level, rec.attrs)
			}
		}
		if !seen["CommandStarted"] || !seen["TopologyChanged"] {
			t.Errorf("logged: %v", seen)
		}
	})
}
