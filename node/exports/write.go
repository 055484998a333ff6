package exports

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
)

// Source has the results of one job.
type Source interface {
	// Each calls f for every file that the job has left.
	Each(f func(e files.Entry) error) error
	// Open opens one of them.
	Open(e files.Entry) (io.ReadCloser, error)
}

// ErrAgain says that it is worth to try once more: the disk is full, or is not there now.
var ErrAgain = errors.New("not now")

// Opener opens the root that an export names, if something may be written there now.
type Opener func(name string) (*os.Root, error)

// placed is a file of the results, and where it goes.
type placed struct {
	of  *node.Export
	rel string
	files.Entry
}

// Write brings the files of a job's results to where they go, but for as many as are there by earlier tries, and
// returns all that are. Nothing is written if one may not be. What stands at a place is replaced, a link as well: it is
// not followed. It may be repeated. The files are on the disk when it returns.
func Write(
	ctx context.Context, list []node.Export, from Source, to Opener, earlier []node.Exported,
) (done []node.Exported, err error) {
	all, err := place(list, from)
	if err != nil {
		return earlier, err
	}
	done = earlier[:min(len(earlier), len(all))]
	for i := len(done); i < len(all); i++ {
		one := &all[i]
		if err := writeOne(ctx, one, from, to); err != nil {
			return done, err
		}
		done = append(done, node.Exported{Tag: one.of.Tag, Path: one.rel, Size: one.Size})
	}
	return done, nil
}

// place says where the files go, in the order of the results.
func place(list []node.Export, from Source) (all []placed, err error) {
	met := make([]bool, len(list))
	err = from.Each(func(e files.Entry) error {
		for i := range list {
			rel, is := list[i].Takes(e.Path)
			if !is {
				continue
			}
			if list[i].Hides(rel) {
				return refuse("%q: a name that begins with a dot is not written to the top of a folder: it may be a program's "+
					"settings; give the file an output of its own", cut(path.Join(list[i].Root, list[i].To, rel)))
			}
			met[i] = true
			all = append(all, placed{&list[i], rel, e})
		}
		return nil
	})
	for i := range list {
		if err == nil && !met[i] && !list[i].Many {
			err = fmt.Errorf("%w: %s is not among what the task has left", ErrRefused, list[i].From)
		}
	}
	return all, err
}

func writeOne(ctx context.Context, f *placed, from Source, to Opener) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	dir, err := to(f.of.Root)
	if err != nil {
		return wordWrite(f, err)
	}
	defer dir.Close()
	in, err := from.Open(f.Entry)
	if err != nil {
		return err
	}
	defer in.Close()
	if err = put(dir, path.Join(f.of.To, f.rel), &ending{ctx, in}, f.Executable); err != nil && ctx.Err() == nil {
		return wordWrite(f, err)
	}
	return err
}

// ending is a reader that ends with a context.
type ending struct {
	ctx context.Context //nolint:containedctx // of one copy
	in  io.Reader
}

// Read implements io.Reader.
func (e *ending) Read(p []byte) (int, error) {
	if e.ctx.Err() != nil {
		return 0, context.Cause(e.ctx)
	}
	return e.in.Read(p)
}

// put writes a file beside its place and moves it there: who reads it reads a whole one.
func put(dir *os.Root, at string, in io.Reader, executable bool) (err error) {
	folder := path.Dir(at)
	if folder != "." {
		if err = dir.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	mode := os.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	aside := path.Join(folder, ".cloudshare-"+strings.ToLower(rand.Text()))
	out, err := dir.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = dir.Rename(aside, at)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(aside))
	}
	return syncUp(dir, folder)
}

// syncUp has a folder on the disk, and those above it up to the root: a crash takes back no name in it, nor its own.
func syncUp(dir *os.Root, folder string) error {
	for ; ; folder = path.Dir(folder) {
		f, err := dir.Open(folder)
		if err != nil {
			return err
		}
		if err = errors.Join(f.Sync(), f.Close()); err != nil || folder == "." {
			return err
		}
	}
}

// again are errors of a disk that may go by.
var again = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.ENFILE, syscall.ETIMEDOUT,
}

func wordWrite(f *placed, err error) error {
	if errors.Is(err, ErrRefused) {
		return err
	}
	at := cut(path.Join(f.of.Root, f.of.To, f.rel))
	for _, one := range again {
		if errors.Is(err, one) {
			return fmt.Errorf("%w: %s: %w", ErrAgain, at, one)
		}
	}
	return fmt.Errorf("%w: %s: %w", ErrRefused, at, plainest(err))
}

// plainest returns the innermost words.
func plainest(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}
