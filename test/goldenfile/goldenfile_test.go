package goldenfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct {
		got, want string
		line      int
		g, w      string
	}{
		{"a\nb\n", "a\nb\n", 0, "", ""},
		{"a\nx\n", "a\nb\n", 2, "x", "b"},
		{"a\n", "a\nb\n", 2, "", "b"},
		{"a\nb", "a", 2, "b", "(end)"},
		{"a\n(end)", "a", 2, "(end)", "(end)"},
	} {
		if line, g, w := firstDifference(c.got, c.want); line != c.line || g != c.g || w != c.w {
			t.Errorf("%q against %q: line %d, %q, %q", c.got, c.want, line, g, w)
		}
	}
}

func TestRewriteThenMatch(t *testing.T) {
	t.Chdir(t.TempDir())
	*rewrite = true
	Match(t, "sub/new.txt", "one\ntwo\n")
	*rewrite = false
	Match(t, "sub/new.txt", "one\ntwo\n")
	if data, err := os.ReadFile(filepath.Join("testdata", "sub", "new.txt")); err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("wrote %q, %v", data, err)
	}
}
