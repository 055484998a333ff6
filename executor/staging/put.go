package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// Rights are what a task gets on its files.
type Rights struct {
	// Give: they are given to UID and GID, which only root can do.
	Give     bool
	UID, GID int
	File     fs.FileMode // of a file
	Program  fs.FileMode // of one that can be run
	Folder   fs.FileMode
}

// Private are the rights on a folder that nobody else gets into: those with which users
// make files.
func Private() Rights { return Rights{File: 0o644, Program: 0o755, Folder: 0o755} }

// Put copies files into a folder, by their relative paths. The folder has none of these
// files yet: a name that is there already is an error, and no link is followed out of it.
// What was copied before an error stays.
func Put(ctx context.Context, dir string, files []executor.File, r Rights) error {
	f, err := OpenFolder(dir, r)
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range files {
		if err = f.putter.put(ctx, &files[i]); err != nil {
			return fmt.Errorf("put file %q: %w", files[i].Path, err)
		}
	}
	return nil
}

// Folder takes files one by one, as [Put] does, whose bytes come from elsewhere.
type Folder struct{ putter putter }

// OpenFolder opens one.
func OpenFolder(dir string, r Rights) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{putter{Root: root, Rights: r, made: map[string]bool{}}}, nil
}

// Put makes a file of what it reads.
func (f *Folder) Put(path string, executable bool, from io.Reader) error {
	return f.putter.make(path, executable, func(to *os.File) error {
		_, err := io.Copy(to, from)
		return err
	})
}

// Empty removes all that is in it.
func (f *Folder) Empty() error {
	dir, err := f.putter.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	err = errors.Join(err, dir.Close())
	for _, name := range names {
		err = errors.Join(err, f.putter.RemoveAll(name))
	}
	clear(f.putter.made)
	return err
}

// Close implements io.Closer.
func (f *Folder) Close() error { return f.putter.Close() }

// Size returns how many bytes the files have together.
func Size(files []executor.File) (bytes int64, err error) {
	for i := range files {
		f := &files[i]
		if f.Source == "" {
			bytes += int64(len(f.Content))
			continue
		}
		st, err := os.Lstat(f.Source)
		if err != nil {
			return 0, fmt.Errorf("file %q: %w", f.Path, err)
		}
		bytes += st.Size()
	}
	return bytes, nil
}

// putter puts files into one folder.
type putter struct {
	*os.Root
	Rights
	made map[string]bool // folders
}

func (p *putter) put(ctx context.Context, f *executor.File) error {
	return p.make(f.Path, f.Executable, func(to *os.File) error { return p.fill(ctx, to, f) })
}

// make makes a file that fill fills, and the folders above it.
func (p *putter) make(path string, executable bool, fill func(to *os.File) error) error {
	if at := strings.LastIndexByte(path, '/'); at > 0 {
		if err := p.folder(path[:at]); err != nil {
			return err
		}
	}
	mode := p.File
	if executable {
		mode = p.Program
	}
	to, err := p.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(to)
	if err == nil && p.Give {
		err = to.Chown(p.UID, p.GID)
	}
	if err == nil {
		err = to.Chmod(mode)
	}
	return errors.Join(err, to.Close())
}

// folder makes a folder, and those above it.
func (p *putter) folder(path string) error {
	for end := 0; end < len(path); {
		next := strings.IndexByte(path[end:], '/')
		if next < 0 {
			next = len(path) - end
		}
		part := path[:end+next]
		end += next + 1
		if p.made[part] {
			continue
		}
		if err := p.makeFolder(part); err != nil {
			return err
		}
		p.made[part] = true
	}
	return nil
}

// makeFolder makes one. Nothing that is there counts as one but a folder.
func (p *putter) makeFolder(path string) error {
	err := p.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		st, serr := p.Lstat(path)
		if serr == nil && !st.IsDir() {
			return fmt.Errorf("%s is no folder: %w", path, err)
		}
		return serr
	}
	if err == nil && p.Give {
		err = p.Lchown(path, p.UID, p.GID)
	}
	if err == nil {
		err = p.Chmod(path, p.Folder)
	}
	return err
}

// piece is how much is copied between two looks whether anybody still wants it.
const piece = 8 << 20

// fill copies a file's bytes.
func (p *putter) fill(ctx context.Context, to *os.File, f *executor.File) error {
	if f.Source == "" {
		_, err := io.Copy(to, bytes.NewReader(f.Content))
		return err
	}
	from, err := outputs.OpenRegular(f.Source, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer from.Close()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.CopyN(to, from, piece) // by the kernel, where it can
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
