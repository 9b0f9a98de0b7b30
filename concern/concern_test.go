package concern

import (
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// command wraps appended elements into a document.
func command(appendTo func([]byte) []byte) bson.Raw {
	dst, start := bson.BeginDocument(nil)
	return bson.EndDocument(appendTo(dst), start)
}

func TestReadConcernIsSentOnlyWithALevel(t *testing.T) {
	d := command(ReadMajority().AppendElement)
	if level, _ := d.Lookup("readConcern", "level").StringValueOK(); level != "majority" {
		t.Errorf("got %v", d)
	}
	var none *Read
	if d := command(none.AppendElement); d.Len() != 0 {
		t.Errorf("nil sent %v", d)
	}
	if d := command((&Read{}).AppendElement); d.Len() != 0 {
		t.Errorf("default sent %v", d)
	}
}

func TestWriteConcernSendsWhatIsSet(t *testing.T) {
	w := &Write{W: 2, Journal: new(true), WTimeout: 1500 * time.Millisecond}
	d := command(w.AppendElement)
	n, _ := d.Lookup("writeConcern", "w").Int32OK()
	j, _ := d.Lookup("writeConcern", "j").BooleanOK()
	ms, _ := d.Lookup("writeConcern", "wtimeout").AsInt64OK()
	if n != 2 || !j || ms != 1500 {
		t.Errorf("got %v", d)
	}
	if s, _ := command(Majority().AppendElement).Lookup("writeConcern", "w").StringValueOK(); s != "majority" {
		t.Errorf("got %q", s)
	}
	if got := w.String(); got != "w 2, journal, wtimeout 1.5s" {
		t.Error(got)
	}
}

func TestOnlyWZeroIsUnacknowledged(t *testing.T) {
	var none *Write
	if !none.Acknowledged() || !(&Write{}).Acknowledged() || !Majority().Acknowledged() || !W(1).Acknowledged() {
		t.Error("an acknowledged concern is called unacknowledged")
	}
	if Unacknowledged().Acknowledged() {
		t.Error("w 0 is called acknowledged")
	}
}

func TestValidateRefusesSenselessConcerns(t *testing.T) {
	for name, w := range map[string]*Write{
		"negative":       {W: -1},
		"wrong type":     {W: 1.5},
		"empty string":   {W: ""},
		"journal and 0":  {W: 0, Journal: new(true)},
		"negative limit": {W: 1, WTimeout: -1},
	} {
		if err := w.Validate(); !mongoerr.IsConfig(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, w := range []*Write{nil, {}, W(3), W("dc"), Unacknowledged()} {
		if err := w.Validate(); err != nil {
			t.Errorf("%v: %v", w, err)
		}
	}
}
