package devfed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// TestDevPlan: fresh sites get consecutive ports; what a folder says wins over
// defaults, flags that were given win over the folder.
func TestDevPlan(t *testing.T) {
	d := &dev{App: &cli.App{}, sites: 2, cores: 2, dataDir: t.TempDir()}
	sites, err := d.plan("127.0.0.1", 61000)
	if err != nil {
		t.Fatal(err)
	}
	if sites[0].HTTP != "127.0.0.1:61000" || sites[1].HTTP != "127.0.0.1:61001" || !sites[1].fresh {
		t.Errorf("fresh: %+v %+v", sites[0], sites[1])
	}
	sites[0].Peer = "127.0.0.1:61777"
	for _, s := range sites {
		if err := s.write(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(sites[0].Dir, "data", config.RaftDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sites[0].Dir, "data", config.RaftDir, "member.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := d.plan("127.0.0.1", 62000)
	if err != nil {
		t.Fatal(err)
	}
	if again[0].HTTP != "127.0.0.1:61000" || again[0].Peer != "127.0.0.1:61777" || again[0].fresh || !again[1].fresh {
		t.Errorf("again: %+v %+v", again[0], again[1])
	}
	d.httpSet, d.cores, d.coresSet = true, 7, true
	moved, err := d.plan("127.0.0.1", 62000)
	if err != nil || moved[0].HTTP != "127.0.0.1:62000" || moved[0].Peer != "127.0.0.1:61777" || moved[0].Cores != 7 {
		t.Errorf("moved: %+v %v", moved[0], err)
	}
	if _, err := findSite(d.dataDir, "site-9"); cli.CodeOf(err) != cli.ExitNotFound {
		t.Errorf("unknown site: %v", err)
	}
	if _, err := findSite(d.dataDir, "../x"); cli.CodeOf(err) != cli.ExitUsage {
		t.Errorf("a path as a site: %v", err)
	}
	s, err := findSite(d.dataDir, "site-2")
	if err != nil || !s.fresh {
		t.Fatalf("a site that never joined: %+v %v", s, err)
	}
	if founds, err := s.enter(t.Context()); founds || cli.CodeOf(err) != cli.ExitRefused ||
		!strings.Contains(err.Error(), "no other site runs") {
		t.Errorf("it enters, where nobody runs: founds %v, %v", founds, err)
	}
}

func TestBrokerEnvironmentIsClean(t *testing.T) {
	got := brokerEnv([]string{"PATH=/x", "CLOUDSHARE_ADDR=y", "CLOUDSHARE_JOIN=z", "HOME=/"})
	if strings.Join(got, " ") != "PATH=/x HOME=/" {
		t.Errorf("%v", got)
	}
}
