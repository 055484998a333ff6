//go:build zookeeper

package zk

import (
	"sync"
	"testing"
	"time"
)

// leaders are those that have led, in order.
type leaders struct {
	mu    sync.Mutex
	sites []string
}

func (x *leaders) add(site string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.sites); n == 0 || x.sites[n-1] != site {
		x.sites = append(x.sites, site)
	}
}

func (x *leaders) len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.sites)
}

// TestLeadersTakeTurns: every voter leads in its turn, by name, and what all say meanwhile is executed once.
func TestLeadersTakeTurns(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.time.turn = 300 * time.Millisecond
	c.hooks.HandOver = func(reason string) {
		if reason != "turn" {
			t.Errorf("handed over for %s", reason)
		}
	}
	var led leaders
	c.hooks.Lead = func(site string) {
		if site != "" {
			led.add(site)
		}
	}
	all := c.open(t, "a")
	c.hooks.Lead = nil // what one member sees is enough
	all = append(all, c.open(t, "b", "cc")...)
	talk(t, all, func() { await(t, "all have led", func() bool { return led.len() > 5 }) })
	next, others := map[string]string{"a": "b", "b": "cc", "cc": "a"}, 0
	for i, site := range led.sites[1:] {
		if site != next[led.sites[i]] {
			others++
		}
	}
	if others > 1 { // who is late by an eighth of a session loses a turn
		t.Errorf("they led in the order %v", led.sites)
	}
}
