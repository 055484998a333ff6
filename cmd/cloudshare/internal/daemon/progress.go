package daemon

import (
	"net"

	"github.com/cloudshare/cloudshare/node/coord/askprogress"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// serveProgress tells members what their tasks do here before they start.
func (m *siteMember) serveProgress(conn net.Conn, p relay.Preamble) {
	if b := m.brokerFor(conn); b != nil {
		s := askprogress.Server{Answer: b.GiveProgress}
		s.Serve(conn, p)
	}
}
