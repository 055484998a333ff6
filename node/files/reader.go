package files

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ManifestReader reads a manifest, whatever the bytes are, and keeps one entry of it at a time. What it returned before
// an error is not to be used: only io.EOF says that the manifest was one to its end.
type ManifestReader struct {
	r     *bufio.Reader
	begun bool
	rules rules
	err   error // the first that Next returned, io.EOF included
}

// NewManifestReader returns a reader of the manifest in r, of which it reads MaxManifest+1 bytes at most.
func NewManifestReader(r io.Reader) *ManifestReader {
	return &ManifestReader{r: bufio.NewReader(io.LimitReader(r, MaxManifest+1))}
}

// Next returns the next entry, and io.EOF behind the last. Errors: ErrManifest for bytes that are none, also when they
// end too early; ErrPath, ErrOverlap, ErrSize, ErrTooMany; what reading returned.
func (m *ManifestReader) Next() (Entry, error) {
	if m.err != nil {
		return Entry{}, m.err
	}
	e, err := m.next()
	if err != nil {
		m.err = err
		return Entry{}, err
	}
	m.rules.add(&e)
	return e, nil
}

// Sum returns how many bytes all files so far have.
func (m *ManifestReader) Sum() int64 { return m.rules.sum }

func (m *ManifestReader) next() (e Entry, err error) {
	if err = m.begin(); err != nil {
		return e, err
	}
	length, err := m.uvarint(MaxPath)
	switch {
	case err != nil:
		return e, err
	case length == 0:
		return e, m.end()
	}
	path, err := m.read(length)
	if err != nil {
		return e, err
	}
	e.Path = string(path)
	flags, err := m.read(1)
	if err != nil {
		return e, err
	}
	if flags[0] >= flagsEnd {
		return e, fmt.Errorf("%w: flags %#x of %.80q", ErrManifest, flags[0], e.Path)
	}
	e.Executable = flags[0]&flagExecutable != 0
	if err = m.content(&e, flags[0]&flagInline != 0); err != nil {
		return e, err
	}
	return e, m.rules.check(&e)
}

// begin reads the first line, once.
func (m *ManifestReader) begin() error {
	if m.begun {
		return nil
	}
	m.begun = true
	line, err := m.read(uint64(len(manifestLine)))
	if err == nil && string(line) != manifestLine {
		err = fmt.Errorf("%w: it does not begin with %q", ErrManifest, manifestLine)
	}
	return err
}

// content reads the size, and the hash or the content.
func (m *ManifestReader) content(e *Entry, inline bool) error {
	bound := uint64(MaxFile)
	if inline {
		bound = MaxInline
	}
	size, err := m.uvarint(bound)
	if err != nil {
		return err
	}
	e.Size = int64(size)
	if inline {
		e.Inline, err = m.read(size)
		e.Hash = HashOf(e.Inline)
		return err
	}
	b, err := m.read(uint64(len(e.Hash)))
	copy(e.Hash[:], b)
	return err
}

// end returns io.EOF if nothing follows.
func (m *ManifestReader) end() error {
	switch _, err := m.r.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: bytes follow its end", ErrManifest)
	case !errors.Is(err, io.EOF):
		return err
	}
	return io.EOF
}

// read returns the next n bytes.
func (m *ManifestReader) read(n uint64) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(m.r, b)
	return b, m.count(int64(n), err)
}

// uvarint returns the next number, which is at most bound and in its shortest form.
func (m *ManifestReader) uvarint(bound uint64) (uint64, error) {
	var b [binary.MaxVarintLen64]byte
	for n := range b {
		c, err := m.r.ReadByte()
		if err = m.count(1, err); err != nil {
			return 0, err
		}
		if b[n] = c; c >= 0x80 {
			continue
		}
		v, size := binary.Uvarint(b[:n+1])
		if size != n+1 || c == 0 && n > 0 || v > bound {
			break
		}
		return v, nil
	}
	return 0, fmt.Errorf("%w: a number behind %.80q is not in its shortest form, or above %d", ErrManifest, m.rules.last, bound)
}

// count adds bytes that were read, and words their error.
func (m *ManifestReader) count(n int64, err error) error {
	m.rules.bytes += n
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if m.rules.bytes > MaxManifest {
			return fmt.Errorf("%w: it takes more than %d bytes", ErrTooMany, MaxManifest)
		}
		return fmt.Errorf("%w: it ends behind %.80q, before its end", ErrManifest, m.rules.last)
	case err != nil:
		return err
	case m.rules.bytes > MaxManifest:
		return fmt.Errorf("%w: it takes more than %d bytes", ErrTooMany, MaxManifest)
	}
	return nil
}
