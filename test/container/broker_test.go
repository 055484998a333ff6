//go:build container

package container

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestBothKinds: one site with a core for commands and one for containers; each
// job goes where it can run, and one that fits nowhere hears why.
func TestBothKinds(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e, "--container-images", "cloudshare.test/*", "--container-pull", "never"), "--bootstrap")...)
	image := s.submit(shell("echo in $CLOUDSHARE_WORKDIR at $CLOUDSHARE_SITE"))
	command := s.submit(map[string]any{"command": []string{"/bin/sh", "-c", "echo in $CLOUDSHARE_WORKDIR"}})
	if out := s.succeeds(image); out != "in /.cloudshare/work at a\n" {
		t.Errorf("the image's task said %q", out)
	}
	if out := s.succeeds(command); !strings.HasPrefix(out, "in "+s.Dir+"/local/") {
		t.Errorf("the command's task said %q", out)
	}
	foreign := shell("true")
	foreign["image"] = "alpine"
	if j := s.job(s.submit(foreign), "failed"); !strings.Contains(s.only(j.ID).Reason, "not among those that this site allows") {
		t.Errorf("an image that is not allowed: %q", s.only(j.ID).Reason)
	}
	big := shell("true")
	big["resources"] = map[string]any{"cpu": 2}
	if j := s.job(s.submit(big), "queued"); j.Reason == "" {
		t.Error("two cores in a container wait without a reason")
	} else {
		t.Log(j.Reason)
	}
	cancelled := s.submit(shell("sleep 1000"))
	s.job(cancelled, "running")
	must(t, s.Cancel(t.Context(), cancelled))
	s.job(cancelled, "cancelled")
	s.await("no container", func() error { return none(t.Context(), e) })
}

// TestBrokerKilled: the task goes on, and the next broker adopts it.
func TestBrokerKilled(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e), "--bootstrap")...)
	id := s.submit(shell("echo begun; sleep 4; echo ended"))
	s.says(id, "begun\n")
	s.end(syscall.SIGKILL)
	s.start()
	if out := s.succeeds(id); out != "begun\nended\n" || s.only(id).Attempt != 1 {
		t.Errorf("attempt %d said %q, want one run", s.only(id).Attempt, out)
	}
}

// TestFenceOfAForeignTask: a site's broker is dead, and so is its engine; the
// container of another site's task ends by itself before the lease is over, and
// the task runs again once the site is back.
func TestFenceOfAForeignTask(t *testing.T) {
	e := engines.Start(t, engines.Docker, engines.Flags("--live-restore"))
	a := newSite(t, "a", "--bootstrap", "--cores", "1")
	b := newSite(t, "b", append(containers(e), "--join", a.peer)...)
	id := a.submit(shell("echo begun; sleep 1000"))
	a.says(id, "begun\n")
	b.end(syscall.SIGKILL)
	killed := time.Now()
	must(t, e.Signal(syscall.SIGSTOP)) // it hangs: nobody could ask it
	began := a.only(id)
	a.job(id, "queued")
	requeued := time.Since(killed)
	must(t, e.Signal(syscall.SIGCONT))
	a.await("its container is dead by the time that another site may run it", func() error { return none(t.Context(), e) })
	if took := time.Since(killed) - requeued; took > 2*time.Second {
		t.Errorf("its container lived for %s after it was requeued", took)
	}
	b.start()
	a.says(id, "begun\n")
	if now := a.only(id); now.Attempt != began.Attempt+1 {
		t.Errorf("attempt %d after %d", now.Attempt, began.Attempt)
	}
	must(t, a.Cancel(t.Context(), id))
	a.job(id, "cancelled")
}

// TestFetchingIsTheReason of a task that waits for its image.
func TestFetchingIsTheReason(t *testing.T) {
	registry := engines.StartRegistry(t)
	registry.Hold = make(chan struct{})
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e), "--bootstrap")...)
	id := s.submit(map[string]any{"image": registry.Image()})
	s.await("the reason", func() error {
		if r := s.only(id).Reason; !strings.Contains(r, "fetching image "+registry.Image()) {
			return &reasonError{r}
		}
		return nil
	})
	close(registry.Hold)
	if out := s.succeeds(id); out != "from the image\n" {
		t.Errorf("it said %q", out)
	}
}

// TestEngineAway: nothing is offered while the engine is dead, and jobs say so;
// they run when it is back.
func TestEngineAway(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e), "--bootstrap")...)
	must(t, e.Signal(syscall.SIGKILL))
	s.await("its status", func() error {
		b, _, err := s.Do(t.Context(), http.MethodGet, "/v1/status", nil, nil)
		if err == nil && !strings.Contains(string(b), "no containers: ") {
			err = &reasonError{string(b)}
		}
		return err
	})
	id := s.submit(shell("echo ran"))
	if j := s.job(id, "queued"); !strings.Contains(j.Reason, "no present site runs container images") {
		t.Errorf("it waits because of %q", j.Reason)
	}
	must(t, e.Run(t.Context()))
	if out := s.succeeds(id); out != "ran\n" {
		t.Errorf("it said %q", out)
	}
}
