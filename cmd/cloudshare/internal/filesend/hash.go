package filesend

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/files"
)

// hashAll reads files, several at once, and sets their hashes and the contents that a manifest has.
func (s *Sender) hashAll(ctx context.Context, list []*found) error {
	var sum int64
	for _, f := range list {
		sum += f.info.Size()
	}
	s.progress.Begin("reading", sum)
	defer s.progress.End()
	return cli.InParallel(ctx, len(list), runtime.GOMAXPROCS(0), func(ctx context.Context, i int) error {
		return s.hash(ctx, list[i])
	})
}

func (s *Sender) hash(ctx context.Context, f *found) error {
	file, err := openUnchanged(f.local, f.info)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.inline {
		f.content = make([]byte, 0, f.info.Size()+1)
	}
	sum := sha256.New()
	to := &keeping{Writer: sum, ctx: ctx, file: f, done: s.progress.Done}
	n, err := io.Copy(to, io.LimitReader(file, f.info.Size()+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", f.local, err)
	}
	if n != f.info.Size() {
		return fmt.Errorf("%s %w", f.local, ErrChanged)
	}
	f.hash = files.Hash(sum.Sum(nil))
	return checkUnchanged(file, f.local, f.info)
}

// keeping writes to a hash, keeps the content of what is inline, and ends with its context.
type keeping struct {
	io.Writer
	ctx  context.Context //nolint:containedctx // of one copy
	file *found
	done func(int64)
}

// Write implements io.Writer.
func (k *keeping) Write(p []byte) (int, error) {
	if err := k.ctx.Err(); err != nil {
		return 0, err
	}
	if k.file.inline {
		k.file.content = append(k.file.content, p...)
	}
	k.done(int64(len(p)))
	return k.Writer.Write(p)
}

// openUnchanged opens a file that is as it was found.
func openUnchanged(name string, was fs.FileInfo) (*os.File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("send input: %w", err)
	}
	if err := checkUnchanged(file, name, was); err != nil {
		_ = file.Close() // it was only read
		return nil, err
	}
	return file, nil
}

// checkUnchanged compares an open file with what was found.
func checkUnchanged(file *os.File, name string, was fs.FileInfo) error {
	now, err := file.Stat()
	if err != nil {
		return fmt.Errorf("send input: %w", err)
	}
	if !os.SameFile(now, was) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
		return fmt.Errorf("%s %w", name, ErrChanged)
	}
	return nil
}
