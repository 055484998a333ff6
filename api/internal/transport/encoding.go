package transport

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

// Decode honours a body's Content-Encoding: what handlers read is the body
// that the client meant. gzip is the one known; another is refused, as RFC 9110
// has it, for its bytes would be read as a job.
func (b *Bodies) Decode(w http.ResponseWriter, r *http.Request) error {
	named := r.Header.Values("Content-Encoding")
	switch strings.ToLower(strings.TrimSpace(strings.Join(named, ","))) {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
	default:
		w.Header().Set("Accept-Encoding", "gzip")
		return problem.OfStatus(http.StatusUnsupportedMediaType,
			fmt.Sprintf("Content-Encoding is %q; send gzip, or the body as it is", problem.OneLine(strings.Join(named, ","))))
	}
	r.Body = &gunzipped{packed: http.MaxBytesReader(w, r.Body, b.lines)}
	r.ContentLength = -1
	r.Header.Del("Content-Encoding") // a broker that it is forwarded to gets it unpacked
	r.Header.Del("Content-Length")
	return nil
}

// gunzipped is a packed body. Its first read reads the head, for only there is
// the deadline of bodies set. How much it unpacks to is bounded by who reads.
type gunzipped struct {
	packed io.ReadCloser
	in     *gzip.Reader
	err    error // why there is no reader; nil means that none was made yet, or in is set
}

// Read implements io.Reader.
func (g *gunzipped) Read(p []byte) (int, error) {
	if g.in == nil && g.err == nil {
		g.in, g.err = gzip.NewReader(g.packed)
		if g.err == io.EOF { //nolint:errorlint // gzip returns it bare: no byte came
			g.err = gzip.ErrHeader
		}
	}
	if g.err != nil {
		return 0, g.err
	}
	return g.in.Read(p)
}

// Close implements io.Closer.
func (g *gunzipped) Close() error { return g.packed.Close() }
