package filesend

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cloudshare/cloudshare/node/files"
)

// found is a file of this machine, as it was when it was looked for.
type found struct {
	local string
	path  string // in its manifest, "" = it is an input of its own
	info  fs.FileInfo
	// inline: its content stands in the manifest.
	inline  bool
	content []byte // if inline, once it was read
	hash    files.Hash
}

func (f *found) executable() bool { return f.info.Mode()&0o100 != 0 }

func (f *found) blob() files.Blob { return files.Blob{Hash: f.hash, Size: f.info.Size()} }

// errIrregular is told of what is neither a file nor a directory.
var errIrregular = errors.New("is no file: a pipe, a device or a socket cannot be sent")

// scan returns the files of a source. One file is alone, with no path; others are in the order of a manifest.
func (s *Sender) scan(src Source) (list []found, dir bool, err error) {
	if src.Each {
		list, err = s.scanPattern(src.Local)
		return list, true, err
	}
	info, err := os.Stat(src.Local) // a link at the top is followed
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("send input: %w", err)
	case info.Mode().IsRegular():
		return []found{{local: src.Local, info: info}}, false, checkSize(src.Local, info)
	case !info.IsDir():
		return nil, false, fmt.Errorf("send input: %s %w", src.Local, errIrregular)
	}
	list, err = s.scanDir(src.Local)
	return list, true, err
}

func checkSize(name string, info fs.FileInfo) error {
	if info.Size() > files.MaxFile {
		return fmt.Errorf("send input: %s has %d bytes: at most %d", name, info.Size(), int64(files.MaxFile))
	}
	return nil
}

// scanDir returns the regular files below a directory. Links in it are passed over, for what they lead to is elsewhere,
// and so are empty directories, for which a manifest has no place.
func (s *Sender) scanDir(dir string) (list []found, err error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("send input: %w", err)
	}
	var skipped, empty passed
	bare := "" // the directory of which nothing was seen yet, that is the last name
	leave := func(next string) {
		if bare != "" && filepath.Dir(next) != bare {
			empty.add(filepath.Join(dir, strings.TrimPrefix(bare, root)))
		}
		bare = ""
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		leave(name)
		if d.IsDir() {
			bare = name
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			skipped.add(filepath.Join(dir, rel))
			return nil
		}
		info, err := d.Info()
		if err == nil {
			list, err = admit(list, found{local: filepath.Join(dir, rel), path: filepath.ToSlash(rel), info: info})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("send input %s: %w", dir, err)
	}
	leave("")
	skipped.tell(s.note, dir, "no regular file")
	empty.tell(s.note, dir, "an empty directory, and files alone travel")
	sortByPath(list)
	return list, nil
}

// scanPattern returns the files that a pattern names. Their paths are those below what the pattern names literally.
func (s *Sender) scanPattern(pattern string) (list []found, err error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("send inputs %s: %w", pattern, err)
	}
	base := literal(pattern)
	var skipped passed
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("send inputs: %w", err)
		}
		if !info.Mode().IsRegular() {
			skipped.add(name)
			continue
		}
		list, err = admit(list, found{local: name, path: filepath.ToSlash(strings.TrimPrefix(name, base)), info: info})
		if err != nil {
			return nil, fmt.Errorf("send inputs %s: %w", pattern, err)
		}
	}
	if skipped.tell(s.note, pattern, "no regular file"); len(list) == 0 {
		return nil, fmt.Errorf("send inputs: %s names no file", pattern)
	}
	sortByPath(list)
	return list, nil
}

// literal returns the folders that a pattern names literally.
func literal(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		pattern = pattern[:i]
	}
	return pattern[:strings.LastIndexByte(pattern, '/')+1]
}

// admit adds a file to a directory's if it may be there.
func admit(list []found, f found) ([]found, error) {
	if len(list) == files.MaxEntries {
		return nil, fmt.Errorf("more than %d files: make an archive of them", files.MaxEntries)
	}
	if err := files.CheckPath(f.path); err != nil {
		return nil, err
	}
	return append(list, f), checkSize(f.local, f.info)
}

func sortByPath(list []found) {
	slices.SortFunc(list, func(a, b found) int { return files.ComparePaths(a.path, b.path) })
}

// passed counts what was passed over.
type passed struct {
	first string
	n     int
}

func (p *passed) add(name string) {
	if p.n++; p.n == 1 {
		p.first = name
	}
}

func (p *passed) tell(note func(string, ...any), where, why string) {
	switch {
	case p.n == 1:
		note("%s is not sent: %s", p.first, why)
	case p.n > 1:
		note("%s and %d others in %s are not sent: %s", p.first, p.n-1, where, why)
	}
}
