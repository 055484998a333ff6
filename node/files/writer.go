package files

import (
	"bufio"
	"fmt"
	"io"
)

// ManifestWriter writes a manifest entry by entry and keeps none of them.
type ManifestWriter struct {
	w     *bufio.Writer
	rules rules
	buf   []byte
	err   error // the first that a call returned: nothing is written behind it
}

// NewManifestWriter returns a writer of a manifest to w.
func NewManifestWriter(w io.Writer) *ManifestWriter {
	m := &ManifestWriter{w: bufio.NewWriter(w)}
	m.write([]byte(manifestLine))
	return m
}

// Inlines reports whether the content of the next entry stands in the manifest if it has that size: Add refuses the
// entry otherwise.
func (m *ManifestWriter) Inlines(size int64) bool { return m.rules.inlines(size) }

// Add writes the next entry. Paths come in the order of ComparePaths. Errors: ErrPath, ErrOverlap, ErrSize, ErrTooMany,
// and ErrManifest for what only a wrong caller does; none of them can be mended by a later call.
func (m *ManifestWriter) Add(e Entry) error {
	if m.err == nil {
		m.err = m.rules.check(&e)
	}
	if m.err != nil {
		return m.err
	}
	m.buf = appendEntry(m.buf[:0], &e)
	m.write(m.buf)
	m.rules.add(&e)
	return m.err
}

// Close ends the manifest. It does not close the writer below.
func (m *ManifestWriter) Close() error {
	m.write([]byte{0})
	if m.err == nil {
		m.err = m.w.Flush()
	}
	return m.err
}

// Sum returns how many bytes all files so far have.
func (m *ManifestWriter) Sum() int64 { return m.rules.sum }

func (m *ManifestWriter) write(b []byte) {
	if m.err != nil {
		return
	}
	if m.rules.bytes += int64(len(b)); m.rules.bytes > MaxManifest {
		m.err = fmt.Errorf("%w: it takes more than %d bytes: make an archive of them", ErrTooMany, MaxManifest)
		return
	}
	_, m.err = m.w.Write(b)
}
