package membercmd

import (
	"encoding/json"
	"fmt"
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

// The token alone is data; what to do next are notes.
func TestInvitePrintsTheTokenAlone(t *testing.T) {
	addr := clitest.Broker(t)
	code, out, errs := runCLI(t, "invite", "lab-2", "--addr", addr)
	if code != 0 || out != "csi_secret\n" {
		t.Errorf("exit %d: %q", code, out)
	}
	for _, want := range []string{
		"cloudshare broker --join @FILE", "once site-2 has approved: cloudshare approve lab-2", "127.0.0.1:7701",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
	if strings.Contains(errs, "csi_") {
		t.Errorf("the notes show the token: %s", errs)
	}
	code, out, _ = runCLI(t, "invite", "lab-2", "-o", "json", "--addr", addr)
	var v wire.Invited
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil || v.Token != "csi_secret" || v.Motion != 7 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

// A file that is there stays as it is, and nobody is invited; without an invitation there is no file.
func TestInviteIntoAFile(t *testing.T) {
	addr, path := clitest.Broker(t), filepath.Join(t.TempDir(), "token")
	code, out, errs := runCLI(t, "invite", "lab-2", "--out", path, "--addr", addr)
	text, err := os.ReadFile(path)
	if code != 0 || out != "" || err != nil || string(text) != "csi_secret\n" || !strings.Contains(errs, "--join @"+path) {
		t.Fatalf("exit %d, %v: %q %q %s", code, err, out, text, errs)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if code, _, errs = runCLI(t, "invite", "lab-2", "--out", path, "--addr", addr); code != cli.ExitUsage {
		t.Errorf("again: exit %d: %s", code, errs)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"type":"urn:cloudshare:problem:name-taken","title":"Taken","status":409}`)
	}))
	defer srv.Close()
	other := filepath.Join(t.TempDir(), "token")
	if code, _, errs = runCLI(t, "invite", "lab-2", "--out", other, "--addr", srv.URL); code != cli.ExitRefused ||
		strings.Count(errs, "\n") != 1 {
		t.Errorf("refused: exit %d: %s", code, errs)
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("a file without a token: %v", err)
	}
}

// Each proposal is of its kind, and says who must still agree.
func TestProposals(t *testing.T) {
	asked := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in wire.MotionRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		asked <- strings.TrimSpace(in.What + " " + in.Site + " " + in.Key)
		fmt.Fprintf(w, `{"number":3,"what":%q,"site":%q,"state":"open","needs":1,"missing":["a","b"]}`, in.What, in.Site)
	}))
	defer srv.Close()
	for line, want := range map[string]string{
		"ban lab-2": "ban lab-2", "unban lab-2": "unban lab-2", "elector lab-2": "elector lab-2",
		"elector --remove lab-2": "no-elector lab-2", "rebind lab-2 csk_x": "rebind lab-2 csk_x", "forget lab-2": "forget lab-2",
	} {
		code, out, errs := runCLI(t, append(strings.Fields(line), "--addr", srv.URL)...)
		if got := <-asked; code != 0 || got != want || errs != "" ||
			!strings.Contains(out, "needs 1 vote more: one of a, b must run `cloudshare approve 3`") {
			t.Errorf("%s: exit %d, asked %q: %s%s", line, code, got, out, errs)
		}
	}
}
