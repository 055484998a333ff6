package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// TestCheckConfig: what counts, where it is from, and nothing else is done.
func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	data := filepath.Join(dir, "data")
	text := "site: here\ndata_dir: " + data + "\narchive: {scope: all, keep: 48h}\ntask_logs:\n  keep: 7h\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLOUDSHARE_ARCHIVE_MAX_BYTES", "1Gi")
	t.Setenv("CLOUDSHARE_ARCHIVE_KEPT", "1h")
	code, out, errs := runCLI(t, "", "broker", "--check-config", "--config", path, "--cores", "3", "--archive-keep", "72h", "-o", "json")
	if code != 0 || errs != "CLOUDSHARE_ARCHIVE_KEPT is no key and is ignored; did you mean CLOUDSHARE_ARCHIVE_KEEP?\n" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var keys []config.ShownKey
	if err := json.Unmarshal([]byte(out), &keys); err != nil {
		t.Fatal(err)
	}
	if len(keys) != len(config.Fields()) {
		t.Errorf("%d keys are shown of %d", len(keys), len(config.Fields()))
	}
	want := map[string]config.ShownKey{
		"site": {Value: "here", Source: "file " + path}, "archive.scope": {Value: "all", Source: "file " + path},
		"task_logs.keep": {Value: "7h0m0s", Source: "file " + path}, "cores": {Value: 3.0, Source: "flag"},
		"archive.keep": {Value: "72h0m0s", Source: "flag"}, "archive.max_bytes": {Value: "1Gi", Source: "environment"},
		"profile": {Value: "lan", Source: "default"},
	}
	for _, k := range keys {
		if w, ok := want[k.Key]; ok && (w.Value != k.Value || w.Source != k.Source) {
			t.Errorf("%s: %v from %s, want %v from %s", k.Key, k.Value, k.Source, w.Value, w.Source)
		}
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data directory was made")
	}
	code, out, _ = runCLI(t, "", "broker", "--check-config", "--site", "a")
	if code != 0 || !strings.Contains(out, "archive.scope") || !strings.Contains(out, "default") {
		t.Errorf("as a table: exit %d\n%s", code, out)
	}
}

// TestWrongKeys: exit 2 names the key, what it must be, and the nearest one.
func TestWrongKeys(t *testing.T) {
	for text, want := range map[string]string{
		"archive: {scop: own}":              `unknown key "archive.scop"; did you mean "archive.scope"?`,
		"archive: {scope: some}":            `archive.scope "some": must be own, all or off`,
		"archive: {keep: 1m}":               `archive.keep 1m0s: must be at least 1h0m0s`,
		"archive: {max_bytes: 1Mi}":         `archive.max_bytes 1048576: must be at least 16777216`,
		"archive: {max_bytes: big}":         `archive.max_bytes "big": must be a quantity`,
		"archive: own":                      `unknown key "archive"`,
		"task_logs: {keep: 0s}":             `task_logs.keep 0s: must be at least 1s`,
		"task_logs: {keep: few}":            `task_logs.keep`,
		"task_logs: {max_count: 7}":         `unknown key "task_logs.max_count"`,
		"pprof: 0.0.0.0:1":                  `pprof 0.0.0.0:1 is not on loopback`,
		"http_names: ['lan:7700']":          `http_names "lan:7700": has a port or brackets: write the host alone: it must be a host name without scheme and port`,
		"advertise: 'lan:7701'":             `advertise "lan:7701": has a port or brackets: write the host alone: it must be a host name or an address that other brokers reach`,
		"advertise: 0.0.0.0":                `advertise "0.0.0.0": is no host's own address: write one that other brokers reach`,
		"advertise: a\ngossip: 127.0.0.1:0": `advertise a: others need to know the ports, too`,
		"pprof: lan:1":                      `pprof lan:1 is not on loopback`,
		"archive: {scope: {a: b}}":          `unknown key "archive.scope.a"; did you mean "archive.scope"?`,
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte("site: a\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := runCLI(t, "", "broker", "--check-config", "--config", path)
		if code != cli.ExitUsage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d %q, want %q", text, code, errs, want)
		}
	}
}

// TestExportWordsHelp: the archive's export points to the state's.
func TestExportWordsHelp(t *testing.T) {
	if code, _, errs := runCLI(t, "", "export", "fed.state"); code != cli.ExitUsage || !strings.Contains(errs, "cloudshare state export FILE") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
