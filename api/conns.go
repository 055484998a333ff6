package api

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// conns knows the open connections. When they become many, those that wait for
// a next request make room for new ones: a client may keep one for two minutes,
// and thousands of idle ones must not keep a probe out.
type conns struct {
	most int // more than these are a crowd

	mu   sync.Mutex
	open int                        // guarded by mu
	idle list.List                  // of net.Conn, longest idle first; guarded by mu
	at   map[net.Conn]*list.Element // in idle; guarded by mu
}

func newConns(most int) *conns { return &conns{most: most, at: map[net.Conn]*list.Element{}} }

// changed is the server's ConnState.
func (c *conns) changed(conn net.Conn, state http.ConnState) {
	if out := c.note(conn, state); out != nil {
		_ = out.Close() // its client asks again on another one, as after a timeout
	}
}

// note keeps account, and returns a connection to close, or nil.
func (c *conns) note(conn net.Conn, state http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.at[conn]; e != nil {
		c.idle.Remove(e)
		delete(c.at, conn)
	}
	switch state {
	case http.StateNew:
		c.open++
		if oldest := c.idle.Front(); c.open > c.most && oldest != nil {
			return oldest.Value.(net.Conn)
		}
	case http.StateIdle:
		c.at[conn] = c.idle.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		c.open--
	case http.StateActive:
	}
	return nil
}

// crowd reports whether answers should end their connections.
func (c *conns) crowd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > c.most
}
