package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// notice is what a receiver was sent.
type notice struct{ path, id, body string }

// TestNoticesOverAKilledOwner: what a receiver did not take is sent again though the broker was killed in between, with
// the same id and bytes; what ended while it was dead is told when it is back; and so is a job that has waited in vain.
func TestNoticesOverAKilledOwner(t *testing.T) {
	t.Parallel()
	authority, cert := issue(t)
	got := make(chan notice, 100)
	refused := false // by the only one who is told in turn
	host, port := serving(t, cert, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // its broker was killed
		}
		if r.URL.Path == "/busy" && !refused {
			refused = true
			w.WriteHeader(http.StatusBadRequest)
		}
		got <- notice{r.URL.Path, r.Header.Get("Webhook-Id"), string(body)}
	})
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte(strings.Repeat("s", 32)), 0o600))
	fed := start(t, 3, 2, "SSL_CERT_FILE="+authority, "CLOUDSHARE_NOTIFY_TO=localhost:"+port,
		"CLOUDSHARE_NOTIFY_PRIVATE=true", "CLOUDSHARE_NOTIFY_SECRET=@"+secret)
	asked, dir := fed.Sites[0], sharedDir(t)
	awaitVoters(t, asked, 3) // else nobody sees the end while it is dead
	telling := func(spec testbed.Spec, path string) testbed.Spec {
		spec.Notify = []testbed.Hook{{URL: fmt.Sprintf("https://localhost:%s/%s", port, path)}}
		return spec
	}
	away := submit(t, asked, telling(gateJob(dir, "away", fed.Sites[1].Name), "away"))
	vain := submit(t, asked, telling(gateJob(dir, "vain", asked.Name, testbed.After{Job: away.ID, When: "notok"}), "vain"))
	submit(t, asked, telling(testbed.Spec{Command: []string{"true"}}, "busy"))
	hear := func() (n notice) {
		select {
		case n = <-got:
		case <-within(t).Done():
			t.Fatalf("nobody is told: %s", asked.LogTail(20))
		}
		return n
	}
	awaitRunning(t, asked, away.ID, 1)
	first := hear()
	if first.path != "/busy" {
		t.Fatalf("%+v", first)
	}
	must(t, asked.Kill())
	must(t, os.WriteFile(filepath.Join(dir, "away"), nil, 0o600))
	_, err := fed.Sites[1].AwaitJob(within(t), away.ID, "succeeded")
	must(t, err)
	must(t, fed.Restart(within(t), asked))
	want := map[string][2]string{
		"/busy": {"", "succeeded"}, "/away": {away.ID, "succeeded"}, "/vain": {vain.ID, "cancelled"},
	}
	for len(want) > 0 {
		n := hear()
		end, due := want[n.path]
		if !due || !strings.Contains(n.body, `"job":"`+end[0]) || !strings.Contains(n.body, `"state":"`+end[1]+`"`) ||
			n.path == "/busy" && n != first {
			t.Errorf("told %+v, want one of %v", n, want)
		}
		delete(want, n.path)
	}
	host.CloseClientConnections()
}
