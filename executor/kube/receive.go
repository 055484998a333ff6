package kube

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/kube/carry"
	"github.com/cloudshare/cloudshare/executor/outputs"
)

// appendFrom writes what is read to a file from a place on, what is beyond bound excepted, and returns its size.
func appendFrom(path string, from int64, in io.Reader, bound int64) (int64, error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	if err = out.Truncate(from); err != nil {
		return 0, err
	}
	if _, err = out.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	for size := from; ; {
		if err = hasRoom(out); err != nil {
			return size, err
		}
		n, err := io.CopyN(out, in, min(lookAround, bound+1-size))
		size += n
		switch {
		case errors.Is(err, io.EOF) || err == nil && size > bound:
			return size, out.Sync()
		case err != nil:
			return size, err
		}
	}
}

// hasRoom says why a file should not grow.
func hasRoom(f *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("look how much room is left: %w", err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < keepFree+lookAround {
		return fmt.Errorf("the broker's disk has %d bytes left: no room for files", free)
	}
	return nil
}

func check(path string, most int64) error {
	f, err := outputs.OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	return carry.Check(f, most)
}

// moving notes when something came.
type moving struct {
	io.Reader
	w *work
}

// Read implements io.Reader.
func (m *moving) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.w.moved.Store(executor.Boottime())
	return n, err
}
