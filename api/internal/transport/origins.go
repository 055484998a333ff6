package transport

import (
	"net"

	"github.com/cloudshare/cloudshare/api/internal/rates"
)

// origins counts open connections by address. One address has half of them at most, so that others find room whatever
// it does with its own. Loopback is let have all: a proxy or the operator's own programs are there.
type origins struct {
	most int // connections of all
	of   map[rates.Sender]int
}

// add counts one, and reports whether it may stay.
func (o *origins) add(conn net.Conn) bool {
	from, known := originOf(conn)
	if !known {
		return true
	}
	o.of[from]++
	return o.of[from] <= (o.most+1)/2
}

func (o *origins) remove(conn net.Conn) {
	from, known := originOf(conn)
	if !known {
		return
	}
	if o.of[from]--; o.of[from] <= 0 {
		delete(o.of, from)
	}
}

// originOf returns whom a connection counts for; known is false for one that is not counted.
func originOf(conn net.Conn) (from rates.Sender, known bool) {
	at, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || at.IP.IsLoopback() {
		return from, false
	}
	return rates.SenderOf(at.String())
}
