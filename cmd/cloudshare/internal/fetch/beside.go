package fetch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// besidePrefix begins the name of a file that is on its way, beside its place; the rest is random. Who writes it has it
// locked, so that what a killed fetch has left can be told from what another one is writing.
const besidePrefix = ".cloudshare-"

// maxBeside is how many such names are tried: each is lost only to a fetch that cleans up at the same moment.
const maxBeside = 10

// makeBeside makes an empty file beside a file's place, and returns its name and what keeps it from being removed.
func (s *saving) makeBeside(name string, mode fs.FileMode) (beside string, lock io.Closer, err error) {
	for range maxBeside {
		beside = path.Join(path.Dir(name), besidePrefix+rand.Text())
		file, err := s.root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return "", nil, err
		}
		locked := lockFile(file)
		mine, err := file.Stat()
		if err != nil {
			return "", nil, errors.Join(err, file.Close())
		}
		there, err := s.root.Lstat(beside)
		if !errors.Is(locked, unix.EWOULDBLOCK) && err == nil && os.SameFile(mine, there) {
			return beside, file, nil // also where files cannot be locked: then nobody removes any
		}
		_ = file.Close() // another fetch was quicker to take it for a leftover
	}
	return "", nil, fmt.Errorf("%d files beside it were removed as soon as they were made", maxBeside)
}

// lockFile locks a file until it is closed, if nobody has.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// clean removes what killed fetches have left beside the files of a folder, once.
func (s *saving) clean(dir string) {
	s.mu.Lock()
	known := s.cleaned[dir]
	s.cleaned[dir] = true
	s.mu.Unlock()
	if known {
		return
	}
	folder, err := s.root.Open(dir)
	if err != nil {
		return // it is not there yet
	}
	defer folder.Close()
	for {
		entries, err := folder.ReadDir(1000)
		for _, e := range entries {
			if isBeside(e.Name()) && e.Type().IsRegular() {
				s.removeLeft(path.Join(dir, e.Name()))
			}
		}
		if err != nil {
			return
		}
	}
}

// isBeside reports whether a name is one of makeBeside's.
func isBeside(name string) bool {
	random, ours := strings.CutPrefix(name, besidePrefix)
	return ours && len(random) == len(rand.Text()) && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// removeLeft removes a file that nobody writes any more. One that cannot be opened or locked stays.
func (s *saving) removeLeft(name string) {
	file, err := s.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if lockFile(file) == nil {
		_ = s.drop(name)
	}
}
