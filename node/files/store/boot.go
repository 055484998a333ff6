package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cloudshare/cloudshare/node/wholefile"
)

// bootFile says in which boot of the machine the cache was written that nobody has synced since.
const bootFile = "cache.boot"

// durable reports whether a file has to survive a crash of the machine. What is in the cache can be fetched again: it
// is not synced, which costs more than all else for small files, and is dropped behind a crash of the machine.
func durable(name string) bool { return !strings.HasPrefix(name, names[Cache]+"/") }

// readBoot returns what is another one after each boot, "" if the system does not say it.
func readBoot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// checkBoot drops the cache's whole blobs if the machine may have crashed since they were written: after a boot without
// a Close before. Partial ones stay, since their pieces are synced and their hash is checked at the end.
func (s *Store) checkBoot(boot string) error {
	before, err := s.disk.root.ReadFile(bootFile)
	switch {
	case errors.Is(err, fs.ErrNotExist): // Close has synced all
	case err != nil:
		return err
	case boot != "" && string(before) == boot:
		s.doubtCache()
		return nil
	default:
		if err = s.discard(s.evictCache()); err != nil {
			return err
		}
	}
	if err = s.disk.at(pointBoot); err != nil {
		return err
	}
	return wholefile.Replace(filepath.Join(s.dir, bootFile), []byte(boot), 0o600)
}

// doubtCache has all whole blobs of the cache looked at before they are used: the machine stands, but the disk may not
// have stood (a volume that was cut off, a virtual disk that was put back).
func (s *Store) doubtCache() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, e := range s.entries {
		if at.Space == Cache && !at.part {
			e.unsure = true
		}
	}
}

// evictCache takes all whole blobs out of the cache, and returns them.
func (s *Store) evictCache() (victims []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, e := range s.entries {
		if at.Space == Cache && !at.part {
			victims = append(victims, e)
		}
	}
	for _, e := range victims {
		s.evict(e)
	}
	return victims
}

// Close closes the store, and syncs the cache. Readers and partial blobs are to be closed before, and calls of Put to
// have returned: theirs fail from now on, and the cache is dropped if the machine boots before the next Open.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	idle := len(s.open) == 0
	if idle {
		err = s.syncCache()
	}
	if err = errors.Join(err, s.log.close(idle && err == nil), s.disk.close()); err != nil {
		return fmt.Errorf("close store of files: %w", asFull(err))
	}
	return nil
}

// syncCache makes all durable that is in the cache.
func (s *Store) syncCache() error {
	err := s.disk.syncAll()
	if err == nil {
		err = s.disk.remove(bootFile)
	}
	if err != nil {
		return err
	}
	return s.disk.syncFolder(".")
}
