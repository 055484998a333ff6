package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Entry is one file of a directory.
type Entry struct {
	Path string // below the directory; see CheckPath
	// Executable reports whether its owner may execute it: no other bit of a mode travels.
	Executable bool
	Size       int64 // bytes
	Hash       Hash
	// Inline is the content if it stands in the manifest, which [ManifestWriter.Inlines] decides; nil: it is a blob of
	// its own. An empty file's is not nil.
	Inline []byte
}

// Blob returns the name of the file's bytes.
func (e *Entry) Blob() Blob { return Blob{Hash: e.Hash, Size: e.Size} }

// manifestLine begins a manifest: the line, its entries in the order of ComparePaths, and a zero byte. An entry is
//
//	length of the path · path · flags · size · content if it is inline, else hash
//
// Lengths and sizes are unsigned varints in their shortest form. Content is inline if and only if it has MaxInline
// bytes at most and those before it have left so many of MaxInlineSum. So a directory has one manifest.
const manifestLine = "cloudshare files 1\n"

// Flags of an entry.
const (
	flagExecutable = 1 << iota
	flagInline
	flagsEnd
)

// rules are what writer and reader of a manifest check alike.
type rules struct {
	last    string // path of the entry before
	entries int
	bytes   int64 // of the manifest, so far
	inline  int64 // bytes of contents
	sum     int64 // bytes of all files
}

// inlines reports whether the content of the next entry stands in the manifest if it has that size.
func (r *rules) inlines(size int64) bool { return size <= MaxInline && r.inline+size <= MaxInlineSum }

// check returns why an entry may not follow those before it.
func (r *rules) check(e *Entry) error {
	if err := CheckPath(e.Path); err != nil {
		return err
	}
	if err := e.Blob().Check(); err != nil {
		return fmt.Errorf("%.80q: %w", e.Path, err)
	}
	if r.entries > 0 {
		if err := checkApart(r.last, e.Path); err != nil {
			return err
		}
		if ComparePaths(r.last, e.Path) > 0 {
			return fmt.Errorf("%w: %.80q stands behind %.80q: entries are sorted", ErrManifest, e.Path, r.last)
		}
	}
	return r.checkContent(e)
}

// checkContent returns why an entry's content may not stand where it does.
func (r *rules) checkContent(e *Entry) error {
	inline := e.Inline != nil
	switch {
	case inline != r.inlines(e.Size):
		return fmt.Errorf("%w: %.80q, %d bytes: the content's place (inline %t) is not the canonical one",
			ErrManifest, e.Path, e.Size, inline)
	case inline && (int64(len(e.Inline)) != e.Size || HashOf(e.Inline) != e.Hash):
		return fmt.Errorf("%w: %.80q: the content in the manifest is of another size or hash", ErrManifest, e.Path)
	case r.entries == MaxEntries:
		return fmt.Errorf("%w: %d are the most: make an archive of them", ErrTooMany, MaxEntries)
	case e.Size > MaxTask-r.sum:
		return fmt.Errorf("%w: more than %d bytes together", ErrTooMany, int64(MaxTask))
	}
	return nil
}

// add counts an entry that was checked.
func (r *rules) add(e *Entry) {
	r.last = e.Path
	r.entries++
	r.sum += e.Size
	r.inline += int64(len(e.Inline))
}

// appendEntry appends the encoding of an entry.
func appendEntry(dst []byte, e *Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(e.Path)))
	dst = append(dst, e.Path...)
	var flags byte
	if e.Executable {
		flags |= flagExecutable
	}
	if e.Inline != nil {
		flags |= flagInline
	}
	dst = binary.AppendUvarint(append(dst, flags), uint64(e.Size))
	if e.Inline != nil {
		return append(dst, e.Inline...)
	}
	return append(dst, e.Hash[:]...)
}

// EncodeManifest returns the manifest of entries, which are sorted by ComparePaths.
func EncodeManifest(entries []Entry) ([]byte, error) {
	var b bytes.Buffer
	w := NewManifestWriter(&b)
	for i := range entries {
		if err := w.Add(entries[i]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
