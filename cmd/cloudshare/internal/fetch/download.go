package fetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/files"
)

// tries is how often a file is asked for if its bytes do not come.
const tries = 6

// hasBytes reports whether a file that is there has the bytes.
func (s *saving) hasBytes(name string, f *File) (bool, error) {
	file, err := s.root.Open(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(file, f.Size+1))
	return n == f.Size && files.Hash(sum.Sum(nil)) == f.SHA256, err
}

// download fetches a file beside its place, and gives it its name once it is whole.
func (s *saving) download(ctx context.Context, name string, f *File) error {
	mode := fs.FileMode(0o666) // of modes that travel there is but one bit
	if f.Executable {
		mode = 0o777
	}
	beside, lock, err := s.makeBeside(name, mode)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = s.again(ctx, func() error { return s.write(ctx, beside, f) })
	if err == nil {
		err = s.giveName(beside, name)
	}
	if err != nil || !s.Force {
		err = errors.Join(err, s.drop(beside))
	}
	return err
}

// drop removes what was written beside a file's place.
func (s *saving) drop(beside string) error {
	if err := s.root.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// giveName gives a whole file its name; ErrThere: another has it.
func (s *saving) giveName(beside, name string) error {
	if s.Force {
		return s.root.Rename(beside, name)
	}
	err := s.root.Link(beside, name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		if err != nil {
			err = ErrThere
		}
		return err
	}
	// A file system without links: between the look and the new name somebody may come.
	if _, err := s.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return ErrThere
	}
	return s.root.Rename(beside, name)
}

// write writes a file of the broker's bytes, if they are what the list says.
func (s *saving) write(ctx context.Context, beside string, f *File) (err error) {
	file, err := s.root.OpenFile(beside, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	query := url.Values{"task": {strconv.FormatUint(uint64(f.Task), 10)}}
	res, err := s.broker.Ask(ctx, http.MethodGet, filesPath(s.Job)+"/"+escaped(f.Path), query, nil, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	sum, done := sha256.New(), &counting{tell: s.progress.Done}
	n, err := io.Copy(io.MultiWriter(file, sum, done), io.LimitReader(res.Body, f.Size+1))
	if err == nil && (n != f.Size || files.Hash(sum.Sum(nil)) != f.SHA256) {
		err = fmt.Errorf("%w: its bytes are not those of its SHA-256", client.ErrBrokeOff)
	}
	if err != nil {
		done.takeBack()
		if ctx.Err() == nil && !errors.Is(err, client.ErrBrokeOff) && !isLocal(err) {
			err = fmt.Errorf("%w: %w", client.ErrBrokeOff, err)
		}
	}
	return err
}

// isLocal reports whether an error is one of this machine's disk.
func isLocal(err error) bool { return errors.As(err, new(*fs.PathError)) }

// counting tells how many bytes went through.
type counting struct {
	n    int64
	tell func(int64)
}

// Write implements io.Writer.
func (c *counting) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	c.tell(int64(len(p)))
	return len(p), nil
}

// takeBack says that the bytes have to come again.
func (c *counting) takeBack() { c.tell(-c.n) }

// escaped writes a path for a URL.
func escaped(p string) string {
	names := strings.Split(p, "/")
	for i, name := range names {
		names[i] = url.PathEscape(name)
	}
	return strings.Join(names, "/")
}

// again asks as long as the answer does not come whole, and the tries last.
func (f *Fetcher) again(ctx context.Context, ask func() error) error {
	return cli.Retry(ctx, tries, f.pause, passes, ask)
}

// passes reports whether an error may pass.
func passes(err error) bool { return cli.IsUnanswered(err) || errors.Is(err, client.ErrBrokeOff) }
