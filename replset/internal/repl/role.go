package repl

// Role is what a member is, with the server's numbers of states.
type Role int32

// The roles. A winner that still catches up is RolePrimary with View.Writable false.
const (
	RoleStartup   Role = 0 // has no configuration yet
	RolePrimary   Role = 1
	RoleSecondary Role = 2
	RoleRecover   Role = 3 // has data, and may not be read: maintenance, or too stale
	RoleStartup2  Role = 5 // has no data yet
	RoleUnknown   Role = 6
	RoleArbiter   Role = 7
	RoleDown      Role = 8
	RoleRollback  Role = 9
	RoleRemoved   Role = 10 // the configuration does not have it any more
)

// String is the server's name of the state.
func (r Role) String() string {
	switch r {
	case RoleStartup:
		return "STARTUP"
	case RolePrimary:
		return "PRIMARY"
	case RoleSecondary:
		return "SECONDARY"
	case RoleRecover:
		return "RECOVERING"
	case RoleStartup2:
		return "STARTUP2"
	case RoleArbiter:
		return "ARBITER"
	case RoleDown:
		return "(not reachable/healthy)"
	case RoleRollback:
		return "ROLLBACK"
	case RoleRemoved:
		return "REMOVED"
	}
	return "UNKNOWN"
}

// Member reports whether the state is that of a member of the set.
func (r Role) Member() bool { return r != RoleStartup && r != RoleRemoved }

// takeState takes the events that tell what this member does with its own data.
func (n *Node) takeState(ev Event) {
	switch ev := ev.(type) {
	case RollingBack:
		n.rolling, n.ballot = true, nil // the votes were asked for a log that this member is about to shorten
	case Copying:
		n.copying, n.stale, n.ballot = true, false, nil
	case Rolled:
		n.applied, n.durable = ev.To, ev.Durable
		if n.applied.Less(n.durable) {
			n.durable = n.applied
		}
		n.rolling, n.copying, n.stale = false, false, false
	case Stale:
		n.stale = ev.On
	case Maintenance:
		n.onMaintenance(ev)
	case SyncFrom:
		n.wanted = ev.Source
	}
}

func (n *Node) onMaintenance(ev Maintenance) {
	switch {
	case n.role == RolePrimary:
	case ev.On:
		n.maintenance++
	case n.maintenance > 0:
		n.maintenance--
	}
}

// settle makes the role what everything else implies.
func (n *Node) settle() {
	me := n.me()
	switch {
	case me == nil && n.cfg.Version == 0:
		n.role = RoleStartup
	case me == nil:
		n.role = RoleRemoved
	case me.Arbiter:
		n.role = RoleArbiter
	case n.role == RolePrimary:
		// until it loses an election, its majority or its place
	case n.copying || n.applied.IsZero():
		n.role = RoleStartup2
	case n.rolling:
		n.role = RoleRollback
	case n.maintenance > 0 || n.stale:
		n.role = RoleRecover
	default:
		n.role = RoleSecondary
	}
}
