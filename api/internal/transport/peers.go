package transport

import (
	"errors"
	"net"
	"net/http"

	"github.com/rs/zerolog"
)

// newPeers serves other brokers. How many connections there are is bounded where they come from: those on which nothing
// is asked give way there.
func newPeers(cfg *Config, logger zerolog.Logger) *http.Server {
	if cfg.Peers == nil {
		return nil
	}
	return &http.Server{
		ReadHeaderTimeout: cfg.HeaderTimeout, IdleTimeout: cfg.IdleTimeout, MaxHeaderBytes: 64 << 10,
		ErrorLog: NewErrorLog(logger), ConnContext: cfg.From, ConnState: busyOrNot,
	}
}

// busyOrNot tells a connection whether a request is being answered.
func busyOrNot(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(interface{ SetBusy(busy bool) }); ok && (state == http.StateActive || state == http.StateIdle) {
		c.SetBusy(state == http.StateActive)
	}
}

// servePeers answers other brokers until Shutdown, or until nobody brings their connections any more.
func (s *Server) servePeers() {
	err := s.peers.Serve(s.cfg.Peers)
	if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		s.log.Error().Err(err).Msg("http server for other brokers stopped")
	}
}
