package relay

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
)

// forwarder sends this member's calls and questions to the leader over one
// connection, which lasts as long as the leader does.
type forwarder struct {
	ctx    context.Context // ends with the log
	dialer *Dialer
	fed    [16]byte
	origin uint64
	by     *author
	t      Timing
	hooks  Hooks
	// outcome is told each call's outcome, once per submitted call.
	outcome func(c *proposal, o Outcome, index uint64)

	mu   sync.Mutex
	link *link
	lead uint64 // counts changes of lead
	wg   sync.WaitGroup
}

// link is one connection to one leader.
type link struct {
	f    *forwarder
	to   Peer
	stop context.CancelFunc
	kick chan struct{}

	mu      sync.Mutex
	dead    bool
	queue   []*proposal         // not sent
	sent    map[uint64]sentCall // no outcome yet
	flying  int                 // bundles whose calls have none
	bundled time.Time           // when the newest bundle was made
	pace    alarm
	asks    []leaderQuestion // questions not sent
	asked   map[uint64]chan answer
	nextAsk uint64
	// heard is when the leader last answered, or when it last owed nothing.
	heard time.Time
}

// sentCall is a call that was sent, in a bundle of which so many calls have no outcome; nil: it holds no other bundle.
type sentCall struct {
	*proposal
	left *int
	at   time.Time
}

// leaderQuestion is a question to the leader.
type leaderQuestion struct {
	kind        byte
	id          uint64 // of the answer, per connection
	site        string // to remove
	incarnation uint64 // to renew
}

// submit sends calls to the leader.
func (f *forwarder) submit(to Peer, calls []*proposal) {
	l := f.linkTo(to)
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		f.reportOutcome(calls, Refused)
		return
	}
	l.queue = append(l.queue, calls...)
	l.mu.Unlock()
	coord.Signal(l.kick)
}

func (f *forwarder) reportOutcome(calls []*proposal, o Outcome) {
	for _, c := range calls {
		f.outcome(c, o, 0)
	}
}

// question asks the leader; a lost answer is answerRetry.
func (f *forwarder) question(ctx context.Context, to Peer, q leaderQuestion) (answer, error) {
	l := f.linkTo(to)
	ch := make(chan answer, 1)
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return answer{code: answerRetry}, nil
	}
	l.nextAsk++
	q.id = l.nextAsk
	l.asks = append(l.asks, q)
	l.asked[q.id] = ch
	l.mu.Unlock()
	coord.Signal(l.kick)
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
		l.mu.Lock()
		delete(l.asked, q.id)
		l.mu.Unlock()
		return answer{}, context.Cause(ctx)
	}
}

// linkTo returns the link to a leader, replacing one to another or a dead one.
func (f *forwarder) linkTo(to Peer) *link {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.link; l != nil {
		if l.to == to && !l.isDead() {
			return l
		}
		l.stop()
	}
	ctx, stop := context.WithCancel(f.ctx)
	l := &link{
		f: f, to: to, stop: stop, kick: make(chan struct{}, 1),
		sent: map[uint64]sentCall{}, asked: map[uint64]chan answer{},
	}
	f.link = l
	if f.ctx.Err() != nil {
		l.dead = true
		return l
	}
	f.wg.Go(func() { l.run(ctx) })
	return l
}

// wait waits for the links, once ctx has ended. Whoever begins one looks at ctx with the lock held: behind it none
// begins any more, so that wg is not added to while it is waited for.
func (f *forwarder) wait() {
	f.mu.Lock()
	l := f.link
	f.mu.Unlock()
	if l != nil {
		l.stop()
	}
	f.wg.Wait()
}

// drop ends the link if it goes to another leader than to.
func (f *forwarder) drop(to Peer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.link != nil && f.link.to != to {
		f.link.stop()
	}
}

