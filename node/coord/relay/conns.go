package relay

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the accepted connections. Whoever can reach the peer port can open
// connections and say nothing, so nobody is refused because others are silent: beyond
// a bound the one that has said nothing for longest gives way. A connection is fresh
// until its Preamble and a byte behind it have come, so greeting is not enough to take
// a place among those that are used.
const (
	maxFresh     = 2048 // of all hosts
	maxHostFresh = 1024 // of one host
	maxGreeted   = 4096
	// leastPatience is how long a fresh connection has in any case. A member's first
	// bytes come at once; however fast strangers connect, they are read before the
	// connection gives way. Those that come meanwhile wait in the kernel.
	leastPatience = 250 * time.Millisecond
)

// bounds of a kind's connections.
type bounds struct {
	site  int  // of one site
	total int  // of all sites
	stays bool // none gives way whose question is here (QuestionReceived): the newcomer is refused
	// listens: the dialer sends nothing behind its Preamble.
	listens bool
}

// boundsOf is generous to members: a leader uses up to ten connections of kind raft
// to each of them, a member one of each other kind, and sometimes the one before.
func boundsOf(k Kind) bounds {
	switch k {
	case KindRaft:
		return bounds{site: 16, total: maxGreeted}
	case KindJoin:
		return bounds{site: 16, total: 256, stays: true}
	case KindEnroll:
		return bounds{site: 4, total: 64, stays: true}
	case KindHTTP: // one for each request of the site's users that waits or follows an output
		return bounds{site: 512, total: 2048, stays: true}
	case KindFeed:
		return bounds{site: 2, total: 512, listens: true}
	case KindFiles: // four, and those that a cut has left; each that is served holds half a MiB (package transfer)
		return bounds{site: 8, total: 512}
	case KindLogs, KindProgress: // one, and those that a cut has left
		return bounds{site: 2, total: 512}
	case KindForward, KindCompare, KindKeys:
	}
	return bounds{site: 4, total: maxGreeted}
}

// accepted is one accepted connection.
type accepted struct {
	conn  net.Conn
	host  string
	began uint64 // Invariant: greater than those accepted before.
	at    time.Time
	// kind and site are its Preamble's, 0 and "" before that.
	kind  Kind
	site  string
	spoke atomic.Int64 // UnixNano of the last bytes, 0 while it is fresh
	asked atomic.Bool  // its question has come whole
}

// yieldsBefore reports whether a gives way sooner than b.
func (a *accepted) yieldsBefore(b *accepted) bool {
	x, y := a.spoke.Load(), b.spoke.Load()
	if x != y {
		return x < y
	}
	return a.began < b.began
}

// group is the connections of a kind, or those of a site among them.
type group struct {
	kind Kind
	site string // "" = all
}

// connections is the table of accepted connections.
type connections struct {
	mu     sync.Mutex
	next   uint64
	all    map[*accepted]struct{}
	fresh  map[*accepted]struct{}
	counts map[group]int // of the others; Invariant: no zeros.
	closed bool

	maxFresh, maxHostFresh int
}

func newConnections() *connections {
	t := &connections{
		all: map[*accepted]struct{}{}, fresh: map[*accepted]struct{}{}, counts: map[group]int{},
		maxFresh: maxFresh, maxHostFresh: maxHostFresh,
	}
	if mutated("no-silent-eviction") {
		t.maxFresh, t.maxHostFresh = 64, 64
	}
	return t
}

// wait returns how long one more connection of a host must wait for its place.
func (t *connections) wait(conn net.Conn) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if victim := t.crowding(hostOf(conn)); victim != nil && !t.closed {
		return leastPatience - time.Since(victim.at)
	}
	return 0
}

// add takes a new connection in. victim is the one that gives way to it; a nil a says
// that there is no room.
func (t *connections) add(conn net.Conn) (a, victim *accepted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil
	}
	a = &accepted{conn: conn, host: hostOf(conn), at: time.Now()}
	if victim = t.crowding(a.host); victim != nil {
		if mutated("no-silent-eviction") {
			return nil, nil
		}
		t.drop(victim)
	}
	t.next++
	a.began = t.next
	t.all[a], t.fresh[a] = struct{}{}, struct{}{}
	return a, victim
}

func hostOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

