package diskuse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/executor/watchdog"
)

// MaxDepth of folders: deeper ones would have to be counted by moving them.
const MaxDepth = 256

// BlockSize is the unit of a file's blocks.
const BlockSize = 512

// ErrOver ends a walk that has counted more than it may.
var ErrOver = errors.New("over the bound")

// Use is what is used of a disk.
type Use struct{ Bytes, Files int64 }

// Walk is one count.
type Walk struct {
	Most, Used Use
	// Where names what is counted, for people.
	Where string
	// Why is what was gone over, once a call returned ErrOver.
	Why string
	// Pass returns why the walk must end here, if it must; nil = it need not.
	Pass func() error
	// passesDeep: folders that are too deep are passed over, else they end the walk.
	passesDeep bool
}

// Unbounded returns a count that ends with ctx only. It passes over what is too deep: nobody hides the rest by that.
func Unbounded(ctx context.Context) *Walk {
	return &Walk{Most: Use{math.MaxInt64, math.MaxInt64}, Pass: ctx.Err, passesDeep: true}
}

// NextLook returns how long after a look at an attempt, which took so long, the next one is: looking takes a tenth of a
// core at most.
func NextLook(took time.Duration) time.Duration { return time.Second + 9*took }

// Add counts one more file.
func (w *Walk) Add(bytes int64) error {
	w.Used.Bytes += bytes
	w.Used.Files++
	if w.Pass != nil {
		if err := w.Pass(); err != nil {
			return err
		}
	}
	switch {
	case w.Used.Bytes > w.Most.Bytes:
		return w.over("more than %s in %s", Mebibytes(w.Most.Bytes), w.Where)
	case w.Used.Files > w.Most.Files:
		return w.over("more than %d files in %s", w.Most.Files, w.Where)
	}
	return nil
}

// over says what was gone over.
func (w *Walk) over(format string, parts ...any) error {
	w.Why = "over its scratch: " + fmt.Sprintf(format, parts...)
	return ErrOver
}

// Mebibytes writes a number of bytes for people.
func Mebibytes(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	return strconv.FormatInt(n>>20, 10) + "Mi"
}

// Folder counts what a folder holds, without what is mounted in it. What cannot be read, or has gone, counts nothing.
func (w *Walk) Folder(path string) error {
	fd, err := openFolder(unix.AT_FDCWD, path)
	if err != nil {
		return nil // there is nothing to count in what is not there
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Statx_t
	if err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return err
	}
	return w.folder(f, st.Mnt_id, 0)
}

// openFolder opens one that is no link.
func openFolder(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_RDONLY, 0)
}

// folder counts what is in a folder of the mount.
func (w *Walk) folder(f *os.File, mount uint64, depth int) error {
	switch {
	case depth > MaxDepth && w.passesDeep:
		return nil
	case depth > MaxDepth:
		return w.over("folders nested more than %d deep", MaxDepth)
	}
	for name, unread := range watchdog.Names(f) {
		if unread != nil {
			break
		}
		if err := w.entry(f, name, mount, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry counts one name of a folder, and what is in it.
func (w *Walk) entry(f *os.File, name string, mount uint64, depth int) error {
	var st unix.Statx_t
	how := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if unix.Statx(int(f.Fd()), name, how, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &st) != nil || st.Mnt_id != mount {
		return nil // it has gone, or is another's
	}
	isFolder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	bytes := int64(st.Blocks) * BlockSize
	if !isFolder {
		bytes /= max(int64(st.Nlink), 1) // each of its names counts a part
	}
	if err := w.Add(bytes); err != nil || !isFolder {
		return err
	}
	fd, err := openFolder(int(f.Fd()), name)
	if err != nil {
		return nil // it has gone
	}
	sub := os.NewFile(uintptr(fd), name)
	defer sub.Close()
	return w.folder(sub, mount, depth+1)
}

// Excess returns how many bytes a file has beyond its end, but for what a file system makes ready for it.
func Excess(f *os.File) int64 {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	const ready = 1 << 20
	return max(st.Blocks*BlockSize-st.Size-ready, 0)
}
