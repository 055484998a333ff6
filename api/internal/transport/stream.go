package transport

import (
	"errors"
	"io"
	"net/http"
)

// Stream is a body that is read piece by piece, and never held whole.
type Stream struct {
	bodies *Bodies
	in     *deadlineReader
	over   error // of a body that is larger
	whole  bool
	failed error // as a client is told
}

// Stream begins to read a body of at most so many bytes; a larger one is refused by the error over. Close must be
// called.
func (b *Bodies) Stream(w http.ResponseWriter, r *http.Request, most int64, over error) (*Stream, error) {
	if r.ContentLength > most {
		w.Header().Set("Connection", "close") // net/http must not wait for the body
		return nil, over
	}
	return &Stream{bodies: b, in: b.newDeadlineReader(w, r, most), over: over}, nil
}

// Read implements io.Reader. Its errors are worded for the client.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		s.whole = true
		return n, io.EOF
	case errors.As(err, new(*http.MaxBytesError)):
		s.failed = s.over
	case err != nil:
		s.failed = s.bodies.wordError(err, 0)
	default:
		return n, nil
	}
	return n, s.failed
}

// Failed returns why the body could not be read, nil if it could.
func (s *Stream) Failed() error { return s.failed }

// Close gives the body up. One that is not whole ends its connection; its deadline is taken back otherwise.
func (s *Stream) Close(w http.ResponseWriter) {
	if s.whole {
		s.in.stop()
		return
	}
	s.in.finish()
	w.Header().Set("Connection", "close")
}
