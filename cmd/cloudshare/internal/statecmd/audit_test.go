package statecmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// checkEvidence runs the command on a file.
func checkEvidence(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{AuditCheck(a)} }, "",
		append([]string{"check"}, args...)...)
}

func sample(t *testing.T, name string) (path string, file []byte) {
	t.Helper()
	path = filepath.Join("../../../../node/coord/compare/testdata", name)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, file
}

func TestAuditCheck(t *testing.T) {
	for name, want := range map[string]string{
		"differs.json": "proves that the histories or states of n a and of b differ at entry 7 (if the keys are theirs: " +
			"a says so); it does not prove which is right\n",
		"lied.json": "proves that b signed two different histories or states of entry 7, which no honest broker does " +
			"(if the keys are theirs: a says so)\n",
	} {
		path, _ := sample(t, name)
		if code, out, msg := checkEvidence(t, path); code != cli.ExitOK || out != want {
			t.Errorf("%s: exit %d, %s%s", name, code, out, msg)
		}
	}
	path, _ := sample(t, "lied.json")
	code, out, _ := checkEvidence(t, path, "--output", "json")
	var p proven
	if err := json.Unmarshal([]byte(out), &p); err != nil || code != cli.ExitOK || fmt.Sprint(p.Lied) != "[b]" ||
		!strings.HasPrefix(p.Keys["b"], "csk_") || p.Entry != 7 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

// A file that is changed, is something else or is not there is refused in one line.
func TestAuditCheckRefuses(t *testing.T) {
	_, whole := sample(t, "differs.json")
	for name, file := range map[string]string{
		"another site":     strings.Replace(string(whole), `"site": "b"`, `"site": "c"`, 1),
		"another entry":    strings.Replace(string(whole), `"entry": 7`, `"entry": 8`, 1),
		"another reporter": strings.Replace(string(whole), `"reporter": "a"`, `"reporter": "n"`, 1),
		"other spaces":     string(whole) + "\n",
		"something else":   `{"a": 1}`,
		"empty":            "",
		"endless":          strings.Repeat(" ", 2<<20),
	} {
		path := filepath.Join(t.TempDir(), "evidence.json")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, msg := checkEvidence(t, path)
		if code != cli.ExitError || out != "" || strings.Count(msg, "\n") != 1 || !strings.Contains(msg, "no evidence") {
			t.Errorf("%s: exit %d, %s%s", name, code, out, msg)
		}
	}
	if code, _, msg := checkEvidence(t, filepath.Join(t.TempDir(), "none")); code != cli.ExitError || msg == "" {
		t.Errorf("no file: exit %d, %s", code, msg)
	}
}
