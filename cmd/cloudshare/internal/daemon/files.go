package daemon

import (
	"context"
	"net"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/broker"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// fileServer gives other sites the files that they may have.
type fileServer struct {
	transfer.Server
	ctx context.Context //nolint:containedctx // the life of the connections
	end context.CancelFunc
}

// newFileServer returns one that gives nothing before there is a broker.
func newFileServer(uplink int64, b func() *broker.Broker) *fileServer {
	s := &fileServer{}
	if uplink > 0 {
		s.Limit = transfer.NewLimit(uplink)
	}
	s.Answer = func(ctx context.Context, from string, q transfer.Request) (transfer.Source, transfer.Refusal) {
		if b := b(); b != nil {
			return b.GiveFile(ctx, from, q)
		}
		return nil, transfer.Behind
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// serve answers a connection until that or the server ends.
func (s *fileServer) serve(conn net.Conn, p relay.Preamble) { s.Serve(s.ctx, conn, p) }

// openFiles opens the store of files; nil: none travel with tasks here.
func openFiles(cfg config.Config) (*store.Store, error) {
	o, some := cfg.ForFiles()
	if !some {
		return nil, nil //nolint:nilnil // there is none
	}
	return store.Open(o)
}
