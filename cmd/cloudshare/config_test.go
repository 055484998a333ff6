package main

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestConfigPrecedence: defaults < file < environment < flags.
func TestConfigPrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "site: from-file\nhttp: 127.0.0.1:1\ncores: 3\njoin: [\"127.0.0.1:5\", \"127.0.0.1:6\"]\nlease: 9s\npin: true\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	configFlags(flags)
	if err := flags.Parse([]string{"--cores", "5", "--data-dir", "/from/flag"}); err != nil {
		t.Fatal(err)
	}
	environ := []string{"CLOUDSHARE_HTTP=127.0.0.1:2", "CLOUDSHARE_CORES=4", "CLOUDSHARE_ADDR=ignored", "CLOUDSHARE_LOG_LEVEL=warn", "PATH=/x"}
	got, err := loadConfig(path, flags, func() []string { return environ })
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Site, want.HTTP, want.Cores, want.DataDir = "from-file", "127.0.0.1:2", 5, "/from/flag"
	want.Join, want.Lease, want.Pin, want.LogLevel = []string{"127.0.0.1:5", "127.0.0.1:6"}, 9*time.Second, true, "warn"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}

	// Inside a task CLOUDSHARE_SITE names the executor, not a broker to start.
	environ = append(environ, "CLOUDSHARE_SITE=executor", "CLOUDSHARE_TOKEN=1", "CLOUDSHARE_JOIN=127.0.0.1:7,127.0.0.1:8")
	got, err = loadConfig(path, flags, func() []string { return environ })
	if err != nil || got.Site != "from-file" || len(got.Join) != 2 || got.Join[1] != "127.0.0.1:8" {
		t.Errorf("site %s join %v: %v", got.Site, got.Join, err)
	}
}

// TestEveryKeyHasAFlag, so that none can be forgotten.
func TestEveryKeyHasAFlag(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	configFlags(flags)
	for _, f := range configFields() {
		if f.doc == "" || flags.Lookup(f.flag()) == nil {
			t.Errorf("key %q has no flag or no words", f.key)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"site", "data_dir", "http", "peer", "join"}
	for typed, want := range map[string]string{"datadir": "data_dir", "htp": "http", "peers": "peer", "sites": "site", "": "site"} {
		if got := nearest(typed, known); got != want {
			t.Errorf("nearest(%q) = %s, want %s", typed, got, want)
		}
	}
}

// TestDevPlan: fresh sites get consecutive ports; what a folder says wins over
// defaults, flags that were given win over the folder.
func TestDevPlan(t *testing.T) {
	d := &dev{app: &app{}, sites: 2, cores: 2, dataDir: t.TempDir()}
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
	if err := os.MkdirAll(filepath.Join(sites[0].Dir, "data", raftDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sites[0].Dir, "data", raftDir, "member.json"), []byte("{}"), 0o600); err != nil {
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
	if _, _, err := findSite(d.dataDir, "site-9"); codeOf(err) != exitNotFound {
		t.Errorf("unknown site: %v", err)
	}
	if _, _, err := findSite(d.dataDir, "../x"); codeOf(err) != exitUsage {
		t.Errorf("a path as a site: %v", err)
	}
	s, peers, err := findSite(d.dataDir, "site-2")
	if err != nil || !s.fresh || len(peers) != 1 || peers[0] != "127.0.0.1:61777" {
		t.Errorf("a site that never joined: %+v %v %v", s, peers, err)
	}
}

// TestDevTakenPort: nothing is started, and the error names the port.
func TestDevTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	code, _, errs := cli(t, "", "dev", "--sites", "1", "--http", l.Addr().String(), "--data-dir", dir)
	if code != exitError || !strings.Contains(errs, l.Addr().String()) || !strings.Contains(errs, "site-1") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v %v", entries, err)
	}
}

func TestBrokerEnvironmentIsClean(t *testing.T) {
	got := brokerEnv([]string{"PATH=/x", "CLOUDSHARE_ADDR=y", "CLOUDSHARE_JOIN=z", "HOME=/"})
	if strings.Join(got, " ") != "PATH=/x HOME=/" {
		t.Errorf("%v", got)
	}
}
