package imports

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/cloudshare/cloudshare/node/files"
)

// cut sends the server's headers of the whole object, and so many bytes of it from some place on.
func (r *s3Rig) cut(w http.ResponseWriter, etag, content string, from, n int) {
	w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	w.Header().Set("ETag", `"`+etag+`"`)
	w.Header().Set("Content-Length", fmt.Sprint(len(content)-from))
	if from > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = io.WriteString(w, content[from:from+n])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// etagOf asks the server.
func (r *s3Rig) etagOf(key string) string {
	r.t.Helper()
	o, err := r.backend.HeadObject("data", key)
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%x", o.Hash)
}

// TestObjectsThatBreakOff are gone on with, in the same state; what came is not asked for again.
func TestObjectsThatBreakOff(t *testing.T) {
	r := newS3Rig(t, Config{Private: true, S3: signed()})
	content := pattern(100_000)
	r.put("a", content)
	etag := r.etagOf("a")
	var gets atomic.Int32
	r.before = func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodGet {
			return false
		}
		from := 0
		_, _ = fmt.Sscanf(q.Header.Get("Range"), "bytes=%d-", &from)
		if match := q.Header.Get("If-Match"); (match == `"`+etag+`"`) != (from > 0) {
			t.Errorf("from %d: If-Match %s", from, match)
		}
		if gets.Add(1) <= maxResumed {
			r.cut(w, etag, content, from, 10_000)
		}
		return false
	}
	s, err := r.end("s3://data/a", files.Hash{})
	if err != nil || s.Blob != files.BlobOf([]byte(content)) || gets.Load() != 1+maxResumed {
		t.Errorf("%+v %v, %d requests", s, err, gets.Load())
	}
}

// TestObjectsThatBreakOffAlways are left.
func TestObjectsThatBreakOffAlways(t *testing.T) {
	r := newS3Rig(t, Config{Private: true, S3: signed()})
	content := pattern(100_000)
	gets := 0
	r.before = func(w http.ResponseWriter, q *http.Request) bool {
		gets++
		from := 0
		_, _ = fmt.Sscanf(q.Header.Get("Range"), "bytes=%d-", &from)
		r.cut(w, "x", content, from, 1)
		return true
	}
	r.refuses("s3://data/a", files.HashOf([]byte(content)), ErrFailed, "it broke off")
	if gets != 1+maxResumed {
		t.Errorf("%d requests", gets)
	}
}

// answerer may answer in the server's place.
type answerer func(r *s3Rig, w http.ResponseWriter, q *http.Request) bool

// TestObjectsThatChange while they are read are no file, whether the server heeds If-Match or not.
func TestObjectsThatChange(t *testing.T) {
	before, after := pattern(100_000), pattern(100_001)
	const changed = "it changed while it was read"
	for name, c := range map[string]struct {
		hash   files.Hash
		answer answerer // to the second question
		cut    bool
		is     error
		words  string
	}{
		"the server heeds conditions": {
			cut: true, words: changed, is: ErrFailed,
			answer: func(_ *s3Rig, w http.ResponseWriter, q *http.Request) bool {
				if q.Header.Get("If-Match") == "" {
					return false
				}
				answer(w, http.StatusPreconditionFailed, "PreconditionFailed", "")
				return true
			},
		},
		"the server heeds none": {
			cut: true, words: changed, is: ErrFailed,
			answer: func(r *s3Rig, _ http.ResponseWriter, _ *http.Request) bool {
				r.put("a", after)
				return false
			},
		},
		"the server sends all again": {
			cut: true, words: "another part", is: ErrFailed,
			answer: func(_ *s3Rig, _ http.ResponseWriter, q *http.Request) bool {
				q.Header.Del("Range")
				return false
			},
		},
		"the server sends other bytes of the same name": {
			cut: true, hash: files.HashOf([]byte(before)), words: "SHA-256", is: ErrRefused,
			answer: func(r *s3Rig, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
				w.Header().Set("ETag", `"`+r.etagOf("a")+`"`)
				w.Header().Set("Content-Length", "90000")
				w.Header().Set("Content-Range", "bytes 10000-99999/100000")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(make([]byte, 90_000))
				return true
			},
		},
		"behind the last byte": {
			words: changed, is: ErrFailed,
			answer: func(r *s3Rig, _ http.ResponseWriter, _ *http.Request) bool {
				r.put("a", after)
				return false
			},
		},
		"it is deleted": {
			words: changed, is: ErrFailed,
			answer: func(r *s3Rig, _ http.ResponseWriter, _ *http.Request) bool {
				_, _ = r.backend.DeleteObject("data", "a")
				return false
			},
		},
		"nobody can say": {
			words: "503", is: ErrFailed,
			answer: func(_ *s3Rig, w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newS3Rig(t, Config{Private: true, S3: signed()})
			r.put("a", before)
			asked := 0
			r.before = func(w http.ResponseWriter, q *http.Request) bool {
				asked++
				if asked > 1 {
					return c.answer(r, w, q)
				}
				if c.cut {
					r.cut(w, r.etagOf("a"), before, 0, 10_000)
				}
				return false
			}
			r.refuses("s3://data/a", c.hash, c.is, c.words)
		})
	}
}

// TestHashesSayMore than the state: with one the server is not asked again.
func TestHashesSayMore(t *testing.T) {
	for hash, want := range map[files.Hash]int{files.HashOf([]byte("x")): 1, {}: 2} {
		r := newS3Rig(t, Config{Private: true, S3: signed()})
		r.put("a", "x")
		if s, err := r.end("s3://data/a", hash); err != nil || !s.Done || len(r.asked) != want {
			t.Errorf("%+v %v, asked %d times", s, err, len(r.asked))
		}
	}
}
