// Package served answers with bytes that users' jobs have left, or that users have sent: as attachments that no browser
// takes for a page of this broker. It knows neither jobs nor the store.
package served

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/files"
)

// errSeek reports a seek to nowhere.
var errSeek = errors.New("seek to nowhere")

// Attachment sets the headers of a download: whatever it is, a browser keeps it in a file of that name, guesses no type
// and runs nothing of it (RFC 6266, 8187).
func Attachment(h http.Header, name, kind string) {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	disposition := `attachment; filename="` + plain + `"`
	if plain != name {
		disposition += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	h.Set("Content-Disposition", disposition)
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache")
}

// File answers with a blob, or ranges of it. What is sent from the first byte to the last is checked by its hash, and
// cut before its end if it is not what that says; of a range nothing is checked.
func File(w http.ResponseWriter, r *http.Request, name string, h files.Hash, blob node.BlobReader) {
	Attachment(w.Header(), name, "application/octet-stream")
	w.Header().Set("ETag", `"`+h.String()+`"`)
	body := &seeker{blob: blob}
	http.ServeContent(&ranged{ResponseWriter: w, size: blob.Size()}, r, "", time.Time{}, body)
	if body.failed != nil {
		panic(http.ErrAbortHandler) // a cut connection: the client must not take it for the whole
	}
}

// ranged has the one refusal of http.ServeContent, that of a range that the blob does not have, be a problem document,
// as all others are.
type ranged struct {
	http.ResponseWriter
	size    int64
	refused bool
}

// WriteHeader implements http.ResponseWriter.
func (w *ranged) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.refused = true
	for _, of := range [...]string{"Content-Disposition", "Content-Security-Policy", "ETag"} {
		w.Header().Del(of) // of the file that is not sent
	}
	w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", w.size))
	detail := "Range: the file has no bytes; ask without a Range"
	if w.size > 0 {
		detail = fmt.Sprintf("Range: the file has %d bytes, the first is 0 and the last %d; ask for some of them, as in "+
			"bytes=0-99, or for all, without a Range", w.size, w.size-1)
	}
	problem.New(status, "no-such-range", "The file does not have these bytes", detail).Write(w.ResponseWriter)
}

// Write implements io.Writer.
func (w *ranged) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil // the words in its place
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w *ranged) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Bytes returns a reader of content that is there.
func Bytes(content []byte) node.BlobReader { return inMemory{bytes.NewReader(content)} }

type inMemory struct{ *bytes.Reader }

// Close implements io.Closer.
func (inMemory) Close() error { return nil }

// seeker reads a blob as http.ServeContent does, which asks for as many bytes as there are and never for the end behind
// them, where a blob says that it is damaged: so the end is asked for with the last bytes.
type seeker struct {
	blob   node.BlobReader
	at     int64 // the next byte
	inTurn int64 // bytes that were read by Read, from the first one on
	failed error
}

var _ io.ReadSeeker = (*seeker)(nil)

// Seek implements io.Seeker.
func (s *seeker) Seek(offset int64, from int) (int64, error) {
	switch from {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.blob.Size()
	default:
		return 0, errSeek
	}
	if offset < 0 {
		return 0, errSeek
	}
	s.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (s *seeker) Read(p []byte) (n int, err error) {
	if s.at >= s.blob.Size() {
		return 0, io.EOF
	}
	if s.at == s.inTurn {
		n, err = s.readInTurn(p)
	} else {
		n, err = s.blob.ReadAt(p[:min(int64(len(p)), s.blob.Size()-s.at)], s.at)
	}
	s.at += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

func (s *seeker) readInTurn(p []byte) (int, error) {
	n, err := s.blob.Read(p)
	s.inTurn += int64(n)
	if err != nil || s.inTurn < s.blob.Size() {
		return n, err
	}
	if m, end := s.blob.Read(make([]byte, 1)); m != 0 || !errors.Is(end, io.EOF) {
		return 0, fmt.Errorf("read a blob to its end: %w", end)
	}
	return n, nil
}
