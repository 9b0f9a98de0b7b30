package command

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/sextantdb/sextant/bson"
)

// ofVersions runs f on a member of each series of which commands answer otherwise.
func ofVersions(t *testing.T, f func(t *testing.T, m *Member)) {
	for _, series := range Versions() {
		t.Run(series, func(t *testing.T) { f(t, memberOfVersion(t, slog.New(slog.NewTextHandler(io.Discard, nil)), series)) })
	}
}

func TestDropOfNothingFailsBefore70(t *testing.T) {
	ofVersions(t, func(t *testing.T, m *Member) {
		before := m.Store.Latest().OpTime()
		for _, db := range []string{"nodb", "t"} {
			reply := command(t, m, db, `{"drop":"c"}`)
			if m.opt.Persona.wire >= wire70 {
				if ok, _ := reply.Lookup("ok").AsFloat64OK(); ok != 1 || !reply.Lookup("ns").IsZero() || !reply.Lookup("nIndexesWas").IsZero() {
					t.Errorf("answered %s", reply)
				}
				if m.Store.Latest().OpTime() != before {
					t.Error("it was written into the oplog")
				}
			} else if code, text := codeOf(reply), textOf(reply); code != 26 || text != "ns not found" {
				t.Errorf("answered %d %q", code, text)
			}
			command(t, m, "t", `{"create":"other"}`)
			before = m.Store.Latest().OpTime()
		}
		want := "ns not found t.c"
		if m.opt.Persona.wire < wire44 {
			want = "ns not found"
		}
		if reply := command(t, m, "t", `{"dropIndexes":"c","index":"*"}`); codeOf(reply) != 26 || textOf(reply) != want {
			t.Errorf("dropIndexes of nothing answers %s", reply)
		}
	})
}

func TestDropDatabaseTellsWhatItDroppedBefore50(t *testing.T) {
	ofVersions(t, func(t *testing.T, m *Member) {
		command(t, m, "t", `{"create":"c"}`)
		old := m.opt.Persona.wire < wire50
		for _, there := range []bool{true, false} {
			reply := command(t, m, "t", `{"dropDatabase":1}`)
			if ok, _ := reply.Lookup("ok").AsFloat64OK(); ok != 1 || reply.Lookup("dropped").IsZero() == (old && there) {
				t.Errorf("dropping it, there: %v: %s", there, reply)
			}
		}
		want := int64(5255100)
		if old {
			want = 20
		}
		if reply := command(t, m, "t", `{"dropDatabase":2}`); codeOf(reply) != want {
			t.Errorf("dropDatabase: 2 answers %s", reply)
		}
		if !old {
			want = 5255000
		}
		if reply := command(t, m, "local", `{"drop":"oplog.rs"}`); codeOf(reply) != want {
			t.Errorf("drop of the oplog answers %s", reply)
		}
	})
}

// What serverStatus says of snapshot reads is what becomes of them.
func TestServerStatusTellsOfSnapshotReads(t *testing.T) {
	ofVersions(t, func(t *testing.T, m *Member) {
		command(t, m, "t", `{"insert":"c","documents":[{"_id":1}]}`)
		read := command(t, m, "t", `{"find":"c","readConcern":{"level":"snapshot"}}`)
		said, ok := command(t, m, "admin", `{"serverStatus":1}`).Lookup("storageEngine", "supportsSnapshotReadConcern").BooleanOK()
		if served := !read.Lookup("cursor", "atClusterTime").IsZero(); !ok || said != served {
			t.Errorf("it says %v, and a read is answered %s", said, read)
		}
	})
}

func TestServerStatusTellsWhetherDataOutlivesTheProcess(t *testing.T) {
	disk, err := OpenDisk(filepath.Join(t.TempDir(), "data"), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close(false) })
	for want, d := range map[bool]*Disk{true: disk, false: NewDisk()} {
		m := memberOn(t, slog.New(slog.DiscardHandler), "", d)
		if got := command(t, m, "admin", `{"serverStatus":1}`).Lookup("storageEngine", "persistent"); !got.Equal(bson.BooleanValue(want)) {
			t.Errorf("persistent is %v, want %v", got, want)
		}
	}
}

func textOf(reply bson.Raw) string { s, _ := reply.Lookup("errmsg").StringValueOK(); return s }
