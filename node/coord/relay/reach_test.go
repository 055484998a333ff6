package relay

import (
	"net"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// counted is a listener that tells each connection of its that is closed.
type counted struct {
	net.Listener
	closed chan struct{}
}

// Accept implements net.Listener.
func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{conn, l.closed}, nil
}

type countedConn struct {
	net.Conn
	closed chan struct{}
}

// Close implements net.Conn.
func (c countedConn) Close() error {
	select {
	case c.closed <- struct{}{}:
	default:
	}
	return c.Conn.Close()
}

// TestReachIsNoComplaint: a new leader looks whether each site is there, and each logged that a stranger had been.
func TestReachIsNoComplaint(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, closed := &logged{}, make(chan struct{}, 1)
	m := NewMux(counted{ln, closed}, "a", time.Minute, zerolog.New(out), &Network{})
	m.Serve()
	defer m.Close()
	if err := new(Network).Reach(t.Context(), ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	<-closed
	if out.String() != "" {
		t.Errorf("logged %s", out)
	}
	conn, err := net.Dial("tcp", ln.Addr().String()) // some bytes are a stranger's
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("x"))
	_ = conn.Close()
	<-closed
	if out.String() == "" {
		t.Error("nothing is logged of a stranger")
	}
}
