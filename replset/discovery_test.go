package replset

import (
	"testing"

	"github.com/sextantdb/sextant/bson"
)

func TestOneMemberSetAnswersHelloAndPing(t *testing.T) {
	s := Run(t)
	c := dialRaw(t, s, 0, "app")
	r := c.must(t, "admin", bson.D{{Key: "hello", Value: 1}})
	if ok, _ := r.Lookup("isWritablePrimary").BooleanOK(); !ok {
		t.Errorf("the only member is not writable: %v", r)
	}
	c.must(t, "admin", bson.D{{Key: "ping", Value: 1}})
}
