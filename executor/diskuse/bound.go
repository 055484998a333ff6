package diskuse

import "golang.org/x/sys/unix"

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
