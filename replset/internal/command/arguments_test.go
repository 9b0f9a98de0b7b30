package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// strict are commands that take what they have and nothing else, and the wire version since which they do.
var strict = []struct {
	db, cmd string
	since   int32
}{
	{"admin", `{"listDatabases":1}`, wire42}, {"admin", `{"getDefaultRWConcern":1}`, wire44},
	{"t", `{"ping":1}`, wire50}, {"t", `{"drop":"c"}`, wire50}, {"t", `{"dropDatabase":1}`, wire50}, {"t", `{"endSessions":[]}`, wire50},
	{"t", `{"refreshSessions":[]}`, wire50}, {"t", `{"usersInfo":1}`, wire50}, {"t", `{"rolesInfo":1}`, wire50},
	{"t", `{"createUser":"y","pwd":"x","roles":[]}`, wire50}, {"t", `{"updateUser":"y","pwd":"x"}`, wire50}, {"t", `{"dropUser":"y"}`, wire50},
	{"t", `{"explain":{"find":"c"}}`, wire50}, {"admin", `{"renameCollection":"t.c","to":"t.d"}`, wire50},
	{"t", `{"create":"n"}`, wire50}, {"t", `{"collMod":"c"}`, wire50},
	{"t", `{"createIndexes":"c","indexes":[{"key":{"a":1},"name":"a_1"}]}`, wire50}, {"t", `{"count":"c"}`, wire50}, {"t", `{"distinct":"c","key":"a"}`, wire50}, {"t", `{"listCollections":1}`, wire50},
	{"t", `{"listIndexes":"c"}`, wire50}, {"t", `{"dropIndexes":"c","index":"x"}`, wire50}, {"t", `{"killCursors":"c","cursors":[]}`, wire50},
	{"admin", `{"saslStart":1,"mechanism":"PLAIN","payload":"x"}`, wire50}, {"admin", `{"saslContinue":1,"conversationId":1,"payload":"x"}`, wire50},
	{"admin", `{"setFeatureCompatibilityVersion":"8.0"}`, wire50},
	{"$external", `{"authenticate":1,"mechanism":"MONGODB-X509"}`, wire60}, {"admin", `{"logout":1}`, wire60}, {"t", `{"connectionStatus":1}`, wire60},
	{"t", `{"features":1}`, wire60}, {"admin", `{"hostInfo":1}`, wire60}, {"admin", `{"getCmdLineOpts":1}`, wire60}, {"admin", `{"getLog":"*"}`, wire60},
	{"t", `{"dbStats":1}`, wire70}, {"t", `{"collStats":"c"}`, wire70}, {"admin", `{"fsync":1}`, wire80}, {"t", `{"compact":"c"}`, wire80},
}

// lax are those that servers of no version hold to what they have.
var lax = []struct{ db, cmd string }{
	{"admin", `{"hello":1}`}, {"admin", `{"isMaster":1}`}, {"t", `{"startSession":1}`}, {"t", `{"killAllSessions":[]}`}, {"t", `{"killSessions":[]}`},
	{"t", `{"killAllSessionsByPattern":[]}`}, {"t", `{"refreshLogicalSessionCacheNow":1}`}, {"t", `{"buildInfo":1}`}, {"t", `{"whatsmyuri":1}`},
	{"t", `{"serverStatus":1}`}, {"t", `{"listCommands":1}`}, {"t", `{"profile":0}`}, {"t", `{"validate":"c"}`}, {"t", `{"dbHash":1}`},
	{"t", `{"planCacheClear":"c"}`}, {"admin", `{"replSetGetStatus":1}`}, {"admin", `{"replSetGetConfig":1}`},
	{"admin", `{"killOp":1,"op":1}`}, {"admin", `{"configureFailPoint":"failCommand","mode":"off"}`},
}

func nameOf(cmd string) string { return strings.Split(cmd, `"`)[1] }

func withJunk(cmd string) string { return strings.TrimSuffix(cmd, "}") + `,"junk":1}` }

func TestUnknownArgumentsAreRefusedSinceTheVersionThatDoes(t *testing.T) {
	listed := []string{"createUser", "updateUser", "dropUser", "usersInfo", "rolesInfo"}
	ofVersions(t, func(t *testing.T, m *Member) {
		for _, c := range strict {
			command(t, m, "t", `{"insert":"c","documents":[{"a":1}]}`)
			name := nameOf(c.cmd)
			reply := command(t, m, c.db, withJunk(c.cmd))
			code, text := codeOf(reply), textOf(reply)
			switch {
			case m.opt.Persona.wire >= c.since:
				if want := fmt.Sprintf("BSON field '%s.junk' is an unknown field.", name); code != 40415 || text != want {
					t.Errorf("%s with junk answers %d %q", name, code, text)
				}
				if plain := command(t, m, c.db, c.cmd); codeOf(plain) == 40415 || codeOf(plain) == 14 {
					t.Errorf("%s answers %s", c.cmd, plain)
				}
			case slices.Contains(listed, name):
				if code != 2 || text != `"junk" is not a valid argument to `+name {
					t.Errorf("%s with junk answers %d %q", name, code, text)
				}
			case code == 40415:
				t.Errorf("%s with junk answers %d %q before it does", name, code, text)
			}
		}
		for _, c := range lax {
			plain, junk := command(t, m, c.db, c.cmd), command(t, m, c.db, withJunk(c.cmd))
			if codeOf(plain) != codeOf(junk) {
				t.Errorf("%s answers %s, and with junk %s", nameOf(c.cmd), plain, junk)
			}
		}
	})
}

