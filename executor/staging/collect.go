package staging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
)

// AnyOwner is for folders whose files may have any owner.
const AnyOwner = -1

// Collect gives the sink the files of a work folder that are wanted, as [executor.Collector]
// says. Where owner is not AnyOwner, files of other users are passed over: a task that is
// not this process's user may have a second name of a file that only this process may read.
// Folders and files that their owner may not read are opened up, if this process is the
// owner. REQUIRES: no process of the task is left.
func Collect(ctx context.Context, dir string, want executor.Outputs, owner int, sink executor.OutputSink) error {
	return (&collector{ctx: ctx, want: want, owner: owner, sink: sink}).collect(dir)
}

// CollectWhatIs is Collect for who decides later whether what is missing is an error: it is told, before any file.
func CollectWhatIs(
	ctx context.Context, dir string, want executor.Outputs, owner int, sink executor.OutputSink,
	missing func(executor.MissingOutputError),
) error {
	return (&collector{ctx: ctx, want: want, owner: owner, sink: sink, missing: missing}).collect(dir)
}

func (c *collector) collect(dir string) error {
	globs, err := c.want.ParseGlobs()
	if err != nil {
		return err
	}
	root, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(dir, 0o700) == nil {
		root, err = os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	}
	if err != nil {
		return unreadable(".", err)
	}
	defer root.Close()
	c.root = root
	for _, g := range globs {
		c.globs = append(c.globs, &wanted{Glob: g})
	}
	if err = c.list(); err == nil {
		err = c.check()
	}
	if err != nil {
		return err
	}
	slices.SortFunc(c.found, func(a, b found) int { return executor.ComparePaths(a.path, b.path) })
	for i := range c.found {
		if err = c.send(&c.found[i]); err != nil {
			return err
		}
	}
	return nil
}

// collector is one collection.
type collector struct {
	ctx     context.Context //nolint:containedctx // of one call
	root    *os.File
	want    executor.Outputs
	owner   int
	sink    executor.OutputSink
	missing func(executor.MissingOutputError) // nil = what is missing is an error
	globs   []*wanted                         // in the order of want's paths, then of its optional ones
	found   []found
	bytes   int64 // of found
	paths   int64 // bytes of found's paths
	skipped int
}

// wanted is a glob, and what has come of it.
type wanted struct {
	executor.Glob
	met bool
	why string // what matches and cannot travel
}

// found is a file to be collected.
type found struct {
	path     string
	dev, ino uint64
}

// check returns which bound or which glob does not hold, for what the list has found.
func (c *collector) check() error {
	for i, text := range c.want.Paths {
		w := c.globs[i]
		switch missing := (executor.MissingOutputError{Glob: text, Why: w.why}); {
		case w.met:
		case c.missing == nil:
			return &missing
		default:
			c.missing(missing)
		}
	}
	if c.want.MaxBytes > 0 && c.bytes > c.want.MaxBytes {
		return &executor.OutputBoundError{What: "bytes", Most: c.want.MaxBytes}
	}
	return nil
}

// add takes a file into the list.
func (c *collector) add(path string, st *unix.Stat_t) error {
	c.found = append(c.found, found{path: path, dev: st.Dev, ino: st.Ino})
	c.bytes += st.Size
	c.paths += int64(len(path))
	most := int64(cmp.Or(c.want.MaxFiles, executor.MaxFiles))
	switch {
	case int64(len(c.found)) > most:
		return &executor.OutputBoundError{What: "files", Most: most}
	case c.paths > executor.MaxPaths:
		return &executor.OutputBoundError{What: "bytes of paths", Most: executor.MaxPaths}
	case c.bytes < 0: // sparse files can be of any size
		return &executor.OutputBoundError{What: "bytes", Most: cmp.Or(c.want.MaxBytes, 1<<63-1)}
	}
	return nil
}

// skip tells what cannot travel, and notes it with the globs that match it.
func (c *collector) skip(path, why string) {
	for _, w := range c.globs {
		if w.why == "" && (w.Match(path) || w.MayHold(path)) {
			w.why = fmt.Sprintf("%q is %s", path, why)
		}
	}
	if c.skipped++; c.skipped <= executor.MaxSkipped {
		c.sink.Skipped(path, why)
	}
}

// send gives one file to the sink.
func (c *collector) send(f *found) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	file, before, err := c.open(f)
	if err != nil {
		return err
	}
	defer file.Close()
	r := &exact{from: file, path: f.path, left: before.Size}
	err = c.sink.File(executor.OutputFile{Path: f.path, Size: before.Size, Executable: before.Mode&0o111 != 0}, r)
	if err != nil {
		return fmt.Errorf("output %q: %w", f.path, err)
	}
	var after unix.Stat_t
	if err = unix.Fstat(int(file.Fd()), &after); err != nil {
		return unreadable(f.path, err)
	}
	if after.Size != before.Size || after.Mtim != before.Mtim || after.Ctim != before.Ctim {
		return fmt.Errorf("output %q: %w", f.path, executor.ErrOutputChanged)
	}
	return nil
}

// open opens a file of the list, if it is still that one.
func (c *collector) open(f *found) (file *os.File, st unix.Stat_t, err error) {
	pinned, st, err := pin(int(c.root.Fd()), f.path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil, st, fmt.Errorf("output %q: %w", f.path, executor.ErrOutputChanged)
	}
	if err != nil {
		return nil, st, unreadable(f.path, err)
	}
	defer unix.Close(pinned)
	if st.Dev != f.dev || st.Ino != f.ino || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, fmt.Errorf("output %q: %w", f.path, executor.ErrOutputChanged)
	}
	if file, err = reopen(pinned, &st, 0, 0o400); err != nil {
		return nil, st, unreadable(f.path, err)
	}
	if err = unix.Fstat(int(file.Fd()), &st); err != nil {
		file.Close()
		return nil, st, unreadable(f.path, err)
	}
	return file, st, nil
}

// exact reads a file of so many bytes: fewer are an error, and more are not read.
type exact struct {
	from io.Reader
	path string
	left int64
}

// Read implements io.Reader.
func (r *exact) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.from.Read(b[:min(int64(len(b)), r.left)])
	r.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("output %q: %w: it is shorter than it was", r.path, executor.ErrOutputChanged)
	case err != nil:
		err = unreadable(r.path, err)
	}
	return n, err
}
