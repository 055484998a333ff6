package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"
)

// maxOperatorConns bounds the connections on the operator's socket. They are none of Config.MaxConns: a crowd there
// does not keep the operator out.
const maxOperatorConns = 64

type operatorKey struct{}

// FromOperator reports whether a request came by the operator's socket, from a process that runs as the broker's user
// or as root.
func FromOperator(ctx context.Context) bool { return ctx.Value(operatorKey{}) != nil }

// newOperators serves the operator's socket.
func newOperators(cfg *Config, logger zerolog.Logger) *http.Server {
	if cfg.Operator == nil {
		return nil
	}
	return &http.Server{
		ReadHeaderTimeout: cfg.HeaderTimeout, IdleTimeout: cfg.IdleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: NewErrorLog(logger),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), operatorKey{}, true)
		},
	}
}

// serveOperator answers on the operator's socket until Shutdown.
func (s *Server) serveOperator() {
	own := &ownersOnly{Listener: s.cfg.Operator, owner: uint32(os.Geteuid()), log: s.log}
	if err := s.local.Serve(netutil.LimitListener(own, maxOperatorConns)); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error().Err(err).Msg("http server on the operator's socket stopped")
	}
}

// ownersOnly takes connections of one user's processes, and of root's.
type ownersOnly struct {
	net.Listener
	owner uint32
	log   zerolog.Logger
}

// Accept implements net.Listener.
func (l *ownersOnly) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		user, err := peerUser(conn)
		if err == nil && (user == l.owner || user == 0) {
			return conn, nil
		}
		l.log.Warn().Err(err).Uint32("uid", user).Msg("a foreign process at the operator's socket was refused")
		_ = conn.Close() // nothing was said on it
	}
}

// peerUser returns the user whose process has opened a connection, as the kernel says.
func peerUser(conn net.Conn) (uint32, error) {
	unix, ok := conn.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("%T is no socket", conn)
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	if cause := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); cause != nil {
		return 0, cause
	}
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
