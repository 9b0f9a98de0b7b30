package event

import (
	"errors"
	"testing"
)

func TestMembersHaveTheStatesOfOld(t *testing.T) {
	for _, c := range []struct {
		m      Member
		health int
		state  int
		name   string
	}{
		{Member{Kind: RSPrimary}, 1, 1, "PRIMARY"},
		{Member{Kind: RSSecondary}, 1, 2, "SECONDARY"},
		{Member{Kind: RSOther}, 1, 3, "RECOVERING"},
		{Member{Kind: RSOther, Hidden: true}, 1, 2, "SECONDARY"},
		{Member{Kind: RSArbiter}, 1, 7, "ARBITER"},
		{Member{Kind: RSGhost}, 1, 0, "STARTUP"},
		{Member{Kind: Unknown}, 0, 6, "UNKNOWN"},
		{Member{Kind: Unknown, LastError: errors.New("refused")}, 0, 8, "DOWN"},
		{Member{Kind: Standalone}, 1, 0, ""},
	} {
		if c.m.Health() != c.health || c.m.State() != c.state || c.m.StateStr() != c.name {
			t.Errorf("%v: %d, %d, %q", c.m.Kind, c.m.Health(), c.m.State(), c.m.StateStr())
		}
	}
}
