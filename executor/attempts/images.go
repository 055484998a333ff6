package attempts

import (
	"fmt"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
)

// Images are patterns of the images that may run, of names with their registry
// and without a tag, such as "docker.io/library/*"; "*" stands for anything. None
// allows all.
type Images []string

// maxImages bounds the patterns.
const maxImages = 1000

// Validate names the first pattern that cannot be one.
func (p Images) Validate() error {
	if len(p) > maxImages {
		return fmt.Errorf("%d patterns of images: at most %d", len(p), maxImages)
	}
	for _, text := range p {
		if text == "" || strings.ContainsAny(text, " \t@") {
			return fmt.Errorf("image pattern %q: must be a name with its registry, such as docker.io/library/*", text)
		}
	}
	return nil
}

// Admit says why an image may not run here, an executor.ErrUnfit, or what its name
// is in full.
func (p Images) Admit(image string) (executor.ImageName, error) {
	r, err := executor.ParseImage(image)
	if err != nil {
		return r, fmt.Errorf("%w: image %.100q: %w", executor.ErrUnfit, image, err)
	}
	for _, pattern := range p {
		if matches(pattern, r.Repository()) {
			return r, nil
		}
	}
	if len(p) == 0 {
		return r, nil
	}
	return r, fmt.Errorf("%w: image %s is not among those that this site allows", executor.ErrUnfit, r.Repository())
}

// matches compares a name with a pattern in which "*" stands for anything.
func matches(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	for ok {
		head, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, head)
		}
		_, name, ok = strings.Cut(name, head)
	}
	return false
}
