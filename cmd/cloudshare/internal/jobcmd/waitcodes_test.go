package jobcmd

import (
	"context"
	"io"
	"testing"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/clitest"
)

// TestWaitCodes: under --wait the exit code says how the job ended.
func TestWaitCodes(t *testing.T) {
	addr := clitest.Broker(t)
	a := &cli.App{Streams: cli.Streams{Out: io.Discard, Err: io.Discard}, Addr: addr}
	c, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int{"site-1.1": 0, "site-1.9": 10, "site-1.10": 11, "site-1.11": 12, "site-1.5": cli.ExitNotFound} {
		if got := cli.CodeOf(waitForJobs(context.Background(), a, c, []string{id})); got != want {
			t.Errorf("%s: exit %d, want %d", id, got, want)
		}
	}
	if got := cli.CodeOf(waitForJobs(context.Background(), a, c, []string{"site-1.1", "site-1.11", "site-1.9"})); got != 12 {
		t.Errorf("several jobs: exit %d, want that of the first that did not succeed", got)
	}
}
