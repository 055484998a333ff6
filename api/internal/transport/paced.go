package transport

import (
	"net"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/rates"
)

// connBurst is how many seconds' worth of new connections may come at once.
const connBurst = 5

// paced bounds how fast one address opens connections. One beyond that is closed as it comes, before anything is read
// of it, a handshake made or a goroutine begun, so that a flood costs a call or two each. Loopback is let open any
// number, as for origins.
type paced struct {
	net.Listener
	rate    *rates.Table[rates.Sender] // nil: no bound
	refused func()
	log     zerolog.Logger
	told    seldom
}

// newPaced bounds each address to n new connections a second, 0 = any number; refused is called for each one beyond.
func newPaced(l net.Listener, n int, refused func(), log zerolog.Logger) *paced {
	return &paced{Listener: l, rate: rates.New[rates.Sender](n, connBurst), refused: refused, log: log}
}

// Accept implements net.Listener.
func (l *paced) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, known := originOf(conn)
		if !known || l.rate.Take(from) == 0 {
			return conn, nil
		}
		l.refuse(conn)
	}
}

// refuse closes a connection at once: none of what the kernel keeps of it waits for its other end.
func (l *paced) refuse(conn net.Conn) {
	l.refused()
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
	if l.told.now() {
		l.log.Warn().Stringer("from", conn.RemoteAddr()).
			Msg("an address opens connections to the API faster than rates.connections allows: they are closed")
	}
}
