package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// session is the leader's end of a forward connection. Any member serves it; one
// that does not lead refuses.
type session struct {
	c    *Calls
	conn net.Conn
	site string // the dialer's; commands of other sites are rejected
	kick chan struct{}

	calls, asked share // what it holds of the budgets
	unsigned     int   // bundles that its site has not signed; read's

	mu      sync.Mutex
	done    []doneCall
	settled int    // cost of the frames whose last call is in done
	frames  []byte // answers, already framed
	answers int    // in frames
	ended   bool   // nothing is written any more
}

// Serve answers a connection of kind forward, until it or the log ends.
func (c *Calls) Serve(conn net.Conn, p Preamble) {
	s := &session{
		c: c, conn: conn, site: p.Site, kick: make(chan struct{}, 1),
		calls: share{of: c.budgets.calls, site: p.Site}, asked: share{of: c.budgets.asked, site: p.Site},
	}
	ctx, cancel := context.WithCancel(c.ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		defer cancel()
		s.write(ctx)
	})
	unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
	s.read(ctx, &writer)
	cancel()
	unhook()
	_ = conn.Close()
	writer.Wait()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.asked.release(s.answers)
	s.calls.release(s.settled)
	c.disconnected(p.Site)
}

// disconnected tells the Grantor that a site's connection has ended, if this member leads.
func (c *Calls) disconnected(site string) {
	if _, leads := c.seq.leading(); !leads || c.ctx.Err() != nil {
		return
	}
	if g := c.grantor.Load(); g != nil {
		if d, listens := (*g).(coord.Disconnected); listens {
			d.Disconnected(site)
		}
	}
}

func (s *session) read(ctx context.Context, wg *sync.WaitGroup) {
	in := &frameReader{
		conn: s.conn, r: bufio.NewReaderSize(s.conn, 64<<10), within: s.c.t.Reply,
		reading: share{of: s.c.budgets.reading, site: s.site},
	}
	for {
		// The commands of a frame stay in use until they are encoded: no reuse.
		b, counted, err := in.next(ctx)
		if err == nil {
			err = s.handle(ctx, wg, b)
			in.reading.release(counted)
		}
		if err != nil {
			if errors.Is(err, errFrame) || errors.Is(err, os.ErrDeadlineExceeded) {
				s.c.cfg.Mux.Refuse(s.conn, err)
			}
			return
		}
	}
}

func (s *session) handle(ctx context.Context, wg *sync.WaitGroup, b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: an empty frame", errFrame)
	}
	switch b[0] {
	case frameCalls:
		return s.submitCalls(ctx, b[1:])
	case frameRead, frameRemove, frameRenew, frameDemote:
		return s.serveQuestion(ctx, wg, b)
	}
	return fmt.Errorf("%w: kind %d", errFrame, b[0])
}

// maxUnsigned is how many bundles of a connection may have wrong signatures: finding that out takes time.
const maxUnsigned = 16

// submitCalls submits the calls of a frame. All of it counts until they have an outcome, since their commands point
// into it.
func (s *session) submitCalls(ctx context.Context, b []byte) error {
	it, err := parseCalls(b, s.site)
	if err != nil {
		return err
	}
	cost := frameCost(len(b), &it)
	if !s.calls.acquire(ctx, cost) {
		return context.Cause(ctx)
	}
	if len(b) > freeFrame {
		select {
		case s.c.budgets.decoding <- struct{}{}:
			defer func() { <-s.c.budgets.decoding }()
		case <-ctx.Done():
			s.calls.release(cost)
			return context.Cause(ctx)
		}
	}
	it.done = func(o Outcome, index uint64) { s.queueOutcomes(it.calls, o, index, cost) }
	ok, are := s.checkCommands(&it)
	it.reports = are.reports
	switch {
	case !ok:
		it.done(rejected, 0)
	case are.since > command.FirstVersion && are.since > s.version(): // or this member does not know of it yet
		it.done(Refused, 0)
	default:
		return s.order(&it)
	}
	return nil
}

