package executor

import (
	"path"
	"strings"
	"testing"
)

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		glob, path           string
		match, folder, holds bool // the path is a file that is meant, a folder whose files are, one that may hold such
	}{
		{"a", "a", true, false, false},
		{"a", "b", false, false, false},
		{"a", "a/b", false, false, false},
		{"a/", "a", false, true, true},
		{"a/", "a/b", true, false, true},
		{"a/", "a/b/c", true, false, true},
		{"a/", "ab/c", false, false, false},
		{"./", "", false, true, true},
		{"./", "a", true, false, true},
		{"./", "a/.b", true, false, true},
		{"*.csv", "x.csv", true, false, false},
		{"*.csv", ".x.csv", false, false, false},
		{".*", ".x", true, false, false},
		{`\.x`, ".x", true, false, false},
		{"*/x", "a", false, false, true},
		{"*/x", "a/x", true, false, false},
		{"*/x", "a/y", false, false, false},
		{"*/x", "a/b/x", false, false, false},
		{"a/b/c*", "a", false, false, true},
		{"a/b/c*", "a/b", false, false, true},
		{"a/b/c*", "a/d", false, false, false},
		{"[a-c]?/", "b1", false, true, true},
		{"[a-c]?/", "d1/x", false, false, false},
	} {
		g, err := ParseGlob(c.glob)
		if err != nil {
			t.Errorf("%s: %v", c.glob, err)
			continue
		}
		if got := g.Match(c.path); got != c.match {
			t.Errorf("%s matches %q: %v", c.glob, c.path, got)
		}
		if got := g.MatchFolder(c.path); got != c.folder {
			t.Errorf("%s has the folder %q: %v", c.glob, c.path, got)
		}
		if got := g.MayHold(c.path); got != c.holds {
			t.Errorf("%s may hold what is in %q: %v", c.glob, c.path, got)
		}
	}
	for _, bad := range []string{
		"", "/", "/etc/passwd", "..", "../x", "a/../b", "a//b", "./a", ".", "a/./", "[a", `a\`, "**", "a/**/b", "**/",
		"a\x00", "a\n", "\xff", strings.Repeat("a/", 600) + "a", strings.Repeat("n", 256),
	} {
		if g, err := ParseGlob(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, g)
		}
	}
}

func TestCheckFiles(t *testing.T) {
	files := func(paths ...string) (list []File) {
		for _, p := range paths {
			list = append(list, File{Path: p})
		}
		return list
	}
	for _, good := range [][]File{nil, files("a"), files("a/b", "a/c", "a-b", "a.b", "ab"), files("a b/ü", "…"), files("a-", "a/b", "b")} {
		if err := CheckFiles(good, false); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for _, bad := range [][]File{files("a", "a"), files("a", "a/b"), files("a", "a-", "a.x", "a/b"), files("a/b/c", "x", "a/b"), files("/a")} {
		if CheckFiles(bad, false) == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	if err := CheckFiles(files("/data/x", "x", "/data/y"), true); err != nil {
		t.Errorf("absolute paths: %v", err)
	}
	if CheckFiles(files("/../x"), true) == nil || CheckFiles(files("//x"), true) == nil || CheckFiles(files("/"), true) == nil {
		t.Error("absolute paths that are none are taken")
	}
}

// FuzzCheckPath: what is taken stays below where it begins, whatever its bytes are.
func FuzzCheckPath(f *testing.F) {
	for _, p := range []string{"a", "a/b", "../a", "/a", "a/..", ".", "a//b", "a\x00b", "\xff", "a/./b"} {
		f.Add(p, false)
		f.Add(p, true)
	}
	f.Fuzz(func(t *testing.T, p string, absolute bool) {
		if CheckPath(p, absolute) != nil {
			return
		}
		if path.IsAbs(p) && !absolute {
			t.Errorf("%q is absolute", p)
		}
		if path.Clean("/"+p) != "/"+strings.TrimPrefix(p, "/") || strings.ContainsRune(p, 0) || len(p) > MaxPath+1 {
			t.Errorf("%q is taken", p)
		}
	})
}

// FuzzGlob: a pattern never matches outside of what it may hold, and no pattern panics.
func FuzzGlob(f *testing.F) {
	for _, g := range []string{"a", "*/x", "a/", "./", "[a-z]?", `\*`, "a/*.c", ".*/"} {
		f.Add(g, "a/x.c")
		f.Add(g, ".a/.b")
		f.Add(g, "a\xff/b")
	}
	f.Fuzz(func(t *testing.T, text, p string) {
		g, err := ParseGlob(text)
		if err != nil || CheckPath(p, false) != nil {
			return
		}
		if !g.Match(p) {
			return
		}
		for i, c := range p {
			if c == '/' && !g.MayHold(p[:i]) {
				t.Errorf("%q matches %q, and may hold nothing in %q", text, p, p[:i])
			}
		}
		if g.folder && g.MatchFolder(p) {
			t.Errorf("%q is a file and a folder for %q", p, text)
		}
	})
}

func TestKept(t *testing.T) {
	none := Outputs{}
	always, success := Outputs{Paths: []string{"x"}}, Outputs{Optional: []string{"x"}, When: WhenSuccess}
	for cause := Exited; cause <= Orphaned; cause++ {
		for _, code := range []int{0, 1} {
			r := Result{Cause: cause, ExitCode: code}
			if always.Kept(r) {
				t.Errorf("%+v did not run, and leaves files", r)
			}
			r.Started = r.Started.AddDate(1, 0, 0)
			own := cause == Exited || cause == TimedOut || cause == Stopped
			if none.Kept(r) || always.Kept(r) != own || success.Kept(r) != (cause == Exited && code == 0) {
				t.Errorf("%+v: kept %v, %v, %v", r, none.Kept(r), always.Kept(r), success.Kept(r))
			}
		}
	}
}
