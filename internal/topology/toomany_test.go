package topology

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sextantdb/sextant/bson"
)

// Each member that is believed costs monitors and a pool.
func TestHelloThatNamesTooManyMembersIsRefused(t *testing.T) {
	named := func(n int) bson.Raw {
		var hosts, passives bson.A
		for i := range n {
			if i%2 == 0 {
				hosts = append(hosts, fmt.Sprintf("h%d:1", i))
			} else {
				passives = append(passives, fmt.Sprintf("h%d:1", i))
			}
		}
		b, err := bson.Marshal(bson.D{{Key: "setName", Value: "rs0"}, {Key: "secondary", Value: true}, {Key: "maxWireVersion", Value: 21},
			{Key: "hosts", Value: hosts}, {Key: "passives", Value: passives}, {Key: "ok", Value: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if _, err := ParseHello("a:1", named(mostMembers), time.Millisecond, epoch); err != nil {
		t.Error(err)
	}
	if _, err := ParseHello("a:1", named(mostMembers+1), time.Millisecond, epoch); err == nil || !strings.Contains(err.Error(), "501 members") {
		t.Errorf("%v", err)
	}
}
