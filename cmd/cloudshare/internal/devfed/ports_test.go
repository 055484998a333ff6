package devfed

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
)

// TestDevTakenPort: nothing is started, and the error names the port.
func TestDevTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	code, _, errs := runCLI(t, "", "dev", "--sites", "1", "--http", l.Addr().String(), "--data-dir", dir)
	if code != cli.ExitError || !strings.Contains(errs, l.Addr().String()) || !strings.Contains(errs, "site-1") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v %v", entries, err)
	}
}
