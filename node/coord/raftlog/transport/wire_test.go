package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// errWire is what a broken wire returns.
var errWire = errors.New("the wire is cut")

// wire is a connection in this process whose bytes arrive when the test says: after a delay, or once held ones are
// released. What was written before an end closes arrives nevertheless, unless the wire is cut.
type wire struct {
	ends [2]*wireEnd
}

// wireEnd is one end: what it reads is what the other one wrote.
type wireEnd struct {
	other    *wireEnd
	mu       sync.Mutex
	news     *sync.Cond
	coming   []parcel
	delay    func() time.Duration // of what is written here
	held     bool                 // what was written to this end does not arrive
	over     bool                 // the other end has closed
	closed   bool
	cut      bool
	deadline time.Time
}

type parcel struct {
	bytes []byte
	at    time.Time
}

func newWire(delay func() time.Duration) *wire {
	w := &wire{}
	for i := range w.ends {
		w.ends[i] = &wireEnd{delay: delay}
		w.ends[i].news = sync.NewCond(&w.ends[i].mu)
	}
	w.ends[0].other, w.ends[1].other = w.ends[1], w.ends[0]
	return w
}

// cut ends a wire; what is under way is lost.
func (w *wire) cut() {
	for _, e := range w.ends {
		e.change(func() { e.cut = true })
	}
}

// hold keeps what is written to an end from arriving, or lets it.
func (e *wireEnd) hold(yes bool) { e.change(func() { e.held = yes }) }

func (e *wireEnd) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	e.news.Broadcast()
}

// Read implements net.Conn.
func (e *wireEnd) Read(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		now := time.Now()
		switch {
		case e.cut:
			return 0, errWire
		case e.closed:
			return 0, net.ErrClosed
		case !e.deadline.IsZero() && !now.Before(e.deadline):
			return 0, os.ErrDeadlineExceeded
		case !e.held && len(e.coming) > 0 && !now.Before(e.coming[0].at):
			n := copy(b, e.coming[0].bytes)
			if e.coming[0].bytes = e.coming[0].bytes[n:]; len(e.coming[0].bytes) == 0 {
				e.coming = e.coming[1:]
			}
			return n, nil
		case e.over && len(e.coming) == 0:
			return 0, io.EOF
		}
		e.wakeAt(now)
		e.news.Wait()
	}
}

// wakeAt has Read look again when something is due.
//
// REQUIRES: e.mu held.
func (e *wireEnd) wakeAt(now time.Time) {
	due := e.deadline
	if !e.held && len(e.coming) > 0 && (due.IsZero() || e.coming[0].at.Before(due)) {
		due = e.coming[0].at
	}
	if !due.IsZero() {
		time.AfterFunc(due.Sub(now), func() { e.change(func() {}) })
	}
}

// Write implements net.Conn.
func (e *wireEnd) Write(b []byte) (int, error) {
	e.mu.Lock()
	closed, at := e.closed || e.cut, time.Now()
	if e.delay != nil {
		at = at.Add(e.delay())
	}
	e.mu.Unlock()
	if closed {
		return 0, errWire
	}
	o := e.other
	o.change(func() {
		if n := len(o.coming); n > 0 && o.coming[n-1].at.After(at) {
			at = o.coming[n-1].at
		}
		o.coming = append(o.coming, parcel{append([]byte(nil), b...), at})
	})
	return len(b), nil
}

// Close implements net.Conn.
func (e *wireEnd) Close() error {
	e.change(func() { e.closed = true })
	e.other.change(func() { e.other.over = true })
	return nil
}

// SetDeadline implements net.Conn.
func (e *wireEnd) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (e *wireEnd) SetReadDeadline(t time.Time) error {
	e.change(func() { e.deadline = t })
	return nil
}

// SetWriteDeadline implements net.Conn: nothing waits to be written.
func (*wireEnd) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (*wireEnd) LocalAddr() net.Addr { return advertised("here") }

// RemoteAddr implements net.Conn.
func (*wireEnd) RemoteAddr() net.Addr { return advertised("there") }
