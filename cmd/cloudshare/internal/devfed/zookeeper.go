package devfed

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// devZooKeeper is the one server that dev starts beside the brokers.
type devZooKeeper struct {
	servers *ensemble.Ensemble
	dir     string
}

const (
	devZKTick = 500 * time.Millisecond
	devZKHeap = 512 // MiB
	// devZKSession gives `dev` the leases that it has on Raft.
	devZKSession = 2 * time.Second
	devChroot    = "/cloudshare"
)

// startZooKeeper starts a server on the folder's data, unless the sites are on
// Raft.
func (d *dev) startZooKeeper(ctx context.Context) error {
	if d.coordination == config.Raft || d.place != "" {
		return nil
	}
	dir := filepath.Join(d.dataDir, "zookeeper")
	e, err := ensemble.New(ensemble.Config{Dir: dir, Servers: 1, Tick: devZKTick, HeapMiB: devZKHeap, Detached: true})
	if err != nil {
		return fmt.Errorf("--coordination zookeeper: %w; or name an ensemble of your own with --zk and --zk-auth", err)
	}
	d.zk = &devZooKeeper{servers: e, dir: dir}
	if err := d.zk.credentials(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	if err := e.Start(ctx); err != nil {
		d.stopZooKeeper()
		return err
	}
	d.Note("ZooKeeper runs at %s", e.Addrs())
	return nil
}

func (d *dev) stopZooKeeper() {
	if d.zk != nil {
		d.zk.servers.Stop()
	}
}

func (z *devZooKeeper) auth() string { return filepath.Join(z.dir, "digest") }

// credentials makes up a password, once for the folder.
func (z *devZooKeeper) credentials() error {
	if _, err := os.Stat(z.auth()); err == nil {
		return nil
	}
	if err := os.WriteFile(z.auth(), []byte("dev:"+rand.Text()+"\n"), 0o600); err != nil {
		return fmt.Errorf("write ZooKeeper's credentials: %w", err)
	}
	return nil
}

// backendKeys returns the lines of a site's configuration that name the backend.
func (d *dev) backendKeys() string {
	switch {
	case d.zk != nil:
		return backendKeys(d.zk.servers.Addrs()+devChroot, d.zk.auth(), devZKSession)
	case d.place != "":
		return backendKeys(d.place, d.auth, 0)
	}
	return ""
}

func backendKeys(place, auth string, session time.Duration) string {
	return fmt.Sprintf("coordination: %s\nzk: %s\nzk_auth: %q\nzk_session: %s\n", config.ZooKeeper, place, auth, session)
}
