package daemon

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
)

// unpack reads a bundle as file name → content.
func unpack(t *testing.T, bundle io.Reader) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bundle)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for in := tar.NewReader(zipped); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "cloudshare-debug/")] = string(content)
	}
}

func TestBundle(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Site, cfg.DataDir, cfg.PProf = "site-1", dir, "127.0.0.1:0"
	d, err := openDebug(cfg, zerolog.New(lastLines))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	if info, err := os.Stat(filepath.Join(dir, debugSocket)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", info, err)
	}
	log := zerolog.New(lastLines)
	log.Info().Str("password", "hunter2").Msg("join_token=hunter3 and http://me:hunter4@host/ cst_hunter2_hunter2_aaaaaaa")
	file := filepath.Join(dir, "b.tar.gz")
	code, out, errs := runCLI(t, "", "debug", "bundle", "--addr", clitest.Broker(t), "--data-dir", dir, "--file", file)
	if code != 0 || out != "" {
		t.Fatalf("exit %d %s%s", code, out, errs)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := unpack(t, f)
	for name, want := range map[string]string{
		"version.txt": "cloudshare ", "status.json": `"leader":"site-2"`, "ledger.json": "contribution", "config.json": `"archive.scope"`,
		"log.ndjson": "join_token=[redacted]", "goroutines.txt": "goroutine ", "heap.pprof": "", "errors.txt": "", "sites.json": "alive",
	} {
		if got, ok := files[name]; !ok || !strings.Contains(got, want) {
			t.Errorf("%s: %t %.200q", name, ok, got)
		}
	}
	for name, text := range files {
		if strings.Contains(text, "hunter") && name != "heap.pprof" && name != "goroutines.txt" {
			t.Errorf("a secret in %s: %.300s", name, text)
		}
	}
	if code, _, errs := runCLI(t, "", "debug", "bundle", "--file", file); code != cli.ExitError || !strings.Contains(errs, "exists") {
		t.Errorf("over an old file: exit %d %s", code, errs)
	}
	if res, err := http.Get("http://" + d.pprof + "/debug/pprof/cmdline"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("pprof: %v", err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+d.pprof+"/debug/pprof/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example" // a page whose name was bound to 127.0.0.1
	if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("by another name: %v", err)
	}
}

// TestBundleWithoutABroker says so, and what was tried.
func TestBundleWithoutABroker(t *testing.T) {
	code, out, errs := runCLI(t, "", "debug", "bundle", "--addr", "http://127.0.0.1:1", "--data-dir", t.TempDir(), "--file", "-")
	if code != cli.ExitError || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "127.0.0.1:1") {
		t.Errorf("exit %d %s", code, errs)
	}
	if files := unpack(t, strings.NewReader(out)); !strings.Contains(files["errors.txt"], "status.json") || !strings.Contains(files["errors.txt"], "goroutines.txt") {
		t.Errorf("%v", files)
	}
}

func TestRedact(t *testing.T) {
	for _, text := range []string{
		`password=SECRET`, `"password": "SECRET with \"quotes\" SECRET"`, `{\"api_key\":\"SECRET\"}`, `Authorization: Bearer SECRET`,
		`"Authorization":"Basic SECRET"`, `bearer SECRETSECRET.x`, `postgres://user:SECRET@db/x`, `auth-token: 'SECRET SECRET'`,
		"-----BEGIN EC PRIVATE KEY-----\nSECRET\n-----END EC PRIVATE KEY-----", `PASSWD = SECRET, next`, `Cookie: SECRET`,
	} {
		if got := string(redact([]byte(text))); strings.Contains(got, "SECRET") || !strings.Contains(got, "[redacted]") {
			t.Errorf("%s → %s", text, got)
		}
	}
	for _, text := range []string{`"token":17,"state":"running"`, `entry 9 of http://127.0.0.1:7700/v1/jobs`, "\xffok"} {
		if got := string(redact([]byte(text))); strings.Contains(got, "redacted") {
			t.Errorf("%s → %s", text, got)
		}
	}
}

// Found by review: without --data-dir nothing was said to be missing.
func TestBundleWithoutADataDir(t *testing.T) {
	code, out, errs := runCLI(t, "", "debug", "bundle", "--addr", clitest.Broker(t), "--file", "-")
	if code != 0 || !strings.Contains(errs, ", 4 could not be had: its errors.txt says why") {
		t.Errorf("exit %d %s", code, errs)
	}
	if files := unpack(t, strings.NewReader(out)); strings.Count(files["errors.txt"], "give --data-dir") != 4 {
		t.Errorf("%q", files["errors.txt"])
	}
}
