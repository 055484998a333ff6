package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// settings are the folders in which any file may be a secret: of them only what everybody
// on this machine may read is shown, wherever it lies.
var settings = []string{"/etc"}

// item is one thing that a sandbox shows.
type item struct {
	path string
	kind fs.FileMode // fs.ModeDir, fs.ModeSymlink or 0 for a file
}

// Kinds of parts, before their paths in Plan.Shown.
const (
	partFolder = 'd'
	partFile   = 'f'
	partLink   = 'l'
)

// mostShown bounds what a list takes in the environment of a sandbox's first process, in
// bytes: the kernel takes 128 KiB of one variable.
const mostShown = 64 << 10

// List returns the plan with what it shows of the system's folders as of now, which takes
// some milliseconds; without, each sandbox finds it itself.
func (p Plan) List() Plan {
	p.Shown = nil
	list, size := p.listed(), 0
	for _, part := range list {
		size += len(part) + len(`"",`)
	}
	if size <= mostShown {
		p.Shown = list
	}
	return p
}

// listed returns the parts that are shown, those of a List or those that there are now.
func (p Plan) listed() (out []string) {
	if p.Shown != nil {
		return p.Shown
	}
	v := viewer{places(p.hidden()), settings}
	for _, dir := range p.visible() {
		if st, err := os.Lstat(dir); err != nil || !st.IsDir() {
			continue // what cannot be looked at cannot be used
		}
		for _, it := range v.parts(dir) {
			out = append(out, it.String())
		}
	}
	return out
}

// hidden returns Hide, and what a sandbox has one of its own of.
func (p Plan) hidden() []string {
	if p.Outbound {
		return slices.Concat(p.Hide, []string{ResolvConf})
	}
	return p.Hide
}

// String is the part in a list.
func (i item) String() string {
	part := partFile
	if i.kind == fs.ModeDir {
		part = partFolder
	} else if i.kind == fs.ModeSymlink {
		part = partLink
	}
	return string(part) + i.path
}

// viewer says of which parts a folder is shown so that nothing hidden is among them.
//
// A folder that holds nothing hidden is one part. Another one is rebuilt from its parts:
// covering what is hidden would not do, since a file that is replaced by a rename takes
// the cover with it, and one that is made later has none.
type viewer struct {
	hidden   []string
	settings []string
}

// parts returns what to show of a folder, a folder before what is in it.
func (v viewer) parts(dir string) []item {
	if v.hides(dir) {
		return nil
	}
	out, _ := v.partsOf(dir, slices.ContainsFunc(v.settings, func(s string) bool { return within(dir, s) }))
	return out
}

// partsOf returns what to show of a folder, and whether that is all of it.
func (v viewer) partsOf(dir string, setting bool) (out []item, whole bool) {
	whole = !slices.ContainsFunc(v.hidden, func(h string) bool { return within(h, dir) })
	all := []item{{path: dir, kind: fs.ModeDir}}
	if whole && !setting {
		return all, true
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, false // what cannot be listed has no part that anybody may see
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	whole = whole && err == nil
	for _, e := range entries {
		part, full := v.part(f, filepath.Join(dir, e.Name()), e, setting)
		out, whole = append(out, part...), whole && full
	}
	if whole {
		return all, true
	}
	return out, false
}

// part returns what to show of an entry of the open folder, and whether that is all of it.
func (v viewer) part(folder *os.File, path string, e fs.DirEntry, setting bool) ([]item, bool) {
	switch kind := e.Type(); {
	case v.hides(path), kind != fs.ModeSymlink && secret(folder, e):
		return nil, false
	case kind == fs.ModeDir:
		return v.partsOf(path, setting)
	default:
		return []item{{path, kind}}, true
	}
}

// hides reports whether path is hidden, or lies in what is.
func (v viewer) hides(path string) bool {
	return slices.ContainsFunc(v.hidden, func(h string) bool { return within(path, h) })
}

// secret reports whether not everybody on this machine may read it. The broker's user may
// by its groups, which no user namespace takes from it; sockets lead to whoever listens.
func secret(folder *os.File, e fs.DirEntry) bool {
	var st unix.Stat_t // by the open folder, since finding it by its path takes longer than this
	if err := unix.Fstatat(int(folder.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return true
	}
	if e.IsDir() {
		return st.Mode&0o5 != 0o5
	}
	return !e.Type().IsRegular() || st.Mode&0o5 == 0
}

// mostLinks is the kernel's bound of links in a path.
const mostLinks = 40

// places returns the paths to what is hidden: those that are named, and each to which
// links lead from there.
func places(named []string) (out []string) {
	for _, path := range named {
		out = append(out, path)
		for range mostLinks {
			path = resolveFolder(path)
			out = append(out, path)
			to, err := os.Readlink(path)
			if err != nil {
				break // the thing itself, or nothing yet
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			path = filepath.Clean(to)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// resolveFolder returns path with the folder that holds it free of links, as far as there
// is one.
func resolveFolder(path string) string {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(resolved, name)
	}
	if dir == "/" {
		return path
	}
	return filepath.Join(resolveFolder(dir), name)
}
