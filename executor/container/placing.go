package container

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container/box"
)

// maxFileMounts bounds the mounts of files with absolute paths: engines take their time for
// each.
const maxFileMounts = 64

// placing is how files with absolute paths come into a container: each by a mount of its own,
// or with all that is in its folder.
type placing struct {
	single  []executor.File
	folders []placedFolder
}

// placedFolder is a folder that is mounted, which hides what an image has there.
type placedFolder struct {
	path  string          // absolute
	files []executor.File // with paths relative to it
}

// mounts returns how many there are.
func (p *placing) mounts() int { return len(p.single) + len(p.folders) }

// placeFiles finds as few folders as it takes to have maxFileMounts at most.
func placeFiles(files []executor.File) (p placing, err error) {
	for _, f := range files {
		if own := ownPlace(f.Path); own != "" {
			return p, fmt.Errorf("%w: file %q: %s is not a job's to change", executor.ErrUnfit, f.Path, own)
		}
	}
	p.single = files
	for p.mounts() > maxFileMounts {
		dir := p.fullest()
		if dir == "" {
			return p, fmt.Errorf("%w: its files with absolute paths lie in too many folders: an engine mounts %d here",
				executor.ErrUnfit, maxFileMounts)
		}
		p.take(dir)
	}
	return p, nil
}

// ownPlace returns which place of a container that its job has no files in holds a path, "" = none.
func ownPlace(file string) string {
	for _, own := range []string{box.Root, "/proc", "/sys", "/dev"} {
		if file == own || strings.HasPrefix(file, own+"/") {
			return own
		}
	}
	return ""
}

// fullest returns the folder that has most of the single files, "" = none has two, or there are too many folders
// already. The root is none: it would hide the image.
func (p *placing) fullest() string {
	if len(p.folders) == maxFileMounts {
		return ""
	}
	count := map[string]int{}
	for _, f := range p.single {
		count[path.Dir(f.Path)]++
	}
	delete(count, "/")
	best := ""
	for dir, n := range count {
		if n > 1 && (best == "" || cmp.Or(n-count[best], strings.Compare(best, dir)) > 0) {
			best = dir
		}
	}
	return best
}

// take mounts a folder with all of the files in it and below it.
func (p *placing) take(dir string) {
	folder := placedFolder{path: dir}
	var rest []executor.File
	add := func(f executor.File, whole string) {
		if below, ok := strings.CutPrefix(whole, dir+"/"); ok {
			f.Path = below
			folder.files = append(folder.files, f)
			return
		}
		rest = append(rest, f)
	}
	for _, f := range p.single {
		add(f, f.Path)
	}
	p.single = rest
	p.folders = slices.DeleteFunc(p.folders, func(o placedFolder) bool {
		if !strings.HasPrefix(o.path, dir+"/") {
			return false
		}
		for _, f := range o.files {
			add(f, o.path+"/"+f.Path)
		}
		return true
	})
	p.folders = append(p.folders, folder)
}
