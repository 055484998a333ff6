package command

import (
	"maps"
	"strings"
	"testing"
)

// TestFilesSelectorAndLabelsMeet: a machine's labels satisfy the selector of a job if and only if they promise its
// bytes to the owner.
func TestFilesSelectorAndLabelsMeet(t *testing.T) {
	const g = 1 << 30
	for bytes, class := range map[int64]int64{
		0: g, 1: g, g: g, g + 1: 4 * g, 16 * g: 16 * g, 17 * g: 64 * g,
		256*g + 1: 1024 * g, 1024*g + 1: MaxOutputBytes, MaxOutputBytes: MaxOutputBytes,
	} {
		for _, owner := range []string{"a", "b", "zz"} {
			r, err := ParseSelector(FilesSelector(owner, bytes))
			if err != nil || CheckSelectors([]string{FilesSelector(owner, bytes)}) != nil {
				t.Fatal(err)
			}
			for _, lend := range []int64{0, g - 1, g, 16 * g, 256*g + 5, MaxOutputBytes} {
				labels, err := LabelsOf(FilesLabels("a", lend, 256*g))
				if err != nil {
					t.Fatal(err)
				}
				if want := class <= lend || owner == "a" && class <= 256*g; r.Admits(labels.Pairs()) != want {
					t.Errorf("%d bytes of %s at a, which lends %d (%s): want %t", bytes, owner, lend, labels, want)
				}
			}
		}
	}
	if l := FilesLabels("a", 0, 0); len(l) != 0 {
		t.Errorf("of nothing: %v", l)
	}
	if got, want := FilesLabels("a", 16*g, MaxOutputBytes), map[string]string{
		"cloudshare/files-1g": FilesAll, "cloudshare/files-4g": FilesAll, "cloudshare/files-16g": FilesAll,
		"cloudshare/files-64g": "a", "cloudshare/files-256g": "a", "cloudshare/files-1t": "a", "cloudshare/files-4t": "a",
	}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestFilesSelectorsAreKnown: what a job's own selectors may not name.
func TestFilesSelectorsAreKnown(t *testing.T) {
	const label = "cloudshare/files-16g"
	for text, want := range map[string]bool{
		FilesSelector("a", 5<<30): true, label: true, "!" + label: true, label + "=x": true, label + "!=x": true,
		label + "b": false, "cloudshare/files": false, "files-16g": false, "a=" + label: false, NetworkSelector("a"): false,
	} {
		if IsFilesSelector(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
	if wish := FilesWish(FilesSelector("a", 5<<30)); !strings.HasSuffix(wish, "16 GiB") {
		t.Error(wish)
	}
}

// TestFilesLent: a class is promised as long as all of it can come some day, and something of it can come now.
func TestFilesLent(t *testing.T) {
	const g = 1 << 30
	for _, c := range []struct{ now, ever, want int64 }{
		{0, 0, 0},
		{g, g - 1, 0},
		{1, g, g},
		{0, g, 0},
		{g, 16 * g, g},
		{g + 1, 4 * g, 4 * g},
		{g + 1, 4*g - 1, g},
		{5 * g, 16 * g, 16 * g},
		{17 * g, 4096 * g, 64 * g},
		{5000 * g, 5000 * g, 4096 * g},
	} {
		if got := FilesLent(c.now, c.ever); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
