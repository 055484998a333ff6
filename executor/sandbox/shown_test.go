package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder makes files of a mode: "NAME MODE", a folder with "/" at its end, or "NAME -> TARGET".
func folder(t *testing.T, lines ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		f := strings.Fields(line)
		path := filepath.Join(dir, f[0])
		mode := map[string]os.FileMode{"open": 0o644, "group": 0o640, "own": 0o600, "enter": 0o711}[f[len(f)-1]]
		err = os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case f[1] == "->":
			err = errors.Join(err, os.Symlink(f[2], path))
		case strings.HasSuffix(f[0], "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o755), os.Chmod(path, mode|mode&0o444>>2))
		default:
			err = errors.Join(err, os.WriteFile(path, nil, 0o600), os.Chmod(path, mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// seen returns the parts of dir that are shown, by their names in it.
func seen(t *testing.T, v viewer, dir string) string {
	t.Helper()
	var out []string
	for _, it := range v.parts(dir) {
		name, err := filepath.Rel(dir, it.path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestSettingsThatAnybodyMayRead: of /etc what not everybody may read is not shown, by
// whatever right this user may; a folder that holds such a thing is rebuilt.
func TestSettingsThatAnybodyMayRead(t *testing.T) {
	etc := folder(t, "passwd open", "shadow group", "ssl/certs/ca.pem open", "ssl/private/ group", "ssl/private/site.key open",
		"my/a open", "my/deep/secret own", "my/deep/b open", "java/fonts open", "inner/ enter", "localtime -> ../usr/zone")
	v := viewer{settings: []string{etc}}
	if got, want := seen(t, v, etc), "java localtime my/a my/deep/b passwd ssl/certs"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	if got := seen(t, viewer{}, etc); got != "." {
		t.Errorf("of programs %q is shown, want all in one part", got)
	}
}

// TestSecretsByLinks: what the configuration names is not shown, nor what it leads to, nor
// what a later name in the same folders would show.
func TestSecretsByLinks(t *testing.T) {
	opt := folder(t, "tool/run open", "live/key.pem -> ../archive/key1.pem", "live/cert.pem open", "archive/key1.pem open",
		"archive/key2.pem own", "archive/cert1.pem open", "site -> deep/site", "deep/site/token open", "deep/site/note open", "deep/other open")
	v := viewer{hidden: places([]string{filepath.Join(opt, "live/key.pem"), filepath.Join(opt, "site/token"), "/nowhere/key"})}
	if got, want := seen(t, v, opt), "archive/cert1.pem deep/other deep/site/note live/cert.pem site tool"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	if got := seen(t, viewer{hidden: []string{opt}}, filepath.Join(opt, "tool")); got != "" {
		t.Errorf("of a folder in what is hidden %q is shown", got)
	}
}

// TestPlacesOfAMissingSecret: one that is not there yet is known by where its folder is.
func TestPlacesOfAMissingSecret(t *testing.T) {
	dir := folder(t, "at -> really", "really/x open", "loop -> loop")
	for path, want := range map[string]string{"at/key": "really/key", "at/new/key": "really/new/key", "loop": "loop"} {
		if got := places([]string{filepath.Join(dir, path)}); !slices.Contains(got, filepath.Join(dir, want)) {
			t.Errorf("%s: got %q, want %s in it", path, got, want)
		}
	}
}

// TestSharesThatLeadToSecrets: a share is refused by where it leads, not by its name.
func TestSharesThatLeadToSecrets(t *testing.T) {
	dir := folder(t, "data/journal own", "sets/a open", "toData -> data", "toAll -> .", "toSets -> sets", "file open", "toRoot -> /",
		"broker -> data")
	for share, want := range map[string]string{
		"data": "broker's own", "data/in": "no such", "toData": "broker's own", "toAll": "broker's own", "file": "not a directory", "toRoot": "root",
	} {
		p := Plan{Share: []string{filepath.Join(dir, share)}, Hide: []string{filepath.Join(dir, "broker")}}
		if _, err := p.Resolve(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("share %s: got %v, want an error with %q", share, err, want)
		}
	}
	sets := filepath.Join(dir, "sets")
	p, err := Plan{Share: []string{filepath.Join(dir, "toSets")}, Hide: []string{filepath.Join(dir, "broker")}}.Resolve()
	if err != nil || !slices.Equal(p.Resolved, []string{sets}) {
		t.Fatalf("got %q, %v", p.Resolved, err)
	}
	if err = errors.Join(os.Rename(sets, sets+"-old"), os.Symlink(filepath.Join(dir, "data"), sets)); err != nil {
		t.Fatal(err)
	}
	if _, err = openShare(sets); err == nil || !strings.Contains(err.Error(), "a link has taken") {
		t.Errorf("a share that became a link: got %v", err)
	}
}
