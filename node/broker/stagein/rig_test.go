package stagein

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/core/inputs"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ownerRig is the broker of site a, as others reach it.
type ownerRig struct {
	mu      sync.Mutex
	blobs   map[files.Hash][]byte
	asked   map[files.Hash]int // parts that were asked for
	refusal transfer.Refusal   // of all
	lie     map[files.Hash]int // how often it sends other bytes
	down    bool
	gate    chan struct{} // if not nil, each answer waits for it
	waiting chan struct{} // has one for each answer that waits
	conns   []net.Conn
}

type rig struct {
	*testing.T
	*Stager
	owner *ownerRig
	store *store.Store
	dir   string
	limit store.Limit
}

func newRig(t *testing.T) *rig {
	r := &rig{
		T: t, dir: t.TempDir(), limit: store.Limit{Max: 1 << 30},
		owner: &ownerRig{
			blobs: map[files.Hash][]byte{}, asked: map[files.Hash]int{}, lie: map[files.Hash]int{},
			waiting: make(chan struct{}, 1000),
		},
	}
	r.open()
	t.Cleanup(func() { _ = r.store.Close() })
	return r
}

// open opens the store of site b, and makes its stager.
func (r *rig) open() {
	r.Helper()
	s, err := store.Open(store.Options{
		Dir: r.dir, Now: time.Now, Limits: store.Limits{Own: r.limit, Cache: r.limit, Outgoing: r.limit},
	})
	if err != nil {
		r.Fatal(err)
	}
	s.Repin(func(func(string, store.Ref) bool) {})
	client := transfer.NewClient(r.owner.dial(r.Context()))
	r.Cleanup(client.Close)
	r.store = s
	r.Stager = New(Config{
		Site: "b", Store: s, Transfers: client, LendMax: 1 << 26,
		Where:  func(string) (string, uint64) { return "a:1", 5 },
		UserOf: func(uint64) string { return "alice" },
	})
	r.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
}

var errDown = errors.New("connection refused")

// dial serves connections from within.
func (o *ownerRig) dial(life context.Context) func(context.Context, string, string) (net.Conn, error) {
	server := &transfer.Server{Answer: o.answer}
	return func(context.Context, string, string) (net.Conn, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.down {
			return nil, errDown
		}
		near, far := net.Pipe()
		o.conns = append(o.conns, far)
		go server.Serve(life, far, relay.Preamble{Kind: relay.KindFiles, Site: "b"})
		return near, nil
	}
}

// cutAll cuts what is connected.
func (o *ownerRig) cutAll() {
	for _, c := range o.conns {
		_ = c.Close()
	}
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func (o *ownerRig) answer(ctx context.Context, _ string, q transfer.Request) (transfer.Source, transfer.Refusal) {
	o.mu.Lock()
	gate := o.gate
	o.mu.Unlock()
	if gate != nil {
		o.waiting <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, transfer.Busy
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[q.Hash]++
	b, ok := o.blobs[q.Hash]
	switch {
	case o.refusal != transfer.Granted:
		return nil, o.refusal
	case !ok || q.Attempt.Job.Site != "a" || q.What != transfer.Input:
		return nil, transfer.NotHere
	}
	if o.lie[q.Hash] > 0 {
		o.lie[q.Hash]--
		b = bytes.Repeat([]byte{'?'}, len(b))
	}
	return memory{bytes.NewReader(b)}, transfer.Granted
}

// times returns how many parts of a blob were asked for.
func (o *ownerRig) times(b files.Blob) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[b.Hash]
}

// has gives the owner a blob.
func (o *ownerRig) has(content []byte) files.Blob {
	b := files.BlobOf(content)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blobs[b.Hash] = content
	return b
}

// manifest gives the owner a directory of files, and all of them.
func (o *ownerRig) manifest(t *testing.T, contents map[string][]byte, order ...string) files.Blob {
	t.Helper()
	var buf bytes.Buffer
	w := files.NewManifestWriter(&buf)
	for _, path := range order {
		c := contents[path]
		e := files.Entry{Path: path, Size: int64(len(c)), Hash: files.HashOf(c)}
		if w.Inlines(e.Size) {
			e.Inline = append([]byte{}, c...)
		} else {
			o.has(c)
		}
		if err := w.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return o.has(buf.Bytes())
}

func order(task uint32, in ...jobspec.Input) Order {
	return Order{ID: executor.ID{Job: "a.7", Task: task, Attempt: 1, Token: 9}, Index: task, Inputs: in}
}

func file(path string, b files.Blob) jobspec.Input { return jobspec.Input{Path: path, Blob: b} }

// faultOf returns whose fault an error is.
func faultOf(t *testing.T, err error) inputs.Fault {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v does not say whose fault it is", err)
	}
	return e.Fault
}

// large returns n bytes of several pieces.
func large(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) + byte(i>>9) + seed
	}
	return b
}
