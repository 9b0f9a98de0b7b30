package sextant

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// crowd counts the open clients of this process by their seeds. One client has a monitor and a pool a member, so that a
// program which makes a client a request has thousands of connections before it knows.
type crowd struct {
	mu   sync.Mutex // guards open
	open map[string]int
}

var clients crowd

// manyClients is how many open clients of the same seeds are remarkable. It is told again when there are twice as many.
const manyClients = 10

// enter counts a client and returns how many there are now.
func (c *crowd) enter(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]int{}
	}
	c.open[key]++
	return c.open[key]
}

func (c *crowd) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[key]--; c.open[key] <= 0 {
		delete(c.open, key)
	}
}

// remarkable is ten, and every doubling of it.
func remarkable(n int) bool {
	for n > manyClients && n%2 == 0 {
		n /= 2
	}
	return n == manyClients
}

// crowdKey names the seeds, in whatever order they are given.
func (c *Config) crowdKey() string {
	seeds := c.seeds()
	slices.Sort(seeds)
	return strings.Join(seeds, ",")
}

// crowded tells of many clients.
func (l *logbook) crowded(n int, seeds string) {
	if l == nil || !remarkable(n) || !l.wants(context.Background(), logClient, slog.LevelWarn) {
		return
	}
	l.write(context.Background(), time.Now(), logClient, slog.LevelWarn, fmt.Sprintf("%d clients of this process are open to %s. "+
		"Each has its own connections and monitors; one is enough, for any number of goroutines. Close those that are not used any more.", n, seeds))
}
