package filesend

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/api/client"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node/files"
)

// broker is one that follows the contract of blobs, uploads and imports.
type broker struct {
	t     *testing.T
	mu    sync.Mutex
	blobs map[string][]byte
	parts map[string][]byte // uploads by hash-size
	// whole and pieces count what was sent.
	whole, pieces int
	// trouble, if set, answers a request in the place of the broker.
	trouble func(w http.ResponseWriter, r *http.Request) bool
	imports int // questions until an import is there
}

func newBroker(t *testing.T) (*broker, *Sender, *told) {
	t.Helper()
	b := &broker{t: t, blobs: map[string][]byte{}, parts: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/blobs/missing", b.missing)
	mux.HandleFunc("PUT /v1/blobs/{sha}", b.put)
	mux.HandleFunc("POST /v1/uploads", b.begin)
	mux.HandleFunc("PATCH /v1/uploads/{id}", b.patch)
	mux.HandleFunc("POST /v1/imports", b.fetch)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.trouble == nil || !b.trouble(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	pause := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	c, err := client.New(srv.URL, client.WithSleep(pause))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	seen := &told{}
	s := New(c, seen, seen.note)
	s.pause = pause
	return b, s, seen
}

func refuse(w http.ResponseWriter, status int, name string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"%s%s","title":"No","status":%d}`, wire.ProblemPrefix, name, status)
}

func (b *broker) missing(w http.ResponseWriter, r *http.Request) {
	var q struct {
		SHA256 []string `json:"sha256"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.SHA256) > 1000 {
		b.t.Errorf("%d hashes, %v", len(q.SHA256), err)
	}
	missing := []string{}
	for _, h := range q.SHA256 {
		if _, ok := b.blobs[h]; !ok {
			missing = append(missing, h)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"missing": missing})
}

func (b *broker) put(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut off
	}
	b.whole++
	if len(data) > 8<<20 {
		b.t.Errorf("%d bytes in one request", len(data))
	}
	if files.HashOf(data).String() != r.PathValue("sha") {
		refuse(w, http.StatusUnprocessableEntity, "wrong-hash")
		return
	}
	b.blobs[r.PathValue("sha")] = data
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(files.BlobOf(data))
}

func (b *broker) begin(w http.ResponseWriter, r *http.Request) {
	coded, ok := strings.CutPrefix(r.Header.Get("Upload-Metadata"), "sha256 ")
	hash, err := base64.StdEncoding.DecodeString(coded)
	if !ok || err != nil || r.Header.Get("Tus-Resumable") != "1.0.0" {
		b.t.Errorf("an upload begins with %v", r.Header)
	}
	id := string(hash) + "-" + r.Header.Get("Upload-Length")
	if _, there := b.parts[id]; !there {
		b.parts[id] = nil
	}
	w.Header().Set("Location", "/v1/uploads/"+id)
	w.Header().Set("Upload-Offset", strconv.Itoa(len(b.parts[id])))
	if whole, there := b.blobs[string(hash)]; there {
		w.Header().Set("Upload-Offset", strconv.Itoa(len(whole)))
	}
	w.WriteHeader(http.StatusCreated)
}

func (b *broker) patch(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	have, there := b.parts[id]
	if !there {
		refuse(w, http.StatusNotFound, "not-found")
		return
	}
	if r.Header.Get("Upload-Offset") != strconv.Itoa(len(have)) {
		refuse(w, http.StatusConflict, "wrong-offset")
		return
	}
	data, err := io.ReadAll(r.Body)
	b.pieces++
	have = append(have, data...) // of what was cut off, what came
	b.parts[id] = have
	if err != nil {
		return
	}
	hash, size, _ := strings.Cut(id, "-")
	if strconv.Itoa(len(have)) == size {
		delete(b.parts, id)
		if files.HashOf(have).String() != hash {
			refuse(w, http.StatusUnprocessableEntity, "wrong-hash")
			return
		}
		b.blobs[hash] = have
	}
	w.Header().Set("Upload-Offset", strconv.Itoa(len(have)))
	w.WriteHeader(http.StatusNoContent)
}

func (b *broker) fetch(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if b.imports--; b.imports > 0 {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"received":%d,"size":100}`, 100-10*b.imports)
		return
	}
	if bytes.Contains(body, []byte("private")) {
		refuse(w, http.StatusUnprocessableEntity, "import-refused")
		return
	}
	_, _ = io.WriteString(w, `{"sha256":"ab","size":100}`)
}

// told is a Progress that notes what it hears.
type told struct {
	mu    sync.Mutex
	steps []string
	done  int64
	notes []string
}

func (p *told) Begin(what string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps, p.done = append(p.steps, fmt.Sprintf("%s %d", what, bytes)), 0
}

func (p *told) Done(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += bytes
}

func (p *told) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, fmt.Sprintf("%d done", p.done))
}

func (p *told) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}
