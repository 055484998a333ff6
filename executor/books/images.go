package books

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
)

// ImageName is an image's name in full.
type ImageName struct {
	name   string // "docker.io/library/alpine"
	suffix string // ":3.20" or "@sha256:…"
}

// String is the whole name.
func (r ImageName) String() string { return r.name + r.suffix }

var (
	pathForm   = regexp.MustCompile(`^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$`)
	hostForm   = regexp.MustCompile(`^(?:[A-Za-z0-9]+(?:[.-][A-Za-z0-9-]+)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?$`)
	tagForm    = regexp.MustCompile(`^:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	digestForm = regexp.MustCompile(`^(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?@sha256:[0-9a-f]{64}$`)
)

// ParseImage reads a name as engines do: without a registry it is Docker
// Hub's, without a tag it is the latest.
func ParseImage(text string) (r ImageName, err error) {
	if len(text) > 255+128+80 {
		return r, errors.New("name too long")
	}
	r.name = text
	if i := strings.IndexByte(r.name, '@'); i >= 0 {
		r.name, r.suffix = r.name[:i], r.name[i:]
	}
	if i := strings.LastIndexByte(r.name, ':'); i > strings.LastIndexByte(r.name, '/') {
		r.name, r.suffix = r.name[:i], r.name[i:]+r.suffix
	}
	if r.suffix == "" {
		r.suffix = ":latest"
	}
	host, path, slash := strings.Cut(r.name, "/")
	switch {
	case !slash:
		host, path = "docker.io", "library/"+host
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		host, path = "docker.io", r.name
	}
	if !hostForm.MatchString(host) || !pathForm.MatchString(path) || !tagForm.MatchString(r.suffix) && !digestForm.MatchString(r.suffix) {
		return r, errors.New("not a name of an image, such as alpine:3.20 or registry.example.org/team/tool@sha256:…")
	}
	r.name = host + "/" + path
	return r, nil
}

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
func (p Images) Admit(image string) (ImageName, error) {
	r, err := ParseImage(image)
	if err != nil {
		return r, fmt.Errorf("%w: image %.100q: %w", executor.ErrUnfit, image, err)
	}
	for _, pattern := range p {
		if matches(pattern, r.name) {
			return r, nil
		}
	}
	if len(p) == 0 {
		return r, nil
	}
	return r, fmt.Errorf("%w: image %s is not among those that this site allows", executor.ErrUnfit, r.name)
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
