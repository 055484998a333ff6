package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultFileBytes = 16 << 20
	defaultFiles     = 16
	suffix           = ".jsonl"
)

var errClosed = errors.New("the audit record is closed")

// files are those of a record: numbered, the newest is appended to. One goroutine writes them; readers open their own.
type files struct {
	dir  string
	most int64 // bytes of a file
	keep int

	out   output
	num   uint64
	size  int64
	dirty bool // written, and not synced
	torn  bool // the last write failed within a line
}

// output is an *os.File that is written.
type output interface {
	io.Writer
	Sync() error
	Close() error
}

func openFiles(o Options) (*files, error) {
	f := &files{dir: o.Dir, most: cmp.Or(o.FileBytes, defaultFileBytes), keep: cmp.Or(o.Files, defaultFiles)}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, err
	}
	nums, err := numbers(f.dir)
	if err != nil {
		return nil, err
	}
	num := uint64(1)
	if n := len(nums); n > 0 {
		num = nums[n-1]
	}
	return f, f.open(num)
}

// numbers returns those of the files, ascending.
func numbers(dir string) (nums []uint64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if n, bad := strconv.ParseUint(name, 10, 64); ok && bad == nil {
			nums = append(nums, n)
		}
	}
	slices.Sort(nums)
	return nums, err
}

func fileName(dir string, num uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%08d%s", num, suffix))
}

// open goes on with a file. What follows a line that a crash has cut stands on its own.
func (f *files) open(num uint64) error {
	out, err := os.OpenFile(fileName(f.dir, num), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := out.Stat()
	if err != nil {
		return errors.Join(err, out.Close())
	}
	last := []byte{'\n'}
	if info.Size() > 0 {
		if _, err = out.ReadAt(last, info.Size()-1); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	f.out, f.num, f.size, f.torn = out, num, info.Size(), last[0] != '\n'
	return nil
}

// append writes whole lines, to the next file if this one is full.
func (f *files) append(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if f.size > 0 && f.size+int64(len(lines)) > f.most {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	if f.torn {
		if err := f.write([]byte{'\n'}); err != nil {
			return err
		}
	}
	return f.write(lines)
}

// write adds lines to the file. If it fails half way, as a full disk does, the next one stands on a line of its own.
func (f *files) write(lines []byte) error {
	n, err := f.out.Write(lines)
	f.size, f.dirty = f.size+int64(n), true
	if n > 0 {
		f.torn = lines[n-1] != '\n'
	}
	if err != nil {
		return fmt.Errorf("write the audit record: %w", err)
	}
	return nil
}

// rotate begins the next file, and removes the oldest one if there are too many. If the next one cannot be opened, this
// one stays open: what still fits into it is written there.
func (f *files) rotate() error {
	err, full := f.sync(), f.out
	if bad := f.open(f.num + 1); bad != nil {
		err = errors.Join(err, bad)
	} else {
		err = errors.Join(err, full.Close())
	}
	if err != nil {
		return fmt.Errorf("begin the next file of the audit record: %w", err)
	}
	nums, err := numbers(f.dir)
	for len(nums) > f.keep && err == nil {
		err = os.Remove(fileName(f.dir, nums[0]))
		nums = nums[1:]
	}
	return err
}

func (f *files) sync() error {
	if !f.dirty {
		return nil
	}
	f.dirty = false
	if err := f.out.Sync(); err != nil {
		return fmt.Errorf("sync the audit record: %w", err)
	}
	return nil
}

func (f *files) close() error {
	err := f.out.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
