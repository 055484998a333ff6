package attempts

import (
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
)

func TestAllowedImages(t *testing.T) {
	p := Images{"docker.io/library/*", "ghcr.io/acme/tool", "*.example.org/*/stable/*"}
	for image, want := range map[string]bool{
		"alpine": true, "docker.io/library/alpine:3": true, "acme/alpine": false,
		"ghcr.io/acme/tool:7": true, "ghcr.io/acme/tool2": false, "ghcr.io/acme/tool/x": false,
		"a.example.org/b/stable/c": true, "a.example.org/b/beta/c": false, "evil.org/docker.io/library/alpine": false,
	} {
		_, err := p.Admit(image)
		if (err == nil) != want || err != nil && !errors.Is(err, executor.ErrUnfit) {
			t.Errorf("%s: got %v, want allowed: %v", image, err, want)
		}
	}
	if _, err := (Images{}).Admit("any.org/thing"); err != nil {
		t.Errorf("without patterns: %v", err)
	}
}
