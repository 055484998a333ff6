package jobinputs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// TestInputsAreFoundAndSized: a spec that names what is in its user's part of the store gets its sizes.
func TestInputsAreFoundAndSized(t *testing.T) {
	r := newRig(t)
	one, dir, many := r.put("ann", "one"), r.manifest("ann", "a", "b/c"), r.manifest("ann", "1", "2", "333")
	given := []jobspec.Input{
		file("in.txt", one), folder("cfg", dir), each("task.txt", many),
		{Path: "run.sh", From: jobspec.FromContent, Content: []byte("date")},
		{Path: "u", From: jobspec.FromURL, URL: "https://x", Blob: unsized(one)},
	}
	s := specOf(given...)
	s.Count = 3
	if _, err := r.Begin().Resolve("ann", s); err != nil {
		t.Fatal(err)
	}
	want := int64(3 + len(big("a")) + len(big("b/c")) + len(big("333")) + 4 + 3)
	if s.FileBytes != want {
		t.Errorf("%d bytes, want %d", s.FileBytes, want)
	}
	for i, b := range []files.Blob{one, dir, many} {
		if s.Inputs[i].Blob != b {
			t.Errorf("input %d is %v, want %v", i, s.Inputs[i].Blob, b)
		}
	}
	if given[0].Blob.Size != jobspec.UnknownSize {
		t.Error("the caller's own inputs were changed")
	}
}

// TestWrongInputsAreNamed: each is refused by the field that is to be mended, and told from those whose bytes are
// missing, which are to be sent.
func TestWrongInputsAreNamed(t *testing.T) {
	r := newRig(t)
	one, dir, many := r.put("ann", "one"), r.manifest("ann", "a", "b/c"), r.manifest("ann", "1", "2", "3")
	gone := files.BlobOf([]byte(big("gone")))
	hole := r.encoded("ann", []files.Entry{{Path: "x", Size: gone.Size, Hash: gone.Hash}})
	lie := r.encoded("ann", []files.Entry{{Path: "x", Size: 1 << 40, Hash: one.Hash}})
	empty := r.encoded("ann", nil)
	five := specOf(each("x", many))
	five.Count = 5
	three := func(inputs ...jobspec.Input) *jobspec.Spec {
		s := specOf(inputs...)
		s.Count = 3
		return s
	}
	numbered := specOf(each("x", many))
	numbered.Indices.Add(3)
	said := file("a", one)
	said.Blob.Size = 4
	for want, s := range map[string]*jobspec.Spec{
		"inputs.0.sha256":   specOf(file("a", gone)),
		"inputs.1.sha256":   specOf(file("b", one), file("a", r.put("bob", "bob's"))),
		"inputs.0.size":     specOf(said),
		"inputs.0.manifest": specOf(folder("d", one)),
		"inputs.1.manifest": specOf(file("a", one), folder("d", hole)),
		"inputs.2.manifest": specOf(file("a", one), file("b", one), folder("d", lie)),
		"inputs.0.each":     five,
		"inputs.1.each":     three(each("a", many), each("b", dir)),
		"inputs.2.each":     specOf(file("a", one), file("b", one), each("x", empty)),
		"inputs.3.each":     specOf(each("a", r.manifest("ann", "1")), file("b", one), file("c", one), each("x", many)),
		"inputs.4.each":     three(file("e", one), file("a", one), file("b", one), file("c", one), each("x", dir)),
		"inputs.0.url":      specOf(jobspec.Input{Path: "x", From: jobspec.FromURL, URL: "https://x"}),
		"inputs.0":          specOf(jobspec.Input{Path: "x", From: 99}),
	} {
		_, err := r.Begin().Resolve("ann", s)
		if refused(err) != want {
			t.Errorf("want %s refused: %v", want, err)
		}
		missing := slices.Contains([]string{"inputs.0.sha256", "inputs.1.sha256", "inputs.1.manifest", "inputs.0.url"}, want)
		if in, ok := errors.AsType[*node.InputError](err); ok && in.Missing != missing {
			t.Errorf("%s is missing %t: %v", want, in.Missing, err)
		}
	}
	if _, err := r.Begin().Resolve("ann", numbered); refused(err) != "inputs.0.each" {
		t.Errorf("the fourth of three files: %v", err)
	}
	last := specOf(each("x", many))
	last.Indices.Add(2)
	if _, err := r.Begin().Resolve("ann", last); err != nil {
		t.Errorf("the third of three files: %v", err)
	}
}

