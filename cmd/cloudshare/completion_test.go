package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// TestCompletion: the shell is offered the broker's jobs and sites.
func TestCompletion(t *testing.T) {
	addr := clitest.Broker(t)
	for line, want := range map[string]string{
		"job ":                    "site-1.1\tsucceeded n\n",
		"logs site":               "site-1.1\tsucceeded n\n",
		"job x ":                  "",
		"jobs --site ":            "site-1\talive\n",
		"submit --only site-9,si": "site-9,site-1\talive\n",
		"run --select ":           "gpu=a100\nzone=b\n",
		"submit --select gpu,z":   "gpu,zone=b\n",
		"export --format s":       "json\ncsv\nswf\n", // the shell chooses
		"report --by d":           "site\nhour\nday\nmonth\nlabel",
	} {
		args := strings.Split(line, " ")
		code, out, _ := runCLI(t, "", append([]string{"__complete", "--addr=" + addr}, args...)...)
		got, _, _ := strings.Cut(out, ":")
		if code != 0 || got != want {
			t.Errorf("%s: exit %d %q, want %q", line, code, got, want)
		}
	}
}

// TestManualPages: one for each command.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	code, _, errs := runCLI(t, "", "docs", "man", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if code != 0 || err != nil || len(pages) < 20 {
		t.Fatalf("exit %d, %d pages: %s", code, len(pages), errs)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cloudshare-report.1"))
	if err != nil || !bytes.Contains(text, []byte("core\\-hours lent")) && !bytes.Contains(text, []byte("core-hours lent")) {
		t.Errorf("%v\n%.400s", err, text)
	}
}
