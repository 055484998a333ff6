package transport

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleConnectionsMakeRoom: the longest idle one goes first, and only in a
// crowd.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	c := newConns(3)
	var ends []net.Conn
	for range 4 {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		ends = append(ends, a)
	}
	for _, conn := range ends[:3] {
		if c.trackState(conn, http.StateNew) != nil || c.trackState(conn, http.StateActive) != nil ||
			c.trackState(conn, http.StateIdle) != nil {
			t.Error("closed without need")
		}
	}
	c.trackState(ends[0], http.StateActive)
	if got := c.trackState(ends[3], http.StateNew); len(got) != 1 || got[0] != ends[1] || !c.crowd() {
		t.Errorf("%v goes, want the second one; crowd: %t", got, c.crowd())
	}
	if c.trackState(ends[1], http.StateClosed); c.crowd() || c.open != 3 || len(c.idle.at) != 1 ||
		len(c.silent.at) != 1 || len(c.closed) != 0 {
		t.Errorf("%d open, %d idle, %d silent, %d going", c.open, len(c.idle.at), len(c.silent.at), len(c.closed))
	}
}

// count returns how many are open, as the servers' goroutines left them.
func (c *conns) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// TestSilentConnectionsMakeRoom: who connects and sends nothing for a second is
// hung up on in a crowd, also if nobody new can come; who is quicker is not.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConns(2)
		var ends []net.Conn
		open := func() (gone <-chan struct{}) {
			a, b := net.Pipe()
			t.Cleanup(func() { _, _ = a.Close(), b.Close() })
			over := make(chan struct{})
			go func() { // as the server's goroutine does
				_, _ = a.Read(make([]byte, 1))
				c.changed(a, http.StateClosed)
				close(over)
			}()
			ends = append(ends, a)
			c.changed(a, http.StateNew)
			return over
		}
		first, second := open(), open()
		<-time.After(silentFor / 2)
		third := open()
		c.changed(ends[1], http.StateActive)
		synctest.Wait()
		if n := c.count(); n != 3 {
			t.Fatalf("%d open before the second is over", n)
		}
		<-first // by itself
		if n := c.count(); n != 2 || c.crowd() {
			t.Errorf("%d open", n)
		}
		<-time.After(2 * silentFor)
		fourth := open() // room for it: the third has been silent for long
		<-third
		<-time.After(time.Hour)
		select {
		case <-second:
			t.Error("one with a request was closed")
		case <-fourth:
			t.Error("one was closed without a crowd")
		default:
		}
		_, _ = ends[1].Close(), ends[3].Close()
		<-second
		<-fourth
	})
}