// TestInputsOverlap: files of directories count, wherever the directories are.
func TestInputsOverlap(t *testing.T) {
	r := newRig(t)
	one, empty := r.put("", "one"), r.encoded("", nil)
	dir, inner := r.manifest("", "a", "sub/b"), r.manifest("", "b", "c")
	for _, c := range []struct {
		inputs  []jobspec.Input
		overlap bool
	}{
		{[]jobspec.Input{file("x", one), file("x", one)}, true},
		{[]jobspec.Input{file("x", one), file("x/y", one)}, true},
		{[]jobspec.Input{file("x/y", one), file("x", one)}, true},
		{[]jobspec.Input{file("x/y", one), file("x/z", one), file("xy", one)}, false},
		{[]jobspec.Input{folder("d", dir), file("d/a", one)}, true},
		{[]jobspec.Input{folder("d", dir), file("d/sub", one)}, true},
		{[]jobspec.Input{file("d/a/deep", one), folder("d", dir)}, true},
		{[]jobspec.Input{folder("d", dir), file("d/sub/new", one), file("d/new", one)}, false},
		{[]jobspec.Input{folder("d", dir), file("d", one)}, true},
		{[]jobspec.Input{folder("d", empty), folder("d", dir)}, false},
		{[]jobspec.Input{folder("d", dir), folder("d/sub", inner)}, true},
		{[]jobspec.Input{folder("d/sub", inner), folder("d", dir)}, true},
		{[]jobspec.Input{folder("d", dir), folder("d/other", inner), folder("d/other", dir)}, false},
		{[]jobspec.Input{folder(".", dir), file("a", one)}, true},
		{[]jobspec.Input{folder(".", dir), file("new", one)}, false},
		{[]jobspec.Input{folder("d", dir), each("d/a", r.manifest("", "b"))}, true},
		{[]jobspec.Input{folder("/opt", dir), file("/opt/a", one)}, true},
		{[]jobspec.Input{folder("/opt", dir), file("opt/a", one)}, false},
	} {
		_, err := r.Begin().Resolve("", specOf(c.inputs...))
		if got := strings.HasSuffix(refused(err), ".path"); got != c.overlap || err != nil && !got {
			t.Errorf("%v: %v", placesOf(c.inputs), err)
		}
	}
}

func placesOf(inputs []jobspec.Input) (places []string) {
	for i := range inputs {
		places = append(places, inputs[i].Path)
	}
	return places
}

// TestManifestIsReadOnceACall: a thousand jobs of one directory do not read it a thousand times.
func TestManifestIsReadOnceACall(t *testing.T) {
	r := newRig(t)
	dir := r.manifest("", "a", "b")
	path, err := r.files.Path(store.OwnOf(""), dir.Hash)
	if err != nil {
		t.Fatal(err)
	}
	call := r.Begin()
	for i := range 1000 {
		if _, err := call.Resolve("", specOf(folder("d", dir))); err != nil {
			t.Fatalf("job %d: %v", i, err)
		}
		if i == 0 { // whoever reads it again finds nothing
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := r.Begin().Resolve("", specOf(folder("d", dir))); refused(err) != "inputs.0.manifest" {
		t.Errorf("the next call: %v", err)
	}
}

// TestNamedFilesAreBounded: of one call, and of all live jobs together.
func TestNamedFilesAreBounded(t *testing.T) {
	r := newRig(t)
	r.most = 5
	dirs := []files.Blob{r.manifest("", "a", "b"), r.manifest("", "c", "d"), r.manifest("", "e", "f")}
	call := r.Begin()
	for i, dir := range dirs {
		f, err := call.Resolve("", specOf(folder("d", dir)))
		if full := errors.Is(err, node.ErrFull); full != (i == 2) || !full && err != nil {
			t.Fatalf("directory %d: %v", i, err)
		}
		if err == nil {
			r.Keep(uint64(i+1), f)
		}
	}
	if _, err := r.Begin().Resolve("", specOf(folder("d", dirs[2]))); !errors.Is(err, node.ErrFull) {
		t.Errorf("beside two live jobs: %v", err)
	}
	r.Release(1)
	if _, err := r.Begin().Resolve("", specOf(folder("d", dirs[2]))); err != nil {
		t.Errorf("when one has ended: %v", err)
	}
}

// TestTooMuchForATask: bytes and files of all inputs together are bounded.
func TestTooMuchForATask(t *testing.T) {
	r := newRig(t)
	var entries []files.Entry
	for i := range files.MaxEntries {
		entries = append(entries, files.Entry{Path: fmt.Sprintf("%06d", i), Hash: files.HashOf(nil), Inline: []byte{}})
	}
	full := r.encoded("", entries)
	if _, err := r.Begin().Resolve("", specOf(folder("d", full))); err != nil {
		t.Fatal(err)
	}
	inputs := []jobspec.Input{folder("d", full), file("x", r.put("", "one"))}
	if _, err := r.Begin().Resolve("", specOf(inputs...)); refused(err) != "inputs.1" {
		t.Errorf("one file more than a task may have: %v", err)
	}
	slices.Reverse(inputs)
	if _, err := r.Begin().Resolve("", specOf(inputs...)); refused(err) != "inputs.1" {
		t.Errorf("the other way round: %v", err)
	}
}
