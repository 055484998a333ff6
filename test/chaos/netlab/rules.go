package netlab

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// Any stands for every host or every port in a [Rule].
const Any = 0

// Rule drops packets silently. Hosts count from 1. Port matches at either end,
// so that both directions of a connection to it can be named; ToPort matches
// where the packet goes, FromPort where it comes from: requests or answers of
// connections alone. Over matches packets of more bytes, as a path does that
// swallows large ones.
type Rule struct {
	From, To               int
	Port, FromPort, ToPort uint16
	Over                   int
}

// String says what is cut.
func (r Rule) String() string {
	end := func(host int) string {
		if host == Any {
			return "*"
		}
		return fmt.Sprint(host)
	}
	s := end(r.From) + "→" + end(r.To)
	if port := max(r.Port, r.FromPort, r.ToPort); port != Any {
		s += fmt.Sprintf(":%d", port)
	}
	if r.Over > 0 {
		s += fmt.Sprintf(" over %d bytes", r.Over)
	}
	return s
}

// Isolate cuts a host off in both directions, on one port or Any.
func Isolate(host int, port uint16) []Rule {
	return []Rule{{From: host, Port: port}, {To: host, Port: port}}
}

// packet is what the rules look at.
type packet struct {
	from, to int
	size     int    // in bytes, all of it
	src, dst uint16 // 0 for later fragments and protocols without ports
}

const (
	protoTCP = 6
	protoUDP = 17
)

// parse reads an IPv4 packet between two hosts of the lab; ok is false for
// anything else (IPv6 chatter, broadcast, garbage).
func parse(b []byte, hosts int) (p packet, ok bool) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return p, false
	}
	p.size = len(b)
	p.from, p.to = hostOf(b[12:16], hosts), hostOf(b[16:20], hosts)
	if p.from == 0 || p.to == 0 {
		return p, false
	}
	header := int(b[0]&15) * 4
	first := binary.BigEndian.Uint16(b[6:8])&0x1fff == 0
	if first && (b[9] == protoTCP || b[9] == protoUDP) && header >= 20 && len(b) >= header+4 {
		p.src, p.dst = binary.BigEndian.Uint16(b[header:]), binary.BigEndian.Uint16(b[header+2:])
	}
	return p, true
}

func hostOf(ip []byte, hosts int) int {
	if ip[0] != subnet[0] || ip[1] != subnet[1] || ip[2] != subnet[2] || int(ip[3]) > hosts {
		return 0
	}
	return int(ip[3])
}

func (r Rule) drops(p packet) bool {
	return (r.From == Any || r.From == p.from) && (r.To == Any || r.To == p.to) &&
		(r.Port == Any || r.Port == p.src || r.Port == p.dst) &&
		(r.FromPort == Any || r.FromPort == p.src) &&
		(r.ToPort == Any || r.ToPort == p.dst) &&
		p.size > r.Over
}

// Cuts are the rules in force; safe for concurrent use.
type Cuts struct {
	mu    sync.RWMutex
	next  int
	rules map[int][]Rule
}

// Cut puts rules in force and returns what takes exactly them back.
func (c *Cuts) Cut(rules ...Rule) (heal func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rules == nil {
		c.rules = map[int][]Rule{}
	}
	id := c.next
	c.next++
	c.rules[id] = slices.Clone(rules)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.rules, id)
	}
}

// HealAll takes all rules back.
func (c *Cuts) HealAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.rules)
}

func (c *Cuts) drops(p packet) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, rules := range c.rules {
		for _, r := range rules {
			if r.drops(p) {
				return true
			}
		}
	}
	return false
}
