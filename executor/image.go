package executor

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// ImageName is an image's name in full.
type ImageName struct {
	repository string // "docker.io/library/alpine"
	suffix     string // ":3.20" or "@sha256:…"
}

// String returns the whole name.
func (n ImageName) String() string { return n.repository + n.suffix }

// Repository returns the name with its registry, without tag and digest.
func (n ImageName) Repository() string { return n.repository }

// MaxImageName bounds a name, in bytes.
const MaxImageName = 255 + 128 + 80

// form returns a regular expression that is compiled at its first use: this program is also what supervises each task,
// and names no image there.
func form(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var (
	pathForm   = form(`^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$`)
	hostForm   = form(`^(?:[A-Za-z0-9]+(?:[.-][A-Za-z0-9-]+)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?$`)
	tagForm    = form(`^:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	digestForm = form(`^(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?@sha256:[0-9a-f]{64}$`)
)

// ParseImage reads a name as engines do: without a registry it is Docker
// Hub's, without a tag it is the latest.
func ParseImage(text string) (n ImageName, err error) {
	if len(text) > MaxImageName {
		return n, fmt.Errorf("%d bytes long, and the name of an image has at most %d", len(text), MaxImageName)
	}
	n.repository = text
	if i := strings.IndexByte(n.repository, '@'); i >= 0 {
		n.repository, n.suffix = n.repository[:i], n.repository[i:]
	}
	if i := strings.LastIndexByte(n.repository, ':'); i > strings.LastIndexByte(n.repository, '/') {
		n.repository, n.suffix = n.repository[:i], n.repository[i:]+n.suffix
	}
	if n.suffix == "" {
		n.suffix = ":latest"
	}
	host, path, slash := strings.Cut(n.repository, "/")
	switch {
	case !slash:
		host, path = "docker.io", "library/"+host
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		host, path = "docker.io", n.repository
	}
	if !hostForm().MatchString(host) || !pathForm().MatchString(path) || !tagForm().MatchString(n.suffix) &&
		!digestForm().MatchString(n.suffix) {
		return n, errors.New("not a name of an image, such as alpine:3.20 or registry.example.org/team/tool@sha256:…")
	}
	n.repository = host + "/" + path
	return n, nil
}
