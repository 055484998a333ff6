package daemon

import (
	"context"
	"net"
	"path/filepath"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/node/broker/homelogs"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// homeLogs says how what own tasks have written at other sites comes into the store of outputs.
func homeLogs(cfg config.Config, kept *outputs.Store,
	dial func(ctx context.Context, site, addr string) (net.Conn, error),
) *homelogs.Config {
	return &homelogs.Config{
		Store: homeStore{kept}, Dir: filepath.Join(cfg.DataDir, "outputs-incoming"), Most: cfg.OutputBytes(),
		Inline: outputs.MaxInline, Keep: cfg.TaskLogs.Keep, Dial: dial,
	}
}

// homeStore is the store of outputs as what is brought home sees it.
type homeStore struct{ *outputs.Store }

var _ homelogs.Store = homeStore{}

// Put implements homelogs.Store.
func (s homeStore) Put(list []homelogs.Output) error {
	items := make([]outputs.Item, len(list))
	for i, o := range list {
		items[i] = outputs.Item{ID: o.ID, At: o.At}
		for n, stream := range o.Streams {
			items[i].Streams[n] = outputs.Stream(stream)
		}
	}
	return s.Store.Put(items)
}

// serveLogs gives members what their tasks have written here.
func (m *siteMember) serveLogs(conn net.Conn, p relay.Preamble) {
	if b := m.brokerFor(conn); b != nil {
		s := asklogs.Server{Answer: b.GiveOutput}
		s.Serve(context.Background(), conn, p) // the peer port closes its connection
	}
}
