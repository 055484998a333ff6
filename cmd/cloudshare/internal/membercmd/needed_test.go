package membercmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/access"
)

// starting is a broker that is ready at the third question, and counts the invitations.
func starting(t *testing.T) (addr string, invited *atomic.Int64) {
	t.Helper()
	invited = new(atomic.Int64)
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz" && asked.Add(1) < 3:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"type":"urn:cloudshare:problem:not-ready","title":"Not ready","status":503}`)
		case r.URL.Path == "/v1/members":
			fmt.Fprint(w, `{"items":[{"site":"lab-1","key":"csk_aaaa"}],"next":""}`)
		case r.Method == http.MethodPost:
			invited.Add(1)
			fmt.Fprint(w, `{"token":"csi_secret","addresses":["10.0.0.1:7701"],"site":"lab-2","state":"open"}`)
		default:
			fmt.Fprint(w, `{"status":"ready"}`)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, invited
}

// TestInviteIfNeeded: the same command line, again and again, invites once.
func TestInviteIfNeeded(t *testing.T) {
	addr, invited := starting(t)
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, nil, 0o600); err != nil { // of one that was ended early
		t.Fatal(err)
	}
	for range 3 {
		if code, out, errs := runCLI(t, "invite", "lab-2", "--if-needed", "--out", path, "--addr", addr); code != 0 || out != "" {
			t.Fatalf("exit %d: %q %s", code, out, errs)
		}
	}
	if text, err := os.ReadFile(path); invited.Load() != 1 || err != nil || string(text) != "csi_secret\n" {
		t.Errorf("%d invitations, %q, %v", invited.Load(), text, err)
	}
	other := filepath.Join(t.TempDir(), "token")
	code, _, errs := runCLI(t, "invite", "lab-1", "--if-needed", "--out", other, "--addr", addr)
	if _, err := os.Stat(other); code != 0 || !strings.Contains(errs, "is a member already") || !os.IsNotExist(err) ||
		invited.Load() != 1 {
		t.Errorf("a member: exit %d, %d invitations, %v: %s", code, invited.Load(), err, errs)
	}
	for _, more := range [][]string{{}, {"--again", "--out", other}} {
		if code, _, errs = runCLI(t, append([]string{"invite", "lab-2", "--if-needed", "--addr", addr}, more...)...); code != cli.ExitUsage {
			t.Errorf("%q: exit %d: %s", more, code, errs)
		}
	}
}

// TestInviteWaitsForTheToken: the broker makes it at its first start, which may be after ours.
func TestInviteWaitsForTheToken(t *testing.T) {
	addr, invited := starting(t)
	dir := t.TempDir()
	a := &cli.App{Addr: addr, TokenFile: filepath.Join(dir, "token"), Quiet: true}
	done := make(chan error, 1)
	go func() {
		_, err := needless(t.Context(), a, "lab-2", filepath.Join(dir, "invitation"))
		done <- err
	}()
	if _, err := access.OpenIn(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || invited.Load() != 0 {
		t.Errorf("%d invitations, %v", invited.Load(), err)
	}
}
