package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// withoutAnswers is a site's API as a client sees it whose requests arrive, and who loses the answer to each that
// changes something.
func withoutAnswers(t *testing.T, s *testbed.Site) *testbed.Site {
	t.Helper()
	pass := httputil.NewSingleHostReverseProxy(s.URL)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			pass.ServeHTTP(w, r)
			return
		}
		pass.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // it hangs up
	}))
	t.Cleanup(srv.Close)
	to := *s.URL
	to.Host = strings.TrimPrefix(srv.URL, "http://")
	return &testbed.Site{Name: s.Name, Dir: s.Dir, URL: &to, TokenPath: s.TokenFile()}
}

// rotateUnheard has a site's key replaced through another site, whose answer is lost: the members know the site by its
// next key, and its data folder has the one of before as its own.
func rotateUnheard(t *testing.T, b, through *solo.Broker) {
	t.Helper()
	before := keyOf(t, through.Site, b.Site.Name)
	code, out, errs := cli(t, withoutAnswers(t, through.Site), "key", "rotate", "--data-dir", b.Dir)
	if code == 0 || !strings.Contains(errs, "restart the broker") || strings.Count(errs, "\n") != 1 {
		t.Fatalf("exit %d, without an answer\n%s%s", code, out, errs)
	}
	if after := keyOf(t, through.Site, b.Site.Name); after == before {
		t.Fatalf("the members know the key of before: %s", errs)
	}
	if _, err := os.Stat(filepath.Join(b.Dir, "key.next")); err != nil {
		t.Fatal(err)
	}
}

// inForce waits until a site takes part by the key that was to follow, and keeps no other.
func inForce(t *testing.T, b *solo.Broker, others ...*solo.Broker) {
	t.Helper()
	ready(b)
	for _, name := range []string{"key.next", "key.former"} {
		b.Await(name+" has gone", func() error {
			_, err := os.Stat(filepath.Join(b.Dir, name))
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
	}
	awaitEnd(t, b.Site, submit(t, b.Site, testbed.Spec{Command: []string{"true"}}).ID)
	sites := []*testbed.Site{b.Site}
	for _, o := range others {
		sites = append(sites, o.Site)
	}
	must(t, testbed.AwaitEqualState(within(t), sites...))
}

// saysRestart waits until a broker says that it is not ready, and that a restart helps.
func saysRestart(b *solo.Broker) {
	b.Helper()
	b.Await("it says that it is to be started again", func() error {
		if err := b.Ready(b.Context()); err == nil || !strings.Contains(err.Error(), "restart it") {
			return fmt.Errorf("/readyz: %w", err)
		}
		return nil
	})
}

// TestKeyRotationUnheard: a site that did not hear that its key was replaced is started again, and takes part by the
// next one: it asks the members. It was shut out for good: nobody talks to the key of before.
func TestKeyRotationUnheard(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 3)
	b := all[2]
	b.End(syscall.SIGKILL)
	rotateUnheard(t, b, all[0])
	b.Launch()
	if onZK() { // it reads that in the tree, and goes on with the key that it was started with
		saysRestart(b)
		b.End(syscall.SIGTERM)
		b.Launch()
	}
	inForce(t, b, all[0], all[1])
}

// TestKeyRotationUnheardByARunningBroker: one that runs learns it, too, and says what to do; the command goes on then
// without asking it.
func TestKeyRotationUnheardByARunningBroker(t *testing.T) {
	t.Parallel()
	all, _ := voters(t, 3)
	b := all[2]
	b.Send(syscall.SIGSTOP)
	rotateUnheard(t, b, all[0])
	await(t, "it is lost", func() error { // its connections are closed by then
		info, err := all[0].Info(t.Context(), b.Site.Name)
		if err == nil && info.State != "lost" {
			err = fmt.Errorf("it is %s", info.State)
		}
		return err
	})
	b.Send(syscall.SIGCONT)
	saysRestart(b)
	if code, out, errs := cli(t, b.Site, "key", "rotate", "--data-dir", b.Dir); code != 0 ||
		!strings.Contains(errs, "Restart its broker") {
		t.Fatalf("again: exit %d\n%s%s", code, out, errs)
	}
	b.End(syscall.SIGTERM)
	b.Launch()
	inForce(t, b, all[0], all[1])
}
