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

// Write brings the files of a job's results to where they go. What stands there is replaced, a link as well: it is not
// followed. It may be repeated. The files are on the disk when it returns.
func Write(ctx context.Context, list []node.Export, from Source) (done []node.Exported, err error) {
	met := make([]bool, len(list))
	err = from.Each(func(e files.Entry) error {
		for i := range list {
			rel, is := list[i].Takes(e.Path)
			if !is {
				continue
			}
			met[i] = true
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if werr := writeOne(&list[i], rel, e, from); werr != nil {
				return werr
			}
			done = append(done, node.Exported{Tag: list[i].Tag, Path: rel, Size: e.Size})
		}
		return nil
	})
	for i := range list {
		if err == nil && !met[i] && !list[i].Many {
			err = fmt.Errorf("%w: %s is not among what the task has left", ErrRefused, list[i].From)
		}
	}
	return done, err
}

func writeOne(x *node.Export, rel string, e files.Entry, from Source) error {
	dir, err := os.OpenRoot(x.Root)
	if err != nil {
		return wordWrite(x, rel, err)
	}
	defer dir.Close()
	in, err := from.Open(e)
	if err != nil {
		return err
	}
	defer in.Close()
	if err = put(dir, path.Join(x.To, rel), in, e.Executable); err != nil {
		return wordWrite(x, rel, err)
	}
	return nil
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
	return nil
}

// again are errors of a disk that may go by.
var again = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.ENFILE, syscall.ETIMEDOUT,
}

func wordWrite(x *node.Export, rel string, err error) error {
	at := cut(path.Join(x.Root, x.To, rel))
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
