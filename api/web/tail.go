package web

import (
	"io"
	"sync"
)

// tail holds the end of what a reader gave and nobody took yet.
type tail struct {
	mu  sync.Mutex
	now piece
	// more is signalled (capacity 1) after every change.
	more chan struct{}
}

// piece is some output. Invariant: len(text) ≤ logTail.
type piece struct {
	text    []byte
	skipped int64 // bytes before text that were dropped
	at      int64 // bytes of the output up to the end of text
	err     error // of the reader; io.EOF at its end
}

func newTail() *tail { return &tail{more: make(chan struct{}, 1)} }

// fill reads until the reader ends; the first seen bytes are passed over.
func (t *tail) fill(body io.Reader, seen int64) {
	buf := make([]byte, 32<<10)
	for at := int64(0); ; {
		n, err := body.Read(buf)
		fresh := buf[:n]
		if old := seen - at; old > 0 {
			fresh = fresh[min(int64(n), old):]
		}
		at += int64(n)
		t.add(fresh, at, err)
		if err != nil {
			return
		}
	}
}

func (t *tail) add(b []byte, at int64, err error) {
	t.mu.Lock()
	t.now.text = append(t.now.text, b...)
	if over := len(t.now.text) - logTail; over > 0 {
		t.now.text = append(t.now.text[:0], t.now.text[over:]...)
		t.now.skipped += int64(over)
	}
	t.now.at, t.now.err = at, err
	t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// takePiece returns what has come since the last call.
func (t *tail) takePiece() piece {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.now
	t.now = piece{at: p.at, err: p.err}
	return p
}
