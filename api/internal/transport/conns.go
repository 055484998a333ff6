package transport

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/rates"
)

// silentFor is how long, in a crowd, a connection may be open without having
// sent a request's header; else it is Config.HeaderTimeout.
const silentFor = time.Second

// conns knows the open connections. When they become many, those that do nothing
// make room for new ones: first those that wait for a next request, the longest
// idle one first, then those that never sent one. A client may keep the former
// for two minutes and the latter for ten seconds, and thousands of either must
// not keep a probe out.
type conns struct {
	most int // more than these are a crowd

	mu     sync.Mutex
	open   int               // guarded by mu
	idle   waiting           // guarded by mu
	silent waiting           // guarded by mu
	closed map[net.Conn]bool // told to close, and not closed yet; guarded by mu
	sweeps bool              // a sweep is due; guarded by mu
	from   origins           // guarded by mu
}

func newConns(most int) *conns {
	return &conns{
		from: origins{most: most, of: map[rates.Sender]int{}},
		most: most, idle: waiting{at: map[net.Conn]*list.Element{}}, silent: waiting{at: map[net.Conn]*list.Element{}},
		closed: map[net.Conn]bool{},
	}
}

// waiting are connections in the order in which they began to wait.
type waiting struct {
	order list.List // of waiter
	at    map[net.Conn]*list.Element
}

type waiter struct {
	conn  net.Conn
	since time.Time
}

func (w *waiting) add(conn net.Conn, now time.Time) { w.at[conn] = w.order.PushBack(waiter{conn, now}) }

func (w *waiting) remove(conn net.Conn) {
	if e := w.at[conn]; e != nil {
		w.order.Remove(e)
		delete(w.at, conn)
	}
}

// first returns the one that has waited longest.
func (w *waiting) first() (waiter, bool) {
	if e := w.order.Front(); e != nil {
		return e.Value.(waiter), true
	}
	return waiter{}, false
}

// changed is the server's ConnState.
func (c *conns) changed(conn net.Conn, state http.ConnState) {
	for _, out := range c.trackState(conn, state) {
		_ = out.Close() // its client asks again on another one, as after a timeout
	}
}

// trackState keeps account, and returns the connections to close.
func (c *conns) trackState(conn net.Conn, state http.ConnState) []net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle.remove(conn)
	c.silent.remove(conn)
	switch state {
	case http.StateNew:
		c.open++
		if !c.from.add(conn) {
			c.closed[conn] = true
			return []net.Conn{conn}
		}
		c.silent.add(conn, time.Now())
		return c.makeRoom()
	case http.StateIdle:
		c.idle.add(conn, time.Now())
	case http.StateClosed, http.StateHijacked:
		c.open--
		c.from.remove(conn)
		delete(c.closed, conn)
	case http.StateActive:
	}
	return nil
}

// makeRoom picks connections to close until there is no crowd, or nobody left
// who does nothing; a sweep follows if there soon may be. REQUIRES: c.mu held.
func (c *conns) makeRoom() (out []net.Conn) {
	for c.crowded() {
		from := &c.idle
		oldest, ok := from.first()
		if !ok {
			from = &c.silent
			oldest, ok = from.first()
			if left := silentFor - time.Since(oldest.since); ok && left > 0 {
				c.sweepIn(left)
				break
			}
		}
		if !ok {
			break
		}
		from.remove(oldest.conn)
		c.closed[oldest.conn] = true
		out = append(out, oldest.conn)
	}
	return out
}

// sweepIn makes room later: while all places are taken nobody new is noted.
// REQUIRES: c.mu held.
func (c *conns) sweepIn(d time.Duration) {
	if c.sweeps {
		return
	}
	c.sweeps = true
	time.AfterFunc(d, func() {
		c.mu.Lock()
		c.sweeps = false
		out := c.makeRoom()
		c.mu.Unlock()
		for _, conn := range out {
			_ = conn.Close()
		}
	})
}

// crowded reports whether more are to go than are going. REQUIRES: c.mu held.
func (c *conns) crowded() bool { return c.open-len(c.closed) > c.most }

// crowd reports whether answers should end their connections.
func (c *conns) crowd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > c.most
}