func TestArgumentsOfWrongTypesAreRefused(t *testing.T) {
	m := newPrimary(t)
	for _, c := range []struct {
		db, cmd string
		code    int64
		text    string
	}{
		{"t", `{"createUser":"y","pwd":"x","roles":5}`, 14, "BSON field 'createUser.roles' is the wrong type 'int', expected type 'array'"},
		{"t", `{"createUser":"y","pwd":"x"}`, 40414, "BSON field 'createUser.roles' is missing but a required field"},
		{"t", `{"createUser":"y","pwd":"x","roles":null}`, 40414, "BSON field 'createUser.roles' is missing but a required field"},
		{"t", `{"createUser":"y","pwd":5,"roles":[]}`, 14, "BSON field 'createUser.pwd' is the wrong type 'int', expected type 'string'"},
		{"t", `{"createUser":5,"pwd":"x","roles":[]}`, 14, "BSON field 'createUser.createUser' is the wrong type 'int', expected type 'string'"},
		{"t", `{"createUser":"y","pwd":"x","roles":[],"mechanisms":["PLAIN",1]}`, 14, "BSON field 'createUser.mechanisms.1' is the wrong type 'int', expected type 'string'"},
		{"t", `{"createUser":"y","pwd":"x","roles":[1]}`, 2, "Role name must be either a document or string"},
		{"t", `{"updateUser":"y","roles":[{"role":"root"}]}`, 2, "Role name must be either a document or string"},
		{"t", `{"createUser":"y","pwd":"x","roles":[],"digestPassword":"no"}`, 14,
			"BSON field 'createUser.digestPassword' is the wrong type 'string', expected types '[bool, long, int, decimal, double]'"},
		{"admin", `{"listDatabases":1,"nameOnly":"x"}`, 14, "BSON field 'listDatabases.nameOnly' is the wrong type 'string', expected types '[bool, long, int, decimal, double]'"},
		{"admin", `{"listDatabases":1,"filter":1}`, 14, "BSON field 'listDatabases.filter' is the wrong type 'int', expected type 'object'"},
		{"t", `{"dropDatabase":"x"}`, 14, "BSON field 'dropDatabase.dropDatabase' is the wrong type 'string', expected types '[long, int, decimal, double]'"},
		{"t", `{"endSessions":1}`, 14, "BSON field 'endSessions.endSessions' is the wrong type 'int', expected type 'array'"},
		{"t", `{"endSessions":[1]}`, 14, "BSON field 'endSessions.endSessions.0' is the wrong type 'int', expected type 'object'"},
		{"t", `{"killAllSessions":1}`, 14, "BSON field 'KillAllSessionsCmd.killAllSessions' is the wrong type 'int', expected type 'array'"},
		{"t", `{"killAllSessions":[{"user":"a","db":"b","junk":1}]}`, 40415, "BSON field 'KillAllSessionsCmd.killAllSessions.junk' is an unknown field."},
		{"t", `{"killAllSessionsByPattern":[1]}`, 14, "BSON field 'KillAllSessionsByPatternCmd.killAllSessionsByPattern.0' is the wrong type 'int', expected type 'object'"},
		{"t", `{"explain":1}`, 14, "BSON field 'explain.explain' is the wrong type 'int', expected type 'object'"},
		{"t", `{"explain":{"count":"c","junk":1}}`, 40415, "BSON field 'count.junk' is an unknown field."},
		{"admin", `{"saslStart":1,"payload":"x"}`, 40414, "BSON field 'saslStart.mechanism' is missing but a required field"},
		{"admin", `{"saslContinue":1,"conversationId":{"$numberLong":"1"},"payload":"x"}`, 14, "BSON field 'saslContinue.conversationId' is the wrong type 'long', expected type 'int'"},
		{"t", `{"connectionStatus":1,"showPrivileges":null}`, 0, ""},
	} {
		if reply := command(t, m, c.db, c.cmd); codeOf(reply) != c.code || textOf(reply) != c.text {
			t.Errorf("%s: %d %q\n   want %d %q", c.cmd, codeOf(reply), textOf(reply), c.code, c.text)
		}
	}
}

// Every word of Fields is read: a type that is misspelt would take anything.
func TestArgumentsAreOfTypesThatThereAre(t *testing.T) {
	for name, spec := range commandTable() {
		for _, word := range strings.Fields(spec.Fields) {
			_, kind, typed := strings.Cut(strings.TrimSuffix(word, "!"), ":")
			if _, there := argumentTypes[kind]; !there || typed && kind == "" {
				t.Errorf("%s: there is no type of %s", name, word)
			}
		}
		if spec.Fields == "" && (spec.Since != 0 || spec.Listed) {
			t.Errorf("%s: says since when, and not what", name)
		}
	}
}
