package diskuse

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/staging"
)

const (
	// share of what is free at an attempt's start is its bound, unless the site says another.
	share = 4
	// MaxFiles bounds files and folders: to count that many takes a second, and to remove them three, which nobody is
	// charged for.
	MaxFiles = 1 << 18
)

// Free returns what is free of the disk of a folder.
func Free(dir string) (Use, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Use{}, err
	}
	return Use{int64(st.Bavail) * st.Bsize, int64(st.Ffree)}, nil
}

// Bound returns what an attempt may have that begins while so much is free: bytes, or, if that is 0, a share of it.
func (free Use) Bound(bytes int64) Use {
	most := Use{bytes, min(MaxFiles, free.Files/share)}
	if bytes == 0 {
		most.Bytes = free.Bytes / share
	}
	if free.Files == 0 { // a file system that makes inodes as it needs them
		most.Files = MaxFiles
	}
	return most
}

// Fits refuses files that are to be copied into an attempt's folder in dir, if it would be over its bound by them
// alone: its owner would be charged for that. bytes is what the site says, 0 = a share of what is free when they are
// there.
func Fits(dir string, bytes int64, files []executor.File) error {
	size, err := staging.Size(files)
	if err != nil {
		return fmt.Errorf("%w: %w", executor.ErrBusy, err)
	}
	if bytes > 0 {
		if size > bytes {
			return fmt.Errorf("%w: its files have %d bytes, and a task's scratch is %s here", executor.ErrUnfit, size, Mebibytes(bytes))
		}
		return nil
	}
	free, err := Free(dir)
	free.Bytes -= size
	if err == nil && size > free.Bound(0).Bytes {
		err = fmt.Errorf("its files have %d bytes, and the disk has no room for that", size)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", executor.ErrBusy, err)
	}
	return nil
}
