package files

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckPath(t *testing.T) {
	long := strings.Repeat("n", MaxName)
	for _, good := range []string{
		"a", "a/b", ".hidden", "..a", "a..", "...", "a b", `a\b`, "ü/日本", "~", "-rf", "a:b", "%2e%2e", long,
		strings.Repeat(long[:127]+"/", 7) + long[:128],
	} {
		if err := CheckPath(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/..", "../a", "a/../b", "a\x00b", "a\nb", "\x1b[2J", "a\u0085",
		"\xff", long + "n", strings.Repeat("a/", MaxPath/2) + "a",
	} {
		if err := CheckPath(bad); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCheckPaths(t *testing.T) {
	if err := CheckPaths([]string{"b", "a/c", "a/b", "a-b", "a.b/c"}); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]string{{"a", "a"}, {"a/b", "a"}, {"a", "a-b", "a/b/c"}, {"x", "a/b/c", "a/b"}} {
		if err := CheckPaths(bad); !errors.Is(err, ErrOverlap) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := CheckPaths([]string{"a", "../b"}); !errors.Is(err, ErrPath) {
		t.Error(err)
	}
}

func TestPathsBelowAFolderFollowIt(t *testing.T) {
	want := []string{"a", "a/b", "a/b/c", "a/b!", "a!", "a-b", "a0", "b"}
	if got := slices.SortedFunc(slices.Values(want), ComparePaths); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A comparison with all others finds the same overlaps.
func TestOverlapsAsFoundInPairs(t *testing.T) {
	name := rapid.StringMatching(`[ab!-]{1,2}`)
	rapid.Check(t, func(rt *rapid.T) {
		paths := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return strings.Join(rapid.SliceOfN(name, 1, 3).Draw(rt, "names"), "/")
		}), 0, 8).Draw(rt, "paths")
		overlap := false
		for i, a := range paths {
			for k, b := range paths {
				overlap = overlap || i != k && (a == b || strings.HasPrefix(b, a+"/"))
			}
		}
		if err := CheckPaths(paths); errors.Is(err, ErrOverlap) != overlap {
			rt.Fatalf("%q: %v, and in pairs %t", paths, err, overlap)
		}
	})
}
