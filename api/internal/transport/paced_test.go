package transport

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// arrivals is a listener to which connections come by a channel.
type arrivals chan net.Conn

func (a arrivals) Accept() (net.Conn, error) {
	conn, ok := <-a
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (a arrivals) Close() error   { return nil }
func (a arrivals) Addr() net.Addr { return &net.TCPAddr{} }

// arriving is a connection from an address; once it is closed it says so.
type arriving struct {
	remote
	closed *int
}

func (c *arriving) Close() error {
	*c.closed++
	return nil
}

// TestConnectionsASecond: one address is taken what it may open, by its network if it is of IPv6, and what a second
// adds after that; what is beyond is closed and counted. Other addresses and loopback are not touched.
func TestConnectionsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 10
		in, refused, closed := make(arrivals), 0, 0
		l := newPaced(in, rate, func() { refused++ }, zerolog.Nop())
		taken := make(chan net.Conn)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					close(taken)
					return
				}
				taken <- conn
			}
		}()
		open := func(n int, hosts ...string) (stay int) {
			for i := range n {
				at := &net.TCPAddr{IP: net.ParseIP(hosts[i%len(hosts)]), Port: 1000 + i}
				in <- &arriving{remote{at: at}, &closed}
				synctest.Wait()
				select {
				case <-taken:
					stay++
				default:
				}
			}
			return stay
		}
		n := open(rate*connBurst+20, "2001:db8::1", "2001:db8::2")
		if n != rate*connBurst || refused != 20 || closed != 20 {
			t.Errorf("%d of a network stay, %d are refused, %d closed", n, refused, closed)
		}
		if n := open(rate, "192.0.2.1"); n != rate {
			t.Errorf("%d of another address stay", n)
		}
		if n := open(1000, "127.0.0.1", "::1"); n != 1000 {
			t.Errorf("%d of loopback stay", n)
		}
		<-time.After(time.Second)
		if n := open(rate+5, "2001:db8::3"); n != rate {
			t.Errorf("%d stay after a second, want %d", n, rate)
		}
		close(in)
		<-taken
	})
}

// TestNoBoundOfConnections: 0 bounds nothing.
func TestNoBoundOfConnections(t *testing.T) {
	in, closed := make(arrivals, 1), 0
	l := newPaced(in, 0, nil, zerolog.Nop())
	for range 10_000 {
		in <- &arriving{remote{at: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}, &closed}
		if _, err := l.Accept(); err != nil || closed > 0 {
			t.Fatalf("%v, %d are closed", err, closed)
		}
	}
}
