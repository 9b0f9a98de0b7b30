package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/sextantdb/sextant"
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/concern"
)

// concernTest is a case of read-write-concern: of a document if there is no URI. Only one of the concerns is there.
type concernTest struct {
	Description          string
	URI                  string
	Valid                bool
	Warning              *bool
	ReadConcern          *struct{ Level string }
	ReadConcernDocument  map[string]any
	WriteConcern         *writeConcern
	WriteConcernDocument map[string]any
	IsServerDefault      *bool
	IsAcknowledged       *bool
}

type writeConcern struct {
	W          any
	WTimeoutMS *int
	Journal    *bool
}

func loadConcerns(dir string) ([]Case, error) {
	return load(dir, "", func(name string, file *struct{ Tests []concernTest }) (cases []Case) {
		if strings.HasPrefix(name, "operation/") { // of the unified format
			return nil
		}
		for _, test := range file.Tests {
			cases = append(cases, Case{Name: name + "/" + test.Description, Run: test.run})
		}
		return cases
	})
}

// flipConcerns makes every case of a file expect the opposite validity.
func flipConcerns(name string, file map[string]any) []string {
	if strings.HasPrefix(name, "operation/") {
		return nil
	}
	var cases []string
	for _, test := range file["tests"].([]any) {
		test := test.(map[string]any)
		test["valid"] = test["valid"] != true
		cases = append(cases, name+"/"+test["description"].(string))
	}
	return cases
}

func (c concernTest) run() error {
	if c.URI != "" {
		return c.ofURI()
	}
	want, element := c.WriteConcernDocument, "writeConcern"
	var valid error
	var isDefault, acknowledged bool
	var dst []byte
	dst, start := bson.BeginDocument(nil)
	if c.ReadConcern != nil {
		r := &concern.Read{Level: c.ReadConcern.Level}
		want, element = c.ReadConcernDocument, "readConcern"
		isDefault, dst = r.IsDefault(), r.AppendElement(dst)
	} else {
		w := c.WriteConcern.made()
		valid, isDefault, acknowledged = w.Validate(), w.IsDefault(), w.Acknowledged()
		if valid == nil {
			dst = w.AppendElement(dst)
		}
	}
	if !c.Valid || valid != nil {
		return expectError(!c.Valid, valid)
	}
	got := map[string]any{}
	if doc, sent := bson.Raw(bson.EndDocument(dst, start)).Lookup(element).DocumentOK(); sent {
		if err := json.Unmarshal([]byte(doc.String()), &got); err != nil {
			return err
		}
	}
	var errs []error
	if !reflect.DeepEqual(got, want) {
		errs = append(errs, fmt.Errorf("sent is %v, wanted %v", got, want))
	}
	if c.IsServerDefault != nil && *c.IsServerDefault != isDefault {
		errs = append(errs, fmt.Errorf("server default: %t", isDefault))
	}
	if c.IsAcknowledged != nil && *c.IsAcknowledged != acknowledged {
		errs = append(errs, fmt.Errorf("acknowledged: %t", acknowledged))
	}
	return errors.Join(errs...)
}

func (w writeConcern) made() *concern.Write {
	out := &concern.Write{W: w.W, Journal: w.Journal, WTimeout: time.Duration(deref(w.WTimeoutMS, 0)) * time.Millisecond}
	if n, isNumber := w.W.(float64); isNumber {
		out.W = int(n)
	}
	return out
}

// ofURI makes a client of the URI, without I/O. A value that cannot be is left out with a warning, as the specification
// of connection strings and the suite uri-options want it; this suite calls that invalid, as does the mode Strict.
func (c concernTest) ofURI() error {
	cfg, err := sextant.ParseURI(c.URI)
	if err != nil {
		return expectError(!c.Valid, err)
	}
	cfg.Strict = true
	cl, err := sextant.ConnectConfig(context.Background(), cfg)
	if err == nil {
		err = cl.Close(context.Background())
	}
	if !c.Valid || err != nil {
		return expectError(!c.Valid, err)
	}
	var errs []error
	if c.Warning != nil && *c.Warning != (len(cfg.Warnings) > 0) {
		errs = append(errs, fmt.Errorf("warnings %v", cfg.Warnings))
	}
	if r := c.ReadConcern; r != nil && r.Level != deref(cfg.ReadConcern, concern.Read{}).Level {
		errs = append(errs, fmt.Errorf("read concern %v, wanted %q", cfg.ReadConcern, r.Level))
	}
	if c.WriteConcern != nil {
		if got, want := deref(cfg.WriteConcern, concern.Write{}), *c.WriteConcern.made(); !reflect.DeepEqual(got, want) {
			errs = append(errs, fmt.Errorf("write concern %v, wanted %v", &got, &want))
		}
	}
	return errors.Join(errs...)
}
