package replset

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/conformance/corpus"
)

// recordedHellos are the answers to isMaster that a real set of version 4.0 gave, by their id.
func recordedHellos(t *testing.T) map[string]bson.Raw {
	t.Helper()
	f, err := os.Open(corpus.NeedVectors(t, "ismaster.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]bson.Raw{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		v, err := bson.ParseExtJSON(s.Bytes(), false)
		if err != nil {
			t.Fatal(err)
		}
		vec, _ := v.DocumentOK()
		id, _ := vec.Lookup("id").StringValueOK()
		out[id], _ = vec.Lookup("reply").DocumentOK()
	}
	return out
}

// helloDifferences lists where got is not as want, field by field in order. A want of {$$type: name} demands the type alone.
func helloDifferences(path string, want, got bson.Raw) (out []string) {
	wk, gk := slices.Collect(keysOf(want)), slices.Collect(keysOf(got))
	if path == ".lastWrite" && !slices.Contains(wk, "majorityOpTime") { // a young primary, asked before it had a majority snapshot
		gk = slices.DeleteFunc(gk, func(key string) bool { return strings.HasPrefix(key, "majority") })
	}
	if strings.HasSuffix(path, ".tags") { // a Go map: without an order
		slices.Sort(wk)
		slices.Sort(gk)
	}
	if !slices.Equal(wk, gk) {
		return []string{fmt.Sprintf("%s: fields %v, recorded %v", path, gk, wk)}
	}
	for _, key := range wk {
		out = append(out, helloDifference(path+"."+key, want.Lookup(key), got.Lookup(key))...)
	}
	return out
}

func keysOf(d bson.Raw) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range d.All() {
			if !yield(key) {
				return
			}
		}
	}
}

func helloDifference(path string, want, got bson.RawValue) []string {
	if doc, ok := want.DocumentOK(); ok {
		if name, ok := doc.Lookup("$$type").StringValueOK(); ok {
			types := map[string]bson.Type{"date": bson.TypeDateTime, "timestamp": bson.TypeTimestamp, "objectId": bson.TypeObjectID,
				"long": bson.TypeInt64, "int": bson.TypeInt32, "binData": bson.TypeBinary}
			if want, known := types[name]; !known || got.Type != want {
				return []string{fmt.Sprintf("%s: a %s, recorded %s", path, got.Type, name)}
			}
			return nil
		}
		other, ok := got.DocumentOK()
		if !ok {
			return []string{fmt.Sprintf("%s: a %s, recorded a document", path, got.Type)}
		}
		return helloDifferences(path, doc, other)
	}
	if elections := strings.HasSuffix(path, ".t") || path == ".electionId"; elections && want.Type == got.Type {
		return nil // how many there were is chance
	}
	if want.Type != got.Type || want.String() != got.String() {
		return []string{fmt.Sprintf("%s: %s, recorded %s", path, got, want)}
	}
	return nil
}

// isMaster asks member i as old clients do, over a connection of its own.
func isMaster(t *testing.T, s *Set, i int) bson.Raw {
	t.Helper()
	c := dialRaw(t, s, i, "")
	defer c.nc.Close()
	return c.must(t, "admin", bson.D{{Key: "isMaster", Value: 1}})
}

// TestIsMasterIsAsRecordedFieldByField leads a set of version 4.0 through what the recorded one went through.
func TestIsMasterIsAsRecordedFieldByField(t *testing.T) {
	recorded := recordedHellos(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := Start(t.Context(), Options{Network: NewMemoryNetwork(), SetName: "vrs", Version: "4.0", Config: []MemberOptions{
			{Name: "m1", Port: 27017, Priority: new(2.0), Tags: map[string]string{"use": "prod", "dc": "east"}},
			{Name: "m2", Port: 27017, Tags: map[string]string{"dc": "west"}},
			{Name: "m3", Port: 27017, Priority: new(0.0), Hidden: true},
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		compared := map[string]bool{}
		same := func(member int, ids ...string) {
			t.Helper()
			for _, id := range ids {
				compared[id] = true
				for _, d := range helloDifferences("", recorded["ismaster-"+id], isMaster(t, s, member-1)) {
					t.Errorf("%s: %s", id, d)
				}
			}
		}
		step := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		step(nil)
		same(1, "012", "013", "017")
		same(2, "010", "014", "025")
		same(3, "011", "015")
		step(s.Kill(1))
		step(s.Kill(2)) // m1 steps down, and there is no primary
		same(1, "018")
		step(s.Restart(1))
		step(s.Restart(2))
		same(1, "023", "032")
		step(s.Kill(0))
		same(2, "020", "027")
		same(3, "022", "028")
		step(s.Restart(0))
		time.Sleep(30 * time.Second) // its priority makes it primary again
		same(1, "031")
		same(2, "024", "033", "035")
		step(s.Reconfigure(t.Context(), 2, func(o *MemberOptions) { o.Hidden, o.Priority = false, new(0.0) }))
		same(1, "036")
		same(2, "037")
		_, err = s.AddMember(t.Context(), MemberOptions{Name: "m4", Port: 27017, Arbiter: true})
		step(err)
		same(1, "042")
		same(4, "040")
		step(s.RemoveMember(t.Context(), 2))
		same(1, "043")
		same(3, "044")
		t.Logf("compared: %v", slices.Sorted(maps.Keys(compared)))
	})
}
