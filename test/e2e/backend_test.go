package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/coord/zk/ensemble"
)

// shared is the ZooKeeper server of all brokers with command lines of their own.
var shared struct {
	once    sync.Once
	servers *ensemble.Ensemble
	dir     string
	err     error
}

// backend are the flags of a broker for the backend under test.
func backend(t *testing.T) []string {
	t.Helper()
	if !onZK() {
		return nil
	}
	return zooKeeper(t)
}

// zooKeeper are the flags of a broker on ZooKeeper. The federations of one ensemble have
// a tree each: that of the test.
func zooKeeper(t *testing.T) []string {
	t.Helper()
	shared.once.Do(func() { shared.err = startShared(within(t)) })
	must(t, shared.err)
	return onServers(shared.servers.Addrs() + "/" + t.Name())
}

// startShared starts the server, in a folder that outlives the test.
func startShared(ctx context.Context) (err error) {
	if shared.dir, err = os.MkdirTemp("", "cloudshare-zk-"); err != nil {
		return fmt.Errorf("make folder for ZooKeeper: %w", err)
	}
	if err = os.WriteFile(filepath.Join(shared.dir, "digest"), []byte("federation:secret\n"), 0o600); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	shared.servers, err = ensemble.New(ensemble.Config{
		Dir: shared.dir, Servers: 1, Tick: 500 * time.Millisecond,
		HeapMiB: 256, Flags: ensemble.Brief,
	})
	if err != nil {
		return err
	}
	return shared.servers.Start(ctx)
}

// onServers are the flags of a broker whose tree is there.
func onServers(place string) []string {
	return []string{
		"--coordination", "zookeeper", "--zk", place, "--zk-auth", filepath.Join(shared.dir, "digest"),
		"--zk-session", "2s", "--zk-insecure",
	}
}

// onZK reports whether the backend under test is ZooKeeper.
func onZK() bool { return *coordination == "zookeeper" }

// stopShared ends the server, once all tests are over.
func stopShared() {
	if shared.servers != nil {
		shared.servers.Stop()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
}
