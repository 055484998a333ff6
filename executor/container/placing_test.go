package container

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/executor"
)

// TestFewFilesAreMountedAlone: they hide nothing of the image.
func TestFewFilesAreMountedAlone(t *testing.T) {
	var files []executor.File
	for i := range maxFileMounts {
		files = append(files, executor.File{Path: fmt.Sprintf("/etc/%d", i)})
	}
	if p, err := placeFiles(files); err != nil || len(p.folders) > 0 || len(p.single) != maxFileMounts {
		t.Errorf("%d folders, %d files, %v", len(p.folders), len(p.single), err)
	}
	p, err := placeFiles(append(files, executor.File{Path: "/x"}, executor.File{Path: "/data/a/b"}, executor.File{Path: "/data/a/c"}))
	if err != nil || len(p.folders) != 1 || p.folders[0].path != "/etc" || len(p.single) != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, own := range []string{"/.cloudshare/run/init", "/proc/self", "/sys/x", "/dev/null", "/.cloudshare"} {
		if _, err = placeFiles([]executor.File{{Path: own}}); !errors.Is(err, executor.ErrUnfit) {
			t.Errorf("%s: %v", own, err)
		}
	}
	for i := range files {
		files[i].Path = fmt.Sprintf("/%d", i)
	}
	if _, err = placeFiles(append(files, executor.File{Path: "/more"})); !errors.Is(err, executor.ErrUnfit) {
		t.Errorf("files in the root: %v", err)
	}
	for i := range files {
		files[i].Path = fmt.Sprintf("/%d/x", i)
	}
	if _, err = placeFiles(append(files, executor.File{Path: "/more/x"})); !errors.Is(err, executor.ErrUnfit) {
		t.Errorf("each in a folder of its own: %v", err)
	}
}

// TestEveryFileHasItsPlace: exactly one, by few mounts, none of them in another one that comes later.
func TestEveryFileHasItsPlace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "ab"})
		seen := map[string]bool{}
		var files []executor.File
		for range rapid.IntRange(0, 300).Draw(rt, "files") {
			p := ""
			for range rapid.IntRange(0, 3).Draw(rt, "depth") {
				p += "/" + name.Draw(rt, "folder")
			}
			p += fmt.Sprintf("/f%d", rapid.IntRange(0, 80).Draw(rt, "file"))
			if !seen[p] {
				seen[p] = true
				files = append(files, executor.File{Path: p})
			}
		}
		p, err := placeFiles(files)
		if err != nil {
			if !errors.Is(err, executor.ErrUnfit) {
				rt.Fatal(err)
			}
			return
		}
		var got []string
		for _, f := range p.single {
			got = append(got, f.Path)
		}
		for _, folder := range p.folders {
			for _, f := range folder.files {
				got = append(got, folder.path+"/"+f.Path)
			}
		}
		if p.mounts() > maxFileMounts || len(got) != len(files) {
			rt.Fatalf("%d mounts, %d of %d files", p.mounts(), len(got), len(files))
		}
		slices.Sort(got)
		for i, path := range got {
			if !seen[path] || i > 0 && path == got[i-1] {
				rt.Fatalf("%q is there, or twice", path)
			}
		}
	})
}
