package carry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cloudshare/cloudshare/executor"
)

// ErrGarbled says that a stream is not one of frames, or breaks off.
var ErrGarbled = errors.New("not a stream of files")

// frame is a line of a stream. What a file holds follows its line.
type frame struct {
	File    *executor.OutputFile `json:"file,omitempty"`
	Skipped *skipped             `json:"skipped,omitempty"`
	// Missing is what the task had to leave and has not: it may be an error, or not, for who wants its files.
	Missing *executor.MissingOutputError `json:"missing,omitempty"`
	Fault   *fault                       `json:"fault,omitempty"`
	End     bool                         `json:"end,omitempty"` // nothing follows
}

// skipped is what matches and cannot travel.
type skipped struct {
	Name []byte `json:"name"` // any bytes
	Why  string `json:"why"`
}

// maxLine bounds a frame's line: paths, each byte escaped, and words.
const maxLine = 16 << 10

func (f *frame) line() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(f)
	if err == nil && b.Len() > maxLine {
		err = fmt.Errorf("frame of %d bytes: at most %d", b.Len(), maxLine)
	}
	return b.Bytes(), err
}

// frames reads a stream, and holds it to its bounds, whoever has written it.
type frames struct {
	raw   io.Reader
	in    *bufio.Reader
	file  io.LimitedReader // of the latest file, what was not read
	files int
	paths int64
	bytes int64
}

func readFrames(r io.Reader) *frames { return &frames{raw: r, in: bufio.NewReaderSize(r, maxLine)} }

// next returns the next frame; the rest of the latest file is passed over.
func (s *frames) next() (*frame, error) {
	if err := s.passOver(); err != nil {
		return nil, cutShort(err)
	}
	line, err := s.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrGarbled, maxLine)
	}
	if err != nil {
		return nil, cutShort(err)
	}
	f := &frame{}
	if err = json.Unmarshal(line, f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGarbled, err)
	}
	if f.File != nil {
		err = s.begin(f.File)
	}
	return f, err
}

// passOver goes to the end of the latest file.
func (s *frames) passOver() error {
	seeker, ok := s.raw.(io.Seeker)
	if far := s.file.N - int64(s.in.Buffered()); ok && far > 0 {
		_, err := seeker.Seek(far, io.SeekCurrent)
		s.in.Reset(s.raw)
		s.file.N = 0
		return err
	}
	_, err := io.Copy(io.Discard, s.content())
	return err
}

// begin takes a file's line.
func (s *frames) begin(f *executor.OutputFile) error {
	if err := executor.CheckPath(f.Path, false); err != nil {
		return fmt.Errorf("%w: %w", ErrGarbled, err)
	}
	s.files, s.paths, s.bytes = s.files+1, s.paths+int64(len(f.Path)), s.bytes+f.Size
	switch {
	case f.Size < 0 || s.bytes < 0:
		return fmt.Errorf("%w: file %q of %d bytes", ErrGarbled, f.Path, f.Size)
	case s.files > executor.MaxFiles || s.paths > executor.MaxPaths:
		return fmt.Errorf("%w: more than %d files, or %d bytes of paths", ErrGarbled, executor.MaxFiles, executor.MaxPaths)
	}
	s.file = io.LimitedReader{R: s.in, N: f.Size}
	return nil
}

// content reads the latest file: exactly its bytes, or an error.
func (s *frames) content() io.Reader { return whole{&s.file} }

// whole makes an end that comes too early an error.
type whole struct{ *io.LimitedReader }

// Read implements io.Reader.
func (w whole) Read(p []byte) (int, error) {
	n, err := w.LimitedReader.Read(p)
	if errors.Is(err, io.EOF) && w.N > 0 {
		err = cutShort(err)
	}
	return n, err
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it breaks off: %w", ErrGarbled, io.ErrUnexpectedEOF)
	}
	return err
}

// atEnd: nothing follows.
func (s *frames) atEnd() error {
	if _, err := s.in.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows its end", ErrGarbled)
	}
	return nil
}
