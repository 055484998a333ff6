package config

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestConfigPrecedence: defaults < file < environment < flags.
func TestConfigPrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "site: from-file\nhttp: 127.0.0.1:1\ncores: 3\ndeny: [b, c]\nlease: 9s\npin: true\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse([]string{"--cores", "5", "--data-dir", "/from/flag"}); err != nil {
		t.Fatal(err)
	}
	environ := []string{"CLOUDSHARE_HTTP=127.0.0.1:2", "CLOUDSHARE_CORES=4", "CLOUDSHARE_ADDR=ignored", "CLOUDSHARE_LOG_LEVEL=warn", "PATH=/x"}
	got, err := Load(path, flags, func() []string { return environ })
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Site, want.HTTP, want.Cores, want.DataDir = "from-file", "127.0.0.1:2", 5, "/from/flag"
	want.file = path
	want.Deny, want.Lease, want.Pin, want.LogLevel = []string{"b", "c"}, 9*time.Second, true, "warn"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}

	// Inside a task CLOUDSHARE_SITE names the executor, not a broker to start.
	environ = append(environ, "CLOUDSHARE_SITE=executor", "CLOUDSHARE_TOKEN=1", "CLOUDSHARE_DENY=d,e")
	got, err = Load(path, flags, func() []string { return environ })
	if err != nil || got.Site != "from-file" || len(got.Deny) != 2 || got.Deny[1] != "e" {
		t.Errorf("site %s deny %v: %v", got.Site, got.Deny, err)
	}
}

// TestEveryKeyHasAFlag, so that none can be forgotten.
func TestEveryKeyHasAFlag(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	for _, f := range Fields() {
		if f.doc == "" || flags.Lookup(f.flag()) == nil {
			t.Errorf("key %q has no flag or no words", f.Key)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"site", "data_dir", "http", "peer", "join"}
	for typed, want := range map[string]string{"datadir": "data_dir", "htp": "http", "peers": "peer", "sites": "site", "": "site"} {
		if got := Nearest(typed, known); got != want {
			t.Errorf("nearest(%q) = %s, want %s", typed, got, want)
		}
	}
}
