package imports

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/node/files"
)

// State says how far an import is.
type State struct {
	Done bool
	Blob files.Blob // if it is done
	// Received and Size are bytes; Size is -1 while it is not known.
	Received, Size int64
}

// Imports are those of all users. They are in memory: a restart begins again. They are safe for concurrent use.
type Imports struct {
	cfg  Config
	http *http.Client
	s3   *objectServer // nil: none is configured

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	under  sync.WaitGroup // fetches that go on

	mu     sync.Mutex
	closed bool
	all    map[string]map[key]*fetch // by user; guarded by mu. Invariant: no empty ones
	going  int                       // fetches under way; guarded by mu
}

// key names an import of a user.
type key struct {
	url  string
	want files.Hash // zero: whatever comes
}

// fetch is one import. Its fields but the counters are guarded by Imports.mu.
type fetch struct {
	ended          time.Time // zero: it goes on
	blob           files.Blob
	err            error
	received, size atomic.Int64
}

// New returns Imports that do nothing yet.
func New(cfg Config) *Imports {
	m := &Imports{cfg: cfg.withDefaults(), all: map[string]map[key]*fetch{}}
	m.http = m.newClient()
	m.s3 = m.newS3()
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Close ends what goes on, and waits for it. It may be called again.
func (m *Imports) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.under.Wait()
	m.http.CloseIdleConnections()
}

// Import begins to fetch a URL for a user, if that was not done yet, and returns how far it is. The zero hash takes
// whatever comes. While too many go on it is not begun: asking again does. Errors: ErrRefused, ErrFailed, ErrClosed,
// the store's.
func (m *Imports) Import(user, url string, want files.Hash) (State, error) {
	if want != (files.Hash{}) {
		if b, there := m.cfg.Store.Find(user, want); there {
			return State{Done: true, Blob: b, Received: b.Size, Size: b.Size}, nil
		}
	}
	if err := m.permit(url); err != nil {
		return State{}, err
	}
	m.mu.Lock()
	f, err := m.find(user, key{url, want})
	if err != nil || f == nil {
		m.mu.Unlock()
		return State{Size: -1}, err
	}
	ended, blob, err := !f.ended.IsZero(), f.blob, f.err
	m.mu.Unlock()
	switch {
	case !ended:
		return State{Received: f.received.Load(), Size: f.size.Load()}, nil
	case err != nil:
		return State{}, err
	}
	if _, there := m.cfg.Store.Find(user, blob.Hash); !there {
		m.forget(user, key{url, want})
		return State{Size: -1}, nil // asking again fetches it again
	}
	return State{Done: true, Blob: blob, Received: blob.Size, Size: blob.Size}, nil
}

// find returns an import, begun now if there was none; nil while there is no place for it. REQUIRES: m.mu held.
func (m *Imports) find(user string, k key) (*fetch, error) {
	m.expire(time.Now())
	own := m.all[user]
	if f := own[k]; f != nil {
		return f, nil
	}
	going := 0
	for _, f := range own {
		if f.ended.IsZero() {
			going++
		}
	}
	switch {
	case m.closed:
		return nil, ErrClosed
	case m.going >= m.cfg.AtOnce, going >= m.cfg.AtOnceEach:
		return nil, nil
	case len(own) >= maxRemembered:
		dropOldest(own)
	}
	if own == nil {
		own = map[key]*fetch{}
		m.all[user] = own
	}
	f := &fetch{}
	f.size.Store(-1)
	own[k] = f
	m.going++
	m.under.Go(func() { m.run(user, k, f) })
	return f, nil
}

// dropOldest forgets the outcome that is told for the longest.
func dropOldest(own map[key]*fetch) {
	var oldest *fetch
	var at key
	for k, f := range own {
		if !f.ended.IsZero() && (oldest == nil || f.ended.Before(oldest.ended)) {
			oldest, at = f, k
		}
	}
	delete(own, at)
}

// expire forgets outcomes whose time is over. REQUIRES: m.mu held.
func (m *Imports) expire(now time.Time) {
	for user, own := range m.all {
		for k, f := range own {
			if !f.ended.IsZero() && now.Sub(f.ended) >= f.remembered() {
				delete(own, k)
			}
		}
		if len(own) == 0 {
			delete(m.all, user)
		}
	}
}

func (f *fetch) remembered() time.Duration {
	if f.err != nil {
		return failedRemembered
	}
	return remembered
}

func (m *Imports) forget(user string, k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.all[user][k]; f != nil && !f.ended.IsZero() {
		delete(m.all[user], k)
	}
}

// run fetches and keeps the outcome.
func (m *Imports) run(user string, k key, f *fetch) {
	ctx, cancel := context.WithTimeoutCause(m.ctx, m.cfg.Within, errSlow)
	defer cancel()
	blob, err := m.fetch(ctx, user, k, f)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, ErrRefused) {
		err = failed(cause)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f.blob, f.err, f.ended = blob, err, time.Now()
	m.going--
}