// order has the calls of a frame ordered. Their signature is verified meanwhile, or before where the site is in doubt.
func (s *session) order(it *item) error {
	if s.c.by == nil {
		it.signed = nil
		s.c.seq.submit(s.site, *it)
		return nil
	}
	signed := *it.signed // the sequencer has its own
	if s.c.doubts.has(s.site, time.Now()) {
		if !s.verify(&signed) {
			it.done(rejected, 0)
		} else {
			s.c.seq.submit(s.site, *it)
		}
	} else {
		s.c.seq.submit(s.site, *it)
		s.verify(&signed)
	}
	if s.unsigned > maxUnsigned {
		return fmt.Errorf("%w: %d bundles that are not signed by %s", errFrame, s.unsigned, s.site)
	}
	return nil
}

// verify reports whether a bundle is the connection's site's. One that is not casts doubt on what comes next.
func (s *session) verify(b *command.Bundle) bool {
	if s.c.by.isBy(b) {
		return true
	}
	s.unsigned++
	s.c.doubts.add(s.site, time.Now())
	return false
}

// queueOutcomes has the outcome of a frame's calls written; what the frame cost is released then, so that a member that
// reads no outcomes cannot pile them up.
func (s *session) queueOutcomes(calls []call, o Outcome, index uint64, cost int) {
	s.mu.Lock()
	ended := s.ended
	if !ended {
		for _, c := range calls {
			s.done = append(s.done, doneCall{c.seq, o, index})
		}
		s.settled += cost
	}
	s.mu.Unlock()
	if ended {
		s.calls.release(cost)
	}
	coord.Signal(s.kick)
}

// serveQuestion is counted until its answer is written.
func (s *session) serveQuestion(ctx context.Context, wg *sync.WaitGroup, b []byte) error {
	q, err := parseQuestion(b)
	if err != nil {
		return err
	}
	if !s.asked.acquire(ctx, 1) {
		return context.Cause(ctx)
	}
	wg.Go(func() {
		a := s.answer(ctx, q)
		s.mu.Lock()
		s.frames = append(s.frames, EndFrame(appendAnswer(Frame(nil), q.id, a))...)
		s.answers++
		s.mu.Unlock()
		coord.Signal(s.kick)
	})
	return nil
}

// answer decides here. A broker renews and demotes itself only: the site is the
// connection's.
func (s *session) answer(ctx context.Context, q leaderQuestion) answer {
	switch q.kind {
	case frameRenew:
		return s.c.renewHere(ctx, coord.Renewal{Site: s.site, Incarnation: q.incarnation})
	case frameRemove:
		return s.c.verdict(func() error { return s.remove(ctx, q.site) })
	case frameDemote:
		return s.c.verdict(func() error { return s.c.cfg.Backend.Demote(ctx, s.site) })
	}
	return s.c.reads.answer(ctx)
}

// remove takes out the connection's own site only, and only if it has left: whoever
// reaches the peer port may greet in its name.
func (s *session) remove(ctx context.Context, site string) error {
	left := site == s.site
	s.c.cfg.Backend.With(func(m coord.Machine) {
		if p, knows := m.(coord.Parting); knows {
			left = left && p.HasLeft(site)
		}
	})
	if !left {
		return fmt.Errorf("site %s has not left: only the leader's own broker takes it out of the group", site)
	}
	return s.c.cfg.Backend.Remove(ctx, site)
}

func (s *session) write(ctx context.Context) {
	for {
		select {
		case <-s.kick:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		out, all, answers, settled := s.frames, s.done, s.answers, s.settled
		s.frames, s.done, s.answers, s.settled = nil, nil, 0, 0
		s.mu.Unlock()
		if len(all) > 0 {
			at := len(out)
			out = appendDone(Frame(out), all)
			EndFrame(out[at:])
		}
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.c.t.Reply))
		_, err := s.conn.Write(out)
		s.asked.release(answers)
		s.calls.release(settled)
		if err != nil {
			return
		}
	}
}
