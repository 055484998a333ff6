package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/cloudshare/cloudshare/api/internal/problem"
)

const (
	// maxHeld bytes of bodies are read at a time. Small bodies, up to promisedBytes, are not counted: the number of
	// connections bounds them. Of lines everything is, as long as they or their results wait.
	maxHeld = 256 << 20
	// maxHeldEach of them are of one user, or site.
	maxHeldEach = 64 << 20
)

// held bounds the bytes of bodies that are on their way at the same time.
type held struct {
	whose Whose

	mu  sync.Mutex
	all int            // bytes; guarded by mu
	of  map[string]int // of whom; guarded by mu. Invariant: no zeros
}

func newHeld(whose Whose) *held { return &held{whose: whose, of: map[string]int{}} }

// share is what one body has of them.
type share struct {
	from *held
	who  string
	n    int // guarded by from.mu
}

// shareOf returns what the body of a request has: nothing yet.
func (h *held) shareOf(ctx context.Context) *share { return &share{from: h, who: h.whose(ctx)} }

// grow takes so many bytes more, or says why not.
func (s *share) grow(n int) error {
	h := s.from
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.all+n > maxHeld:
		return problem.Crowded("too-many-bytes", "Too many bytes are on their way",
			fmt.Sprintf("this broker reads %d MiB of bodies at a time: try again later", maxHeld>>20))
	case s.who != "" && h.of[s.who]+n > maxHeldEach:
		p := problem.New(http.StatusTooManyRequests, "too-many-bytes", "Too many bytes of one sender are on their way",
			fmt.Sprintf("one user, or site, may have %d MiB of bodies on their way at a time: wait for answers", maxHeldEach>>20))
		p.RetryAfter = 1
		return p
	}
	h.add(s.who, n)
	s.n += n
	return nil
}

// take takes bytes that are there already, and reports whether that is more than there may be.
func (s *share) take(n int) (over bool) {
	h := s.from
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(s.who, n)
	s.n += n
	return h.all > maxHeld || s.who != "" && h.of[s.who] > maxHeldEach
}

// drop gives some of them back.
func (s *share) drop(n int) {
	s.from.mu.Lock()
	defer s.from.mu.Unlock()
	s.from.add(s.who, -n)
	s.n -= n
}

// release gives all of it back; of nil, nothing.
func (s *share) release() {
	if s == nil {
		return
	}
	s.from.mu.Lock()
	defer s.from.mu.Unlock()
	s.from.add(s.who, -s.n)
	s.n = 0
}

// add counts bytes. REQUIRES: h.mu held.
func (h *held) add(who string, n int) {
	h.all += n
	if who == "" || n == 0 {
		return
	}
	if h.of[who] += n; h.of[who] == 0 {
		delete(h.of, who)
	}
}
