package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

func checkCode(t *testing.T, err error, code int32) {
	t.Helper()
	var e *mongoerr.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error %v, want code %d", err, code)
	}
}

func applied(t *testing.T, update, doc string, pos int) (bson.Raw, bool, error) {
	t.Helper()
	u, err := ParseUpdate(bson.DocumentValue(js(t, update)), nil, testOptions)
	if err != nil {
		return nil, false, err
	}
	return u.Apply(js(t, doc), pos, false)
}

func TestUpdatesOfFields(t *testing.T) {
	for _, c := range []struct{ update, doc, want string }{
		{`{"$set":{"b":1,"a":2}}`, `{"_id":1}`, `{"_id":1,"a":2,"b":1}`},
		{`{"$set":{"a.b.c":1}}`, `{}`, `{"a":{"b":{"c":1}}}`},
		{`{"$set":{"a.2":1}}`, `{"a":[0]}`, `{"a":[0,null,1]}`},
		{`{"$set":{"first place.x":1}}`, `{}`, `{"first place":{"x":1}}`},
		{`{"$inc":{"n":1}}`, `{"n":2147483647}`, `{"n":{"$numberLong":"2147483648"}}`},
		{`{"$inc":{"n":{"$numberDecimal":"0.1"}}}`, `{"n":1}`, `{"n":{"$numberDecimal":"1.1"}}`},
		{`{"$mul":{"n":2}}`, `{}`, `{"n":0}`},
		{`{"$unset":{"a.0":""}}`, `{"a":[1,2]}`, `{"a":[null,2]}`},
		{`{"$rename":{"a":"b.c"}}`, `{"a":1,"z":2}`, `{"z":2,"b":{"c":1}}`},
		{`{"$push":{"a":{"$each":[3,1],"$sort":1,"$slice":-2}}}`, `{"a":[2]}`, `{"a":[2,3]}`},
		{`{"$addToSet":{"a":{"$each":[1,2.0,3]}}}`, `{"a":[1,2]}`, `{"a":[1,2,3]}`},
		{`{"$pull":{"a":{"x":{"$gt":1}}}}`, `{"a":[{"x":1},{"x":2},5]}`, `{"a":[{"x":1},5]}`},
		{`{"$pop":{"a":-1}}`, `{"a":[1,2]}`, `{"a":[2]}`},
		{`{"$bit":{"n":{"or":5}}}`, `{"n":2}`, `{"n":7}`},
		{`{"$set":{"a.$[].b":9}}`, `{"a":[{"b":1},{"c":2}]}`, `{"a":[{"b":9},{"c":2,"b":9}]}`},
		{`{"z":1}`, `{"_id":7,"a":1}`, `{"_id":7,"z":1}`},
	} {
		got, changed, err := applied(t, c.update, c.doc, -1)
		if err != nil || !changed {
			t.Errorf("%s on %s: changed %v, %v", c.update, c.doc, changed, err)
			continue
		}
		if !sameDoc(got, js(t, c.want)) {
			t.Errorf("%s on %s:\n got  %s\n want %s", c.update, c.doc, show([]bson.Raw{got}), c.want)
		}
	}
}

func TestPositionalUpdateChangesTheMatchedElement(t *testing.T) {
	got, _, err := applied(t, `{"$set":{"a.$":0}}`, `{"a":[1,2,3]}`, 1)
	if err != nil || !sameDoc(got, js(t, `{"a":[1,0,3]}`)) {
		t.Errorf("%s, %v", show([]bson.Raw{got}), err)
	}
	_, _, err = applied(t, `{"$set":{"a.$":0}}`, `{"a":[1,2,3]}`, -1)
	checkCode(t, err, mongoerr.CodeBadValue)
}

