//go:build container

package container

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/container/engines"
	"github.com/cloudshare/cloudshare/test/testbed/solo"
)

// TestHandlersSideBySide: one broker with commands and containers, each with labels
// and a bound of tasks of its own. The image or its absence, and selectors, say where
// a job goes; each handler keeps its bound; what fits neither hears why.
func TestHandlersSideBySide(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	s := newSite(t, "a", append(containers(e, "--container-cores", "2", "--handlers-container-tasks", "1", "--handlers-container-labels", "net=none"),
		"--bootstrap", "--cores", "2", "--handlers-local-tasks", "1", "--handlers-local-labels", "disk=ssd")...)
	s.Await("labels", func() error { return says(s, "/v1/sites", `"net":"none"`) })
	const where = "echo $CLOUDSHARE_WORKDIR"
	image := func(script string, selectors ...string) map[string]any {
		spec := shell(script)
		spec["selectors"] = selectors
		return spec
	}
	command := func(script string, selectors ...string) map[string]any {
		return map[string]any{"command": []string{"/bin/sh", "-c", script}, "selectors": selectors}
	}

	for _, spec := range []map[string]any{image(where), image(where, "net=none", "!disk"), image(where, "handler=container")} {
		if out := s.Succeeds(s.Accept(spec)); out != "/.cloudshare/work\n" {
			t.Errorf("%v: %q", spec["selectors"], out)
		}
	}
	for _, spec := range []map[string]any{command(where), command(where, "disk in (ssd,nvme)"), command(where, "handler!=container")} {
		if out := s.Succeeds(s.Accept(spec)); !strings.HasPrefix(out, s.Dir+"/local/") {
			t.Errorf("%v: %q", spec["selectors"], out)
		}
	}

	for reason, spec := range map[string]map[string]any{
		"no machine of the federation that runs container images has disk=ssd": image(where, "disk=ssd"),
		"no machine of the federation has handler=container":                   command(where, "handler=container"),
	} {
		if j := s.Reaches(s.Accept(spec), "queued"); !strings.Contains(j.Reason, reason) {
			t.Errorf("%v waits because of %q, want %q", spec["selectors"], j.Reason, reason)
		}
	}

	for kind, spec := range map[string]map[string]any{"container": image("sleep 1000"), "local": command("sleep 1000")} {
		first := s.Accept(spec)
		s.Reaches(first, "running")
		second := s.Accept(spec)
		s.Reaches(second, "queued")
		s.Await("why it waits", func() error {
			return says(s, "/v1/jobs/"+second+"/why", "full: "+kind+" ")
		})
		for _, id := range []string{first, second} {
			must(t, s.Cancel(t.Context(), id))
			s.Reaches(id, "cancelled")
		}
	}
}

// TestRefusedAtHomeRunsElsewhere: what the owner's own policy of images forbids goes
// to a site that allows it.
func TestRefusedAtHomeRunsElsewhere(t *testing.T) {
	e := engines.Start(t, engines.Docker)
	a := newSite(t, "a", append(containers(e, "--container-images", "ghcr.io/nobody/*"), "--bootstrap")...)
	b := newSite(t, "b", append(containers(e), a.Invites("b")...)...)
	a.Await("the machines of b", func() error { return says(a, "/v1/sites", `"name":"container"`, b.Site.Name) })
	id := a.Accept(shell("echo at $CLOUDSHARE_SITE"))
	if out := a.Succeeds(id); out != "at b\n" {
		t.Errorf("it said %q", out)
	}
}

// says is nil if an answer has each of the texts.
func says(s *solo.Broker, path string, texts ...string) error {
	body, _, err := s.Do(s.Context(), http.MethodGet, path, nil, nil)
	for _, text := range texts {
		if err == nil && !strings.Contains(string(body), text) {
			err = errors.New(string(body))
		}
	}
	return err
}