// isOverdue reports whether the leader owes any answer for too long. What was sent is sent again then, under the same
// ids.
func (l *link) isOverdue(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 && len(l.asked) == 0 {
		l.heard = now
	}
	return !l.dead && !l.heard.IsZero() && now.Sub(l.heard) > l.f.t.Reply
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// run dials, writes until the link ends, and settles what is left.
func (l *link) run(ctx context.Context) {
	defer l.stop()
	dial, cancel := context.WithTimeout(ctx, l.f.t.RPC)
	conn, err := l.f.dialer.Dial(dial, l.to, KindForward, l.f.fed)
	cancel()
	if err == nil {
		unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
		var reader sync.WaitGroup
		reader.Go(func() {
			defer l.stop()
			l.read(conn)
		})
		l.write(ctx, conn)
		unhook()
		_ = conn.Close()
		reader.Wait()
	}
	l.settleRemaining()
}

// settleRemaining settles everything: what was sent is unknown, what was not is refused.
func (l *link) settleRemaining() {
	l.mu.Lock()
	l.dead = true
	queue, sent, asked := l.queue, l.sent, l.asked
	l.queue, l.sent, l.asked = nil, nil, nil
	l.mu.Unlock()
	for _, c := range sent {
		l.f.outcome(c.proposal, Unknown, 0)
	}
	l.f.reportOutcome(queue, Refused)
	for _, ch := range asked {
		ch <- answer{code: answerRetry}
	}
}

func (l *link) write(ctx context.Context, conn net.Conn) {
	var buf []byte
	for {
		select {
		case <-l.kick:
		case <-ctx.Done():
			return
		}
		for {
			b, calls := l.next(buf[:0])
			if len(b) == 0 {
				break
			}
			if l.f.hooks.Forward != nil && calls > 0 {
				l.f.hooks.Forward(calls)
			}
			_ = conn.SetWriteDeadline(time.Now().Add(l.f.t.Reply))
			if _, err := conn.Write(b); err != nil {
				l.stop()
				return
			}
			if buf = b; cap(buf) > 4*maxBundleBytes {
				buf = nil
			}
		}
	}
}

// next encodes the questions that wait, and one bundle, marked as sent.
func (l *link) next(b []byte) (frames []byte, calls int) {
	asks, bundle := l.take(time.Now())
	for _, a := range asks {
		b = append(b, EndFrame(appendQuestion(Frame(nil), a))...)
	}
	if len(bundle) > 0 {
		at := len(b)
		b = appendCalls(Frame(b), l.f.origin, bundle, l.f.sign())
		EndFrame(b[at:])
	}
	return b, len(bundle)
}

// sign returns what signs commands, nil if they are not signed.
func (f *forwarder) sign() signer {
	if f.by == nil {
		return nil
	}
	return func(encoded []byte, commands int) signature.Signature {
		return f.by.bundle(encoded, commands).Signature
	}
}

// take takes the questions that wait, and the calls of the next bundle if it is due, which count as sent.
func (l *link) take(now time.Time) (asks []leaderQuestion, bundle []*proposal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.asks {
		if l.asked[a.id] != nil { // who asked may have given up meanwhile
			asks = append(asks, a)
		}
	}
	l.asks = l.asks[:0]
	if n := l.bundleDue(now); n > 0 {
		bundle = l.queue[:n:n]
		l.queue = append(l.queue[:0:0], l.queue[n:]...)
		l.flying++
		l.bundled = now
		for _, c := range bundle {
			l.unsend(c.seq) // an earlier attempt, of which nobody asks any more
			l.sent[c.seq] = sentCall{c, &n, now}
		}
	}
	if len(asks)+len(bundle) > 0 && l.heard.IsZero() {
		l.heard = now
	}
	return asks, bundle
}

// manyCommands do not wait for the bundle under way.
const manyCommands = 256

// bundleDue returns how many of the waiting calls go to the leader now, as one bundle. Every member verifies each
// bundle, so few calls wait for those under way, or for Timing.Pace if there is one, and share the next one.
// REQUIRES: l.mu held.
func (l *link) bundleDue(now time.Time) (n int) {
	size, commands := 0, 0
	for ; n < min(len(l.queue), frameMaxCalls); n++ {
		c := l.queue[n]
		if n > 0 && (commands+len(c.cmds) > maxBundleCommands || size+c.bytes > maxBundleBytes ||
			c.alone || l.queue[0].alone) {
			return n
		}
		size += c.bytes
		commands += len(c.cmds)
	}
	if n > 0 && commands < manyCommands && !l.mayFly(now) {
		return 0
	}
	return n
}

// mayFly reports whether a small bundle may be sent beside those under way. REQUIRES: l.mu held.
func (l *link) mayFly(now time.Time) bool {
	switch {
	case l.f.t.Bundles > 0 && l.flying >= l.f.t.Bundles:
		return false
	case l.f.t.Pace > 0 && l.flying > 0:
		return !l.pace.isEarly(now.Sub(l.bundled), l.f.t.Pace, l.kick)
	}
	return true
}

func (l *link) read(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 64<<10)
	var buf []byte
	for {
		b, err := ReadFrame(r, buf, MaxFrame)
		if err != nil || len(b) == 0 {
			return
		}
		buf = b
		switch b[0] {
		case frameDone:
			all, err := parseDone(b[1:])
			if err != nil {
				return
			}
			l.settleDone(all)
		case frameAnswer:
			id, a, err := parseAnswer(b[1:])
			if err != nil {
				return
			}
			l.answer(id, a)
		default:
			return
		}
	}
}

// unsend takes a call for one that is not under way any more, and returns it; nil: it is not. REQUIRES: l.mu held.
func (l *link) unsend(seq uint64) *proposal {
	c, known := l.sent[seq]
	if !known {
		return nil
	}
	delete(l.sent, seq)
	l.land(&c)
	return c.proposal
}

func (l *link) settleDone(all []doneCall) {
	calls := make([]*proposal, len(all))
	l.mu.Lock()
	l.heard = time.Now()
	for i, d := range all {
		calls[i] = l.unsend(d.seq)
	}
	l.mu.Unlock()
	coord.Signal(l.kick) // what has waited may go
	for i, d := range all {
		if calls[i] != nil {
			l.f.outcome(calls[i], min(d.outcome, rejected), d.index)
		}
	}
}

func (l *link) answer(id uint64, a answer) {
	l.mu.Lock()
	l.heard = time.Now()
	ch := l.asked[id]
	delete(l.asked, id)
	l.mu.Unlock()
	if ch != nil {
		ch <- a
	}
}
