package daemon

import (
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/replica"
)

// joinThrough tries to join, and doubts the addresses at once.
func joinThrough(t *testing.T, addrs ...string) error {
	t.Helper()
	l, err := openLog(t.Context(), raftlog.Config{
		Config: facade.Config{
			Site: "b", Node: uuid.New(), Dir: filepath.Join(t.TempDir(), "raft"), Listen: "127.0.0.1:0",
			Machine: replica.NewReplica(), Logger: zerolog.Nop(),
		},
		Join: addrs,
	}, 0, zerolog.Nop())
	if err == nil {
		t.Fatal("joined", l.Close())
	}
	return err
}

// TestJoinAtAnAPI: an HTTP port never lets anyone join; that is said, not tried
// forever.
func TestJoinAtAnAPI(t *testing.T) {
	srv := httptest.NewServer(nil)
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	if err := joinThrough(t, addr); cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), addr+": that is no peer port") {
		t.Errorf("exit %d: %v", cli.CodeOf(err), err)
	}
}

// TestDoubtSparesPeers: one address that may be a peer's is reason to go on.
func TestDoubtSparesPeers(t *testing.T) {
	srv := httptest.NewServer(nil)
	defer srv.Close()
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	go func() {
		for conn, err := peer.Accept(); err == nil; conn, err = peer.Accept() {
			_ = conn.Close()
		}
	}()
	gone := httptest.NewServer(nil)
	gone.Close()
	api := strings.TrimPrefix(srv.URL, "http://")
	for _, other := range []string{peer.Addr().String(), strings.TrimPrefix(gone.URL, "http://")} {
		if err := doubt(t.Context(), []string{api, other}, time.Nanosecond, zerolog.Nop()); err != nil {
			t.Errorf("with %s: %v", other, err)
		}
	}
}

// TestJoinAtItself is refused before anything is opened.
func TestJoinAtItself(t *testing.T) {
	c := config.Default()
	c.Site = "a"
	for addr, ok := range map[string]bool{
		"127.0.0.1:7701": false, "localhost:7701": false, "127.0.0.1:7700": false, "127.0.0.1:7702": false,
		"127.0.0.2:7701": true, "127.0.0.1:7711": true, "10.0.0.1:7701": true,
	} {
		c.Join = []string{addr}
		if err := c.Validate(); (err == nil) != ok || err != nil && cli.CodeOf(err) != cli.ExitUsage {
			t.Errorf("join %s: %v", addr, err)
		}
	}
}