// crowding returns the fresh connection that gives way to one more of a host, nil if
// there is room: the host's own, or else one of the host that has most.
//
// REQUIRES: t.mu held.
func (t *connections) crowding(host string) *accepted {
	if len(t.fresh) < t.maxHostFresh {
		return nil
	}
	hosts := map[string]int{}
	for a := range t.fresh {
		hosts[a.host]++
	}
	if hosts[host] < t.maxHostFresh {
		if len(t.fresh) < t.maxFresh {
			return nil
		}
		for h, n := range hosts {
			if n > hosts[host] || n == hosts[host] && h < host {
				host = h
			}
		}
	}
	return t.firstToYield(t.fresh, func(a *accepted) bool { return a.host == host })
}

// firstToYield returns the one of some that gives way, nil for none.
func (t *connections) firstToYield(of map[*accepted]struct{}, among func(*accepted) bool) (out *accepted) {
	for a := range of {
		if among(a) && (out == nil || a.yieldsBefore(out)) {
			out = a
		}
	}
	return out
}

// greet notes that a fresh connection has greeted and begun to speak. victim is the connection that gives way to it; ok
// says whether there is room.
func (t *connections) greet(a *accepted, p Preamble) (victim *accepted, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.all[a]; !known {
		return nil, false // it gave way meanwhile
	}
	delete(t.fresh, a)
	limits := boundsOf(p.Kind)
	var among func(*accepted) bool
	switch {
	case t.counts[group{p.Kind, p.Site}] >= limits.site:
		among = func(o *accepted) bool { return o.kind == p.Kind && o.site == p.Site }
	case t.counts[group{p.Kind, ""}] >= limits.total:
		among = func(o *accepted) bool { return o.kind == p.Kind }
	case len(t.all)-len(t.fresh) > maxGreeted:
		among = func(o *accepted) bool { return o.kind != 0 }
	}
	if among != nil {
		victim = t.firstToYield(t.all, func(o *accepted) bool {
			return among(o) && !(boundsOf(o.kind).stays && o.asked.Load())
		})
		if victim == nil || mutated("no-silent-eviction") {
			return nil, false
		}
		t.drop(victim)
	}
	a.kind, a.site = p.Kind, p.Site
	a.spoke.Store(time.Now().UnixNano())
	t.count(a, 1)
	return victim, true
}

// REQUIRES: t.mu held.
func (t *connections) count(a *accepted, n int) {
	of := []group{{a.kind, ""}, {a.kind, a.site}}
	if a.site == "" {
		of = of[:1] // a name that no site has
	}
	for _, g := range of {
		if t.counts[g] += n; t.counts[g] == 0 {
			delete(t.counts, g)
		}
	}
}

// drop takes a connection out.
//
// REQUIRES: t.mu held.
func (t *connections) drop(a *accepted) {
	if _, there := t.all[a]; there && a.kind != 0 {
		t.count(a, -1)
	}
	delete(t.all, a)
	delete(t.fresh, a)
}

func (t *connections) remove(a *accepted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(a)
}

// close returns all of them, and takes no more.
func (t *connections) close() (all []net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for a := range t.all {
		all = append(all, a.conn)
	}
	clear(t.all)
	clear(t.fresh)
	clear(t.counts)
	return all
}

// acceptedConn is an accepted connection behind its Preamble.
type acceptedConn struct {
	net.Conn
	of    *accepted
	table *connections
	head  []byte // read already
}

// QuestionReceived says that the question of an accepted connection has come whole. Until then a
// connection of one question gives way like any other.
func QuestionReceived(conn net.Conn) {
	if a, ok := conn.(*acceptedConn); ok {
		a.of.asked.Store(true)
	}
}

// await reads the first byte behind the Preamble.
func (g *acceptedConn) await() error {
	b := make([]byte, 1)
	if _, err := io.ReadFull(g.Conn, b); err != nil {
		return fmt.Errorf("read what follows the Preamble: %w", err)
	}
	g.head = b
	return nil
}

// Read implements net.Conn.
func (g *acceptedConn) Read(b []byte) (int, error) {
	if len(g.head) > 0 {
		n := copy(b, g.head)
		g.head = g.head[n:]
		return n, nil
	}
	n, err := g.Conn.Read(b)
	if n > 0 {
		g.of.spoke.Store(time.Now().UnixNano())
	}
	return n, err
}

// Close implements net.Conn.
func (g *acceptedConn) Close() error {
	g.table.remove(g.of)
	return g.Conn.Close()
}
