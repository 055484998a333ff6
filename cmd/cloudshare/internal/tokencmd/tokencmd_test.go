package tokencmd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

func runCLI(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(t, Commands, "", args...)
}

// The text alone is data; what it is, is a note, which does not show it.
func TestCreatePrintsTheTextAlone(t *testing.T) {
	addr := clitest.Broker(t)
	code, out, errs := runCLI(t, "token", "create", "alice", "--for", "720h", "--addr", addr)
	if code != 0 || out != "cst_7k2qm3xa_secret\n" {
		t.Errorf("exit %d: %q %s", code, out, errs)
	}
	if !strings.Contains(errs, "7k2qm3xa") || !strings.Contains(errs, "alice") || strings.Contains(errs, "secret\n") ||
		strings.Contains(errs, "cst_") {
		t.Errorf("notes: %s", errs)
	}
	code, out, _ = runCLI(t, "token", "create", "alice", "-o", "json", "--addr", addr)
	var made wire.NewToken
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil || made.Text != "cst_7k2qm3xa_secret" || made.ID != "7k2qm3xa" {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

// Into a file that only its owner can read, and that was not there; without a token there is no file.
func TestCreateIntoAFile(t *testing.T) {
	addr, path := clitest.Broker(t), filepath.Join(t.TempDir(), "token")
	code, out, errs := runCLI(t, "token", "create", "alice", "--out", path, "--addr", addr)
	text, err := os.ReadFile(path)
	if code != 0 || out != "" || err != nil || string(text) != "cst_7k2qm3xa_secret\n" {
		t.Fatalf("exit %d, %v: %q %q %s", code, err, out, text, errs)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if code, _, errs = runCLI(t, "token", "create", "alice", "--out", path, "--addr", addr); code != cli.ExitUsage {
		t.Errorf("again: exit %d: %s", code, errs)
	}
	other := filepath.Join(t.TempDir(), "token")
	if code, _, _ = runCLI(t, "token", "create", "alice", "--out", other, "--addr", refusing(t)); code != cli.ExitRefused {
		t.Errorf("refused: exit %d", code)
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("a file without a token: %v", err)
	}
}

// refusing is a broker to which the token's role does not suffice.
func refusing(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"type":"urn:cloudshare:problem:forbidden","title":"No","status":403}`))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// What is asked for: the user of a token of role user is its name, if that can be one.
func TestWhoseTokenIsAskedFor(t *testing.T) {
	asked := make(chan wire.TokenRequest, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in wire.TokenRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		asked <- in
		_, _ = w.Write([]byte(`{"token":"cst_x","id":"x","role":"user"}`))
	}))
	defer srv.Close()
	for line, want := range map[string]wire.TokenRequest{
		"alice":                              {Name: "alice", User: "alice", Role: "user"},
		"ci --user alice --for 90d":          {Name: "ci", User: "alice", Role: "user", For: "2160h0m0s"},
		"Laptop --user alice":                {Name: "Laptop", User: "alice", Role: "user"},
		"prometheus --role read-only":        {Name: "prometheus", Role: "read-only"},
		"root --role operator --user root":   {Name: "root", User: "root", Role: "operator"},
		"Ops-Phone --role operator --for 5m": {Name: "Ops-Phone", Role: "operator", For: "5m0s"},
	} {
		code, _, errs := runCLI(t, append([]string{"token", "create", "--addr", srv.URL}, strings.Fields(line)...)...)
		if code != 0 {
			t.Errorf("%s: exit %d: %s", line, code, errs)
			continue
		}
		if got := <-asked; got != want {
			t.Errorf("%s: asked %+v", line, got)
		}
	}
	if code, _, errs := runCLI(t, "token", "create", "Alice's laptop", "--addr", srv.URL); code != cli.ExitUsage ||
		!strings.Contains(errs, "--user is missing") {
		t.Errorf("no user's name: exit %d: %s", code, errs)
	}
	if code, _, errs := runCLI(t, "token", "create", "alice", "--for", "90", "--addr", srv.URL); code != cli.ExitUsage ||
		!strings.Contains(errs, "90d, 2w") {
		t.Errorf("no duration: exit %d: %s", code, errs)
	}
}

func TestListRevokeAndWhoami(t *testing.T) {
	addr := clitest.Broker(t)
	code, out, errs := runCLI(t, "token", "list", "--addr", addr)
	for _, want := range []string{"EXPIRES", "7k2qm3xa", "never", "read-only", "prometheus"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("list: exit %d, no %q: %s%s", code, want, out, errs)
		}
	}
	if code, out, errs = runCLI(t, "token", "revoke", "7k2qm3xa", "--addr", addr); code != 0 || out != "" || !strings.Contains(errs, "7k2qm3xa") {
		t.Errorf("revoke: exit %d: %s%s", code, out, errs)
	}
	if code, _, _ = runCLI(t, "token", "revoke", "aaaaaaaa", "--addr", addr); code != cli.ExitNotFound {
		t.Errorf("revoke nothing: exit %d", code)
	}
	code, out, errs = runCLI(t, "whoami", "--addr", addr)
	if code != 0 || !strings.Contains(out, "alice") || !strings.Contains(out, "7k2qm3xa") {
		t.Errorf("whoami: exit %d: %s%s", code, out, errs)
	}
}
