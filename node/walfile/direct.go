package walfile

import (
	"errors"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// block is the least size and the alignment of writes past the kernel's cache: no disk or
// file system in use asks for more.
const block = 4096

// direct writes whole blocks past the kernel's cache. A cached write of half a page
// is copied, marked, looked for and written back by the sync: half of what a
// record costs.
type direct struct {
	// blocks are a copy of the disk from the block on in which the next frame begins, up to
	// that frame. nil: writes go through the cache.
	blocks []byte
	// pwritev2 is the system call; tests refuse it.
	pwritev2 func(fd int, b [][]byte, at int64, flags int) (n int, err error)
}

// goDirect has later writes go past the cache, if the file system is known to make such a
// write with RWF_DSYNC as durable as one followed by fdatasync. One that cannot (because of
// its block size, say) refuses now or at the first write.
//
// REQUIRES: tail holds what stands before end in its block.
func (w *File) goDirect(tail []byte) {
	if w.size%block != 0 || !w.OnDisk() || w.setDirect(true) != nil {
		return
	}
	w.blocks, w.pwritev2 = aligned(2*block), unix.Pwritev2
	copy(w.blocks, tail)
}

// OnDisk reports whether the file is on a known file system of a local disk: on a network's
// or a program's, a sync may mean something else.
func (w *File) OnDisk() bool {
	var st unix.Statfs_t
	if unix.Fstatfs(int(w.f.Fd()), &st) != nil {
		return false
	}
	switch uint32(st.Type) { // its width depends on the machine
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
}

// setDirect sets whether writes go past the cache.
func (w *File) setDirect(on bool) error {
	flags, err := unix.FcntlInt(w.f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	flags &^= unix.O_DIRECT
	if on {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(w.f.Fd(), unix.F_SETFL, flags)
	return err
}

// appendDirect makes the frame in buf durable behind all others. The rest of its last block
// belongs to an older generation and is overwritten with zeros.
func (w *File) appendDirect() error {
	before := int(w.end % block)
	end := before + len(w.buf)
	whole := (end + block - 1) / block * block
	if whole > len(w.blocks) {
		larger := aligned(whole)
		copy(larger, w.blocks[:before])
		w.blocks = larger
	}
	copy(w.blocks[before:], w.buf)
	clear(w.blocks[end:whole])
	err := w.writeBlocks(w.blocks[:whole], w.end-int64(before))
	if refused(err) {
		w.blocks = nil
		if err = w.setDirect(false); err == nil {
			err = w.writeCached(w.end)
		}
		return err
	}
	copy(w.blocks, w.blocks[end-end%block:end])
	return err
}

// refused reports whether nothing was written, because the file system, the kernel or a
// filter of system calls does not know such a write.
func refused(err error) bool {
	for _, no := range [...]error{unix.EINVAL, unix.EOPNOTSUPP, unix.ENOSYS, unix.EPERM} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// resetDirect writes the head in buf through the cache, and no byte more: if the rest of its
// block were zeros, a write of which only the end reached the disk would damage the previous
// generation, whose head is still there.
func (w *File) resetDirect() error {
	err := w.throughCache(func() error { return w.writeCached(0) })
	copy(w.blocks, w.buf)
	return err
}

// throughCache calls f, whose writes go through the kernel's cache.
func (w *File) throughCache(f func() error) error {
	if w.blocks == nil { // all do
		return f()
	}
	err := w.setDirect(false)
	if err == nil {
		err = f()
	}
	if err == nil {
		err = w.setDirect(true)
	}
	return err
}

// writeBlocks is a write and its fdatasync in one call.
func (w *File) writeBlocks(b []byte, at int64) error {
	flags := unix.RWF_DSYNC
	if w.NoSync {
		flags = 0
	}
	for {
		n, err := w.pwritev2(int(w.f.Fd()), [][]byte{b}, at, flags)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && n != len(b):
			return io.ErrShortWrite
		default:
			return err
		}
	}
}

// aligned returns n bytes that begin at a multiple of block.
func aligned(n int) []byte {
	b := make([]byte, n+block)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (block - 1)
	return b[skip : skip+n : skip+n]
}
