package facade

import (
	"context"
	"net"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// HTTP brings the connections on which other sites' brokers speak HTTP, each a *relay.HTTPConn. A few wait until
// somebody accepts them. It ends with the member.
func (m *Member) HTTP() net.Listener { return m.http }

// DialHTTP connects to the HTTP of another site's broker, at its peer address; ctx bounds that. It is an error if
// anybody but the site that is meant answers there.
func (m *Member) DialHTTP(ctx context.Context, site, addr string) (net.Conn, error) {
	return m.dial(ctx, site, addr, relay.KindHTTP)
}

// DialKeys is DialHTTP for questions about keys (package askkeys).
func (m *Member) DialKeys(ctx context.Context, site, addr string) (net.Conn, error) {
	return m.dial(ctx, site, addr, relay.KindKeys)
}

// DialFiles is DialHTTP for blobs (package transfer).
func (m *Member) DialFiles(ctx context.Context, site, addr string) (net.Conn, error) {
	return m.dial(ctx, site, addr, relay.KindFiles)
}

// DialLogs is DialHTTP for what this site's tasks have written elsewhere (package asklogs).
func (m *Member) DialLogs(ctx context.Context, site, addr string) (net.Conn, error) {
	return m.dial(ctx, site, addr, relay.KindLogs)
}

// DialProgress is DialHTTP for what this site's tasks do elsewhere before they start (package askprogress).
func (m *Member) DialProgress(ctx context.Context, site, addr string) (net.Conn, error) {
	return m.dial(ctx, site, addr, relay.KindProgress)
}

func (m *Member) dial(ctx context.Context, site, addr string, k relay.Kind) (net.Conn, error) {
	d := relay.Dialer{Net: m.cfg.Net, Site: m.cfg.Site}
	return d.Dial(ctx, relay.Peer{Site: site, Addr: addr}, k, m.lineage)
}
