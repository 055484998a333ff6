package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// load makes the folders and the index, and removes what is half done. Names that are not the store's stay, and do not
// count. What is in the index of durable spaces is durable: a kill between a rename and the sync of its folder leaves
// names of which the disk may not know, so folders are synced here unless somebody has closed the store.
func (s *Store) load() error {
	_, err := s.disk.root.Stat(bootFile)
	s.killed = err == nil
	for _, name := range append([]string{newFolder}, names[:]...) {
		if err := s.disk.mkdir(name); err != nil {
			return err
		}
	}
	if err := s.clearNew(); err != nil {
		return err
	}
	for space := range spaces {
		err := s.eachIn(space.String(), func(d fs.DirEntry) error {
			owner, ok := unescapeOwner(d.Name())
			if !ok || !d.IsDir() {
				return nil
			}
			return s.loadOwner(Place{space, owner})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// clearNew removes what Put was writing.
func (s *Store) clearNew() error {
	return s.eachIn(newFolder, func(d fs.DirEntry) error { return s.disk.remove(newFolder + "/" + d.Name()) })
}

// eachIn calls f for all names in a folder, which it has the disk know where load has to.
func (s *Store) eachIn(folder string, f func(fs.DirEntry) error) error {
	dir, err := s.disk.root.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		batch, err := dir.ReadDir(1024)
		for _, d := range batch {
			if cause := f(d); cause != nil {
				return cause
			}
		}
		switch {
		case errors.Is(err, io.EOF) && s.killed && durable(folder+"/"):
			return s.disk.syncFolder(folder)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (s *Store) loadOwner(at Place) error {
	folder := at.Space.String() + "/" + escapeOwner(at.Owner)
	return s.eachIn(folder, func(d fs.DirEntry) error {
		if len(d.Name()) != 2 || !d.IsDir() {
			return nil
		}
		return s.loadFolder(at, folder+"/"+d.Name())
	})
}

// found is what a folder has of one blob.
type found struct {
	whole, part os.FileInfo // nil: not there
	rows        bool
}

func (s *Store) loadFolder(at Place, folder string) error {
	blobs := map[files.Hash]found{}
	err := s.eachIn(folder, func(d fs.DirEntry) error {
		h, ext, ok := parseName(d.Name())
		if !ok || !d.Type().IsRegular() || folderOf(key{at, h}) != folder {
			return nil
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		b := blobs[h]
		switch ext {
		case "":
			b.whole = st
		case partExt:
			b.part = st
		case rowsExt:
			b.rows = true
		}
		blobs[h] = b
		return nil
	})
	for h, b := range blobs {
		if err == nil {
			err = s.loadBlob(key{at, h}, b)
		}
	}
	return err
}

// parseName parts the name of a blob's file into hash and extension, which is "" for the whole blob.
func parseName(name string) (h files.Hash, ext string, ok bool) {
	stem := name
	for _, known := range []string{partExt, rowsExt} {
		if before, found := strings.CutSuffix(name, known); found {
			stem, ext = before, known
		}
	}
	h, err := files.ParseHash(stem)
	return h, ext, err == nil
}

// loadBlob has what was found in the index. What cannot be resumed is removed.
func (s *Store) loadBlob(k key, b found) error {
	now := s.now()
	if b.whole != nil {
		s.found(slot{k, false}, b.whole, now)
	}
	if b.part != nil && b.rows {
		s.found(slot{k, true}, b.part, now)
		return nil
	}
	if b.part != nil || b.rows {
		return s.removeFiles(slot{k, true})
	}
	return nil
}

// found has a file in the index. One of the future would never go.
func (s *Store) found(at slot, st os.FileInfo, now time.Time) {
	used := st.ModTime()
	if used.After(now) {
		used = now
	}
	s.used[at.Space] += charge(st.Size())
	s.add(&entry{slot: at, size: st.Size(), used: used})
}