func TestUpdateThatChangesNothingSaysSo(t *testing.T) {
	for _, u := range []string{`{"$set":{"a":1}}`, `{"$unset":{"z":1}}`, `{"$max":{"a":0}}`, `{"$pull":{"l":9}}`, `{"a":1,"l":[1]}`} {
		if _, changed, err := applied(t, u, `{"_id":1,"a":1,"l":[1]}`, -1); changed || err != nil {
			t.Errorf("%s: changed %v, %v", u, changed, err)
		}
	}
}

func TestUpdatesAreRefusedWithTheServersCodes(t *testing.T) {
	for _, c := range []struct {
		update string
		code   int32
	}{
		{`{"$set":{"_id":2}}`, mongoerr.CodeImmutableField},
		{`{"_id":2}`, mongoerr.CodeImmutableField},
		{`{"$set":{"a":1,"a.b":2}}`, mongoerr.CodeConflictingUpdateOperators},
		{`{"$set":{"a":1},"$inc":{"a":1}}`, mongoerr.CodeConflictingUpdateOperators},
		{`{"$set":{"a.b":1}}`, mongoerr.CodePathNotViable},
		{`{"$inc":{"s":1}}`, mongoerr.CodeTypeMismatch},
		{`{"$push":{"a":1}}`, mongoerr.CodeBadValue},
		{`{"$set":{"":1}}`, mongoerr.CodeEmptyFieldName},
		{`{"$set":{"x":{"$y":1}}}`, mongoerr.CodeDollarPrefixedFieldName},
		{`{"$foo":{"a":1}}`, mongoerr.CodeFailedToParse},
		{`{"$set":{"l.1500002":1}}`, 34},
	} {
		_, _, err := applied(t, c.update, `{"_id":1,"a":1,"s":"x","l":[]}`, -1)
		if err == nil {
			t.Errorf("%s: no error", c.update)
		}
		checkCode(t, err, c.code)
	}
}

func TestUpdateCannotNestTooDeep(t *testing.T) {
	_, _, err := applied(t, `{"$set":{"a`+strings.Repeat(".a", 250)+`":1}}`, `{"_id":1}`, -1)
	checkCode(t, err, mongoerr.CodeOverflow)
}

func TestUpsertBuildsFromEqualities(t *testing.T) {
	for _, c := range []struct{ filter, update, want string }{
		{`{"b":1,"a.x":2,"c":{"$gt":3}}`, `{"$set":{"d":4}}`, `{"_id":{"$oid":"010203000000000000000000"},"a":{"x":2},"b":1,"d":4}`},
		{`{"_id":5,"a":1}`, `{"z":1}`, `{"_id":5,"z":1}`},
		{`{"$and":[{"a":1},{"b":{"$eq":2}}]}`, `{"$setOnInsert":{"c":3}}`, `{"_id":{"$oid":"010203000000000000000000"},"a":1,"b":2,"c":3}`},
	} {
		f, err := ParseFilter(js(t, c.filter), testOptions)
		if err != nil {
			t.Fatal(err)
		}
		u, err := ParseUpdate(bson.DocumentValue(js(t, c.update)), nil, testOptions)
		if err != nil {
			t.Fatal(err)
		}
		got, err := u.Upsert(f)
		if err != nil || !sameDoc(got, js(t, c.want)) {
			t.Errorf("%s with %s: %s, %v; want %s", c.filter, c.update, show([]bson.Raw{got}), err, c.want)
		}
	}
}

func TestUpdateByPipelineKeepsTheID(t *testing.T) {
	u, err := ParseUpdate(bson.RawValue{Type: bson.TypeArray, Value: js(t, `[{"$set":{"n":{"$add":["$n",1]}}},{"$project":{"_id":0,"n":1}}]`)}, nil, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	got, changed, err := u.Apply(js(t, `{"_id":1,"n":1,"x":2}`), -1, false)
	if err != nil || !changed || !sameDoc(got, js(t, `{"_id":1,"n":2}`)) {
		t.Errorf("%s changed %v, %v", show([]bson.Raw{got}), changed, err)
	}
}
