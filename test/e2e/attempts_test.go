package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestEarlierAttemptsAreReadAtTheOwner: a task fails at one site and is done at
// another one; its owner's broker shows what both attempts wrote, and no other one does.
func TestEarlierAttemptsAreReadAtTheOwner(t *testing.T) {
	t.Parallel()
	fed := start(t, 3, 1)
	asked := fed.Sites[2]
	gate := filepath.Join(sharedDir(t), "gate")
	a := submit(t, asked, testbed.Spec{
		Command: []string{"/bin/sh", "-c", `echo "attempt $CLOUDSHARE_ATTEMPT at $CLOUDSHARE_SITE"
			[ "$CLOUDSHARE_ATTEMPT" = 2 ] && exit 0; until [ -e "$GATE" ]; do sleep 0.05; done; exit 1`},
		Env: map[string]string{"GATE": gate}, Retry: &testbed.Retry{MaxAttempts: 2},
		Sites: &testbed.Where{Not: []string{asked.Name}},
	})
	first := awaitRunning(t, asked, a.ID, 1)[0]
	firstSite, second := fed.Sites[0], fed.Sites[1]
	if first.Site == second.Name {
		firstSite, second = second, firstSite
	}
	_, _, err := firstSite.Do(within(t), http.MethodPost, "/v1/drain", http.Header{"Content-Type": {"application/json"}}, nil)
	must(t, err) // so that the next attempt runs elsewhere
	must(t, os.WriteFile(gate, nil, 0o600))
	awaitEnd(t, asked, a.ID)

	if last := tasksOf(t, asked, a.ID)[0]; last.Attempt != 2 || last.Site != second.Name {
		t.Fatalf("the task ended as %+v, want attempt 2 at %s", last, second.Name)
	}
	read := func(s *testbed.Site, attempt int) (string, error) {
		data, _, err := s.Do(within(t), http.MethodGet, fmt.Sprintf("/v1/jobs/%s/logs?attempt=%d", a.ID, attempt), nil, nil)
		return string(data), err
	}
	for attempt, at := range map[int]*testbed.Site{1: firstSite, 2: second} {
		want := fmt.Sprintf("attempt %d at %s\n", attempt, at.Name)
		if got, err := read(asked, attempt); err != nil || got != want {
			t.Errorf("its owner shows %q, %v; want %q", got, err, want)
		}
		if got, err := read(at, attempt); err == nil || !strings.Contains(err.Error(), "not-owner") {
			t.Errorf("%s shows another site's output %q, %v", at.Name, got, err)
		}
	}

	// Both have come home, so the site that ran one may go; an attempt that was never made is known not to exist.
	awaitBrought(t, asked, 2)
	must(t, firstSite.Kill())
	var refused *testbed.HTTPError
	if got, err := read(asked, 1); err != nil || got != fmt.Sprintf("attempt 1 at %s\n", firstSite.Name) {
		t.Errorf("the log of a site that is away: %q, %v", got, err)
	}
	if _, err := read(asked, 3); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("the log of an attempt that never was: %v", err)
	}
	must(t, fed.Restart(within(t), firstSite))
	if _, err := read(asked, 1); err != nil {
		t.Errorf("after the site's return: %v", err)
	}
}
