package executor

import (
	"strings"
	"testing"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestReferences(t *testing.T) {
	for text, want := range map[string]string{
		"alpine":                       "docker.io/library/alpine:latest",
		"alpine:3.20":                  "docker.io/library/alpine:3.20",
		"acme/tool":                    "docker.io/acme/tool:latest",
		"localhost/tool:1":             "localhost/tool:1",
		"127.0.0.1:5000/tool":          "127.0.0.1:5000/tool:latest",
		"[::1]:5000/tool":              "[::1]:5000/tool:latest",
		"ghcr.io/a/b/c" + digest:       "ghcr.io/a/b/c" + digest,
		"ghcr.io/a/b:1" + digest:       "ghcr.io/a/b:1" + digest,
		"registry.example.org:443/a_b": "registry.example.org:443/a_b:latest",
	} {
		if r, err := ParseImage(text); err != nil || r.String() != want {
			t.Errorf("%s: got %q, %v; want %q", text, r, err, want)
		}
	}
	for _, text := range []string{
		"", ":", "@", "Alpine", "a b", "../x", "a/../b", "alpine:", "alpine:?x=1", "alpine@sha256:12", "/x", "x/", "a//b",
		"alpine\n", "a?force=1", "http://x/y", strings.Repeat("a", 1000), "alpine:" + strings.Repeat("t", 129),
	} {
		if r, err := ParseImage(text); err == nil {
			t.Errorf("%.40q was read as %q", text, r)
		}
	}
}

// FuzzReference: whatever a job calls an image, it is refused or becomes a path
// without anything that a URL could take for something else.
func FuzzReference(f *testing.F) {
	for _, s := range []string{"alpine", "a/b:c@sha256:", "../../x", "[::1]:5/x", "a?b", "a%2fb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseImage(text)
		if err == nil && (strings.ContainsAny(r.String(), "?%# \n\\") || strings.Contains(r.String(), "..") &&
			!strings.Contains(r.suffix, "..")) {
			t.Errorf("%q became %q", text, r)
		}
	})
}
