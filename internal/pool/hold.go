package pool

// Behind a load balancer a cursor, and a transaction, must go on where it began, and only its connection leads there: it
// keeps that, while nothing is under way on it too.

// Hold says who keeps the connection, for the statistics and for the error of those who wait for one. It is an operation
// unless somebody says otherwise, and again after each check-in.
func (c *Conn) Hold(h Holder) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.where == busy && h < holders {
		c.pool.book.hold(c, h)
	}
}

// Rest says that nothing is under way on a connection that is kept. A pool that is being closed does not wait for it, and
// closes its socket; it must come back all the same.
func (c *Conn) Rest() {
	p := c.pool
	p.mu.Lock()
	if c.where != busy {
		p.mu.Unlock()
		return
	}
	p.book.rest(c, true)
	over := p.book.status == closed
	p.noteEmpty()
	p.mu.Unlock()
	if over {
		c.Conn.Close()
	}
}

// Resume ends what Rest began.
func (c *Conn) Resume() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.where == busy {
		c.pool.book.rest(c, false)
	}
}

// resting are the kept connections on which nothing is under way.
func (b *book) atRest() (out []*Conn) {
	for _, c := range b.busy.all(nil) {
		if c.resting {
			out = append(out, c)
		}
	}
	return out
}
