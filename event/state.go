package event

// Health is the member's health as getHosts and replSetGetStatus of old told it: 1 for a member that answers, 0 for one
// that does not, or has not yet.
func (m Member) Health() int {
	if m.Kind.Known() {
		return 1
	}
	return 0
}

// State is the member's state as a number of replSetGetStatus, as far as a hello tells it: 0 STARTUP, 1 PRIMARY, 2
// SECONDARY, 3 RECOVERING (which may also be STARTUP2 or ROLLBACK), 6 UNKNOWN (not asked yet), 7 ARBITER, 8 DOWN. A server
// that is of no replica set has 0.
func (m Member) State() int {
	switch m.Kind {
	case RSPrimary:
		return 1
	case RSSecondary:
		return 2
	case RSArbiter:
		return 7
	case RSOther:
		if m.Hidden {
			return 2
		}
		return 3
	case Unknown, PossiblePrimary:
		if m.LastError != nil {
			return 8
		}
		return 6
	}
	return 0
}

var stateNames = [...]string{0: "STARTUP", 1: "PRIMARY", 2: "SECONDARY", 3: "RECOVERING", 6: "UNKNOWN", 7: "ARBITER", 8: "DOWN"}

// StateStr is the name of State, empty for a server that is of no replica set.
func (m Member) StateStr() string {
	switch m.Kind {
	case Standalone, Mongos, LoadBalancer:
		return ""
	}
	return stateNames[m.State()]
}
