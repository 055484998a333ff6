package relay

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node/coord"
)

// maxOwed and maxOwedBytes bound the calls of one connection that have no
// outcome yet, maxAsked its questions; beyond them the lead stops reading.
const (
	maxOwed      = 4 * frameMaxCalls
	maxOwedBytes = 4 * MaxFrame
	maxAsked     = 256
)

// session is the lead's end of a forward connection. Any member serves it; one
// that does not lead refuses.
type session struct {
	c    *Calls
	conn net.Conn
	site string // the dialer's; commands of other sites are rejected
	kick chan struct{}
	room *sync.Cond // on mu

	mu        sync.Mutex
	ended     bool
	done      []done
	frames    []byte // answers, already framed
	owed      int
	owedBytes int
	asked     int
}

// Serve answers a connection of kind forward, until it or the log ends.
func (c *Calls) Serve(conn net.Conn, p Preamble) {
	s := &session{c: c, conn: conn, site: p.Site, kick: make(chan struct{}, 1)}
	s.room = sync.NewCond(&s.mu)
	ctx, cancel := context.WithCancel(c.ctx)
	var writer sync.WaitGroup
	writer.Go(func() { s.write(ctx) })
	unhook := context.AfterFunc(ctx, func() { s.end() })
	s.read(ctx, &writer)
	cancel()
	unhook()
	s.end()
	writer.Wait()
}

// end closes the connection and wakes a reader that waits for room.
func (s *session) end() {
	_ = s.conn.Close()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.room.Broadcast()
}

func (s *session) read(ctx context.Context, wg *sync.WaitGroup) {
	r := bufio.NewReaderSize(s.conn, 64<<10)
	for {
		// The commands of a frame stay in use until they are encoded: no reuse.
		b, err := ReadFrame(r, nil, MaxFrame)
		if err != nil || len(b) == 0 {
			return
		}
		switch b[0] {
		case frameCalls:
			err = s.calls(b[1:])
		case frameRead, frameRemove, frameRenew, frameDemote:
			err = s.question(ctx, wg, b)
		default:
			err = errFrame
		}
		if err != nil {
			s.c.cfg.Mux.Refuse(s.conn, err)
			return
		}
	}
}

func (s *session) calls(b []byte) error {
	items, err := parseCalls(b)
	if err != nil {
		return err
	}
	s.mu.Lock()
	for (s.owed+len(items) > maxOwed || s.owedBytes+len(b) > maxOwedBytes) && !s.ended {
		s.room.Wait()
	}
	s.owed += len(items)
	for _, it := range items {
		s.owedBytes += it.bytes
	}
	s.mu.Unlock()
	good := items[:0]
	for _, it := range items {
		it.done = func(o Outcome, index uint64) { s.settle(done{it.seq, o, index}, it.bytes) }
		var ok bool
		if ok, it.reports = s.orders(it.cmds); ok {
			good = append(good, it)
		} else {
			it.done(rejected, 0)
		}
	}
	s.c.seq.submit(good...)
	return nil
}

// orders checks commands before they enter the log, where one that cannot be
// decoded would stop every member. It tells whether all are reports.
func (s *session) orders(cmds [][]byte) (ok, reports bool) {
	reports = true
	for _, b := range cmds {
		c, rest, err := fsm.DecodeCommand(b)
		if err != nil || len(rest) > 0 || c.ID.Site != s.site || c.Body.Kind() == fsm.KindSiteLost || c.Body.Kind() == fsm.KindRecover {
			return false, false
		}
		reports = reports && restful(c.Body.Kind())
	}
	return len(cmds) > 0, reports
}

func (s *session) settle(d done, bytes int) {
	s.mu.Lock()
	s.owedBytes -= bytes
	s.done = append(s.done, d)
	s.mu.Unlock()
	coord.Signal(s.kick)
}

func (s *session) question(ctx context.Context, wg *sync.WaitGroup, b []byte) error {
	q, err := parseQuestion(b)
	if err != nil {
		return err
	}
	s.mu.Lock()
	for s.asked >= maxAsked && !s.ended {
		s.room.Wait()
	}
	s.asked++
	s.mu.Unlock()
	wg.Go(func() {
		a := s.answer(ctx, q)
		s.mu.Lock()
		s.asked--
		s.frames = append(s.frames, EndFrame(appendAnswer(Frame(nil), q.id, a))...)
		s.mu.Unlock()
		s.room.Broadcast()
		coord.Signal(s.kick)
	})
	return nil
}

// answer decides here. A broker renews and demotes itself only: the site is the
// connection's.
func (s *session) answer(ctx context.Context, q ask) answer {
	switch q.kind {
	case frameRenew:
		return s.c.renewHere(ctx, coord.Renewal{Site: s.site, Incarnation: q.incarnation})
	case frameRemove:
		return s.c.verdict(func() error { return s.c.cfg.Backend.Remove(ctx, q.site) })
	case frameDemote:
		return s.c.verdict(func() error { return s.c.cfg.Backend.Demote(ctx, s.site) })
	}
	return s.c.reads.answer(ctx)
}

func (s *session) write(ctx context.Context) {
	for {
		select {
		case <-s.kick:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		out, all := s.frames, s.done
		s.frames, s.done = nil, nil
		s.owed -= len(all)
		s.mu.Unlock()
		s.room.Broadcast()
		if len(all) > 0 {
			at := len(out)
			out = appendDone(Frame(out), all)
			EndFrame(out[at:])
		}
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.c.t.Reply))
		if _, err := s.conn.Write(out); err != nil {
			s.end()
			return
		}
	}
}
