//go:build container

package container

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/cloudshare/cloudshare/test/container/engines"
)

// TestBothKinds: one site with a core for commands and one for containers; each
// job goes where it can run, and one that fits nowhere hears why.
func TestBothKinds(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e, "--container-images", "cloudshare.test/*", "--container-pull", "never"), "--bootstrap")...)
	image := s.Accept(shell("echo in $CLOUDSHARE_WORKDIR at $CLOUDSHARE_SITE"))
	command := s.Accept(map[string]any{"command": []string{"/bin/sh", "-c", "echo in $CLOUDSHARE_WORKDIR"}})
	if out := s.Succeeds(image); out != "in /.cloudshare/work at a\n" {
		t.Errorf("the image's task said %q", out)
	}
	if out := s.Succeeds(command); !strings.HasPrefix(out, "in "+s.Dir+"/local/") {
		t.Errorf("the command's task said %q", out)
	}
	foreign := shell("true")
	foreign["image"] = "alpine"
	if j := s.Reaches(s.Accept(foreign), "failed"); !strings.Contains(s.Only(j.ID).Reason, "not among those that this site allows") {
		t.Errorf("an image that is not allowed: %q", s.Only(j.ID).Reason)
	}
	big := shell("true")
	big["resources"] = map[string]any{"cpu": 2}
	if j := s.Reaches(s.Accept(big), "queued"); j.Reason == "" {
		t.Error("two cores in a container wait without a reason")
	} else {
		t.Log(j.Reason)
	}
	cancelled := s.Accept(shell("sleep 1000"))
	s.Reaches(cancelled, "running")
	must(t, s.Cancel(t.Context(), cancelled))
	s.Reaches(cancelled, "cancelled")
	s.Await("no container", func() error { return none(t.Context(), e) })
}

// TestBrokerKilled: the task goes on, and the next broker adopts it.
func TestBrokerKilled(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e), "--bootstrap")...)
	id := s.Accept(shell("echo begun; sleep 4; echo ended"))
	s.Says(id, "begun\n")
	s.End(syscall.SIGKILL)
	s.Start()
	if out := s.Succeeds(id); out != "begun\nended\n" || s.Only(id).Attempt != 1 {
		t.Errorf("attempt %d said %q, want one run", s.Only(id).Attempt, out)
	}
}

// TestFenceOfAForeignTask: a site's broker is dead, and so is its engine; the
// container of another site's task ends by itself before the lease is over, and
// the task runs again once the site is back.
func TestFenceOfAForeignTask(t *testing.T) {
	e := engines.Start(t, engines.Docker, engines.Flags("--live-restore"))
	a := newSite(t, "a", "--bootstrap", "--cores", "1")
	b := newSite(t, "b", append(containers(e), a.Invites("b")...)...)
	id := a.Accept(shell("echo begun; sleep 1000"))
	a.Says(id, "begun\n")
	dead := death(t, e)
	b.End(syscall.SIGKILL)
	must(t, e.Signal(syscall.SIGSTOP)) // it hangs: nobody could ask it
	began := a.Only(id)
	a.Reaches(id, "queued")
	if !dead() {
		t.Error("its container lives while another site may run it")
	}
	must(t, e.Signal(syscall.SIGCONT))
	a.Await("the engine knows", func() error { return none(t.Context(), e) })
	b.Start()
	a.Reaches(id, "running") // what the first attempt has written is at b, too
	a.Says(id, "begun\n")
	if now := a.Only(id); now.Attempt != began.Attempt+1 {
		t.Errorf("attempt %d after %d", now.Attempt, began.Attempt)
	}
	must(t, a.Cancel(t.Context(), id))
	a.Reaches(id, "cancelled")
}

// TestFetchingIsTheReason of a task that waits for its image.
func TestFetchingIsTheReason(t *testing.T) {
	registry := engines.StartRegistry(t)
	registry.Hold = make(chan struct{})
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e), "--bootstrap")...)
	id := s.Accept(map[string]any{"image": registry.Image()})
	s.Await("the reason", func() error {
		if r := s.Only(id).Reason; !strings.Contains(r, "fetching image "+registry.Image()) {
			return errors.New(r)
		}
		return nil
	})
	close(registry.Hold)
	if out := s.Succeeds(id); out != "from the image\n" {
		t.Errorf("it said %q", out)
	}
}

// TestEngineAway: nothing is offered while the engine is dead, and jobs say so;
// they run when it is back.
func TestEngineAway(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e), "--bootstrap")...)
	must(t, e.Signal(syscall.SIGKILL))
	s.Await("its status", func() error {
		b, _, err := s.Do(t.Context(), http.MethodGet, "/v1/status", nil, nil)
		if err == nil && !strings.Contains(string(b), "no containers: ") {
			err = errors.New(string(b))
		}
		return err
	})
	id := s.Accept(shell("echo ran"))
	if j := s.Reaches(id, "queued"); !strings.Contains(j.Reason, "no present site runs container images") {
		t.Errorf("it waits because of %q", j.Reason)
	}
	must(t, e.Run(t.Context()))
	if out := s.Succeeds(id); out != "ran\n" {
		t.Errorf("it said %q", out)
	}
}
