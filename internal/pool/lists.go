package pool

import "time"

// ring is a set of connections that a connection enters and leaves without a search or an allocation.
type ring struct {
	head *Conn
	n    int
}

func (r *ring) push(c *Conn, where whereabouts) {
	c.where, c.prev, c.next = where, nil, r.head
	if r.head != nil {
		r.head.prev = c
	}
	r.head = c
	r.n++
}

func (r *ring) remove(c *Conn) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		r.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.where, c.prev, c.next = gone, nil, nil
	r.n--
}

// all appends the members to dst.
func (r *ring) all(dst []*Conn) []*Conn {
	for c := r.head; c != nil; c = c.next {
		dst = append(dst, c)
	}
	return dst
}

// last is the member that has been in it longest.
func (r *ring) last() *Conn {
	c := r.head
	for c != nil && c.next != nil {
		c = c.next
	}
	return c
}

// empty takes all members out.
func (r *ring) empty() []*Conn {
	out := r.all(nil)
	for _, c := range out {
		r.remove(c)
	}
	return out
}

// waiter is one caller who waits for a connection. The channel has room for the one delivery it ever gets, so that who
// delivers does not wait.
type waiter struct {
	got        chan delivery
	start      time.Time // of its check-out
	prev, next *waiter
	queued     bool
}

type delivery struct {
	conn *Conn
	err  error
}

// queue holds waiters, first come, first served; one who gives up leaves it at once.
type queue struct {
	head, tail *waiter
	n          int
}

func (q *queue) push(w *waiter) {
	w.prev, w.next, w.queued = q.tail, nil, true
	if q.tail != nil {
		q.tail.next = w
	} else {
		q.head = w
	}
	q.tail = w
	q.n++
}

func (q *queue) pop() *waiter {
	w := q.head
	if w != nil {
		q.remove(w)
	}
	return w
}

func (q *queue) remove(w *waiter) bool {
	if !w.queued {
		return false
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.tail = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	q.n--
	return true
}
