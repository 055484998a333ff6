package transport

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord"
)

// A pipe sends a follower append requests that do not wait for the answers to those before. It is one connection,
// so requests arrive, are executed and are answered in their order. It ends with the first request that is refused
// or not answered, and with it all that are in flight: raft then goes on with one request at a time, from the newest
// entry that the follower has acknowledged, until one was accepted. DESIGN.md says why that is safe.

// pipePace is how long a request waits for the answer to the one before: entries that come meanwhile share the next
// one. On a LAN the answer has come by then, so that nothing is in flight twice; over a WAN it is little beside a
// round trip.
const pipePace = 2 * time.Millisecond

// errFull has a notice given up: the requests in flight, or those that follow, tell the same.
var errFull = errors.New("too many requests in flight")

// errRefused ends a pipe.
var errRefused = errors.New("the follower refused a request")

// errBehind ends a pipe.
var errBehind = errors.New("the follower is far behind")

// errNear ends a pipe; see way.go.
var errNear = errors.New("the follower is near")

// maxBehind is how many entries may wait to be sent by a pipe. raft hands it one request for each new entry, else one
// in CommitTimeout, so a follower that was slow would stay behind once no more come; one request at a time goes on
// until all is sent.
const maxBehind = 256

// pipe is raft's way to one follower in one term.
type pipe struct {
	t      *Transport
	id     raft.ServerID
	target raft.ServerAddress
	conn   net.Conn
	dec    *codec.Decoder
	out    chan raft.AppendFuture // what was answered
	closed chan struct{}          // nobody reads out any more
	once   sync.Once

	// sending is held from the moment a request counts as sent until it is written: so a notice, which is sent once
	// its entry counts as sent, follows it.
	sending sync.Mutex
	w       *bufio.Writer
	enc     *codec.Encoder

	mu     sync.Mutex
	window window
	err    error           // why it ended; nil: it has not
	moved  coord.Broadcast // window or err has changed
}

var _ raft.AppendPipeline = (*pipe)(nil)

func newPipe(t *Transport, id raft.ServerID, target raft.ServerAddress, conn net.Conn) *pipe {
	p := &pipe{
		t: t, id: id, target: target, conn: conn, dec: codec.NewDecoder(bufio.NewReader(conn), msgpack()),
		out: make(chan raft.AppendFuture), closed: make(chan struct{}),
		w: bufio.NewWriterSize(conn, 64<<10),
	}
	p.enc = codec.NewEncoder(p.w, sentMsgpack())
	return p
}

// AppendEntries implements raft.AppendPipeline. It returns once the next request may be sent, and never waits for
// whoever reads Consumer. What becomes of a request is told there only: see pipeEnd.
func (p *pipe) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	if p.t.spared(p.id, args, resp) { // raft's reader waits for nothing: it hears of answers by Consumer only
		return answeredFlight(args, resp), nil
	}
	var f *flight
	for _, part := range partsOf(args) {
		f = newFlight(part, resp, false)
		err := p.waitForRoom(f)
		if err == nil {
			err = p.send(f)
		}
		if err != nil {
			p.fail(err)
			break
		}
		p.pace(f)
		resp = new(raft.AppendEntriesResponse)
	}
	if why := p.needless(args); why != nil && f.Error() == nil { // all before it are answered as well
		p.fail(why)
	}
	return f, nil
}

// needless returns why one request at a time does better after a request; nil: it does not.
func (p *pipe) needless(args *raft.AppendEntriesRequest) error {
	switch {
	case p.isBehind(args):
		return errBehind
	case p.t.isNear(p.id):
		return errNear
	}
	return nil
}

// isBehind reports whether much is left to send after a request.
func (p *pipe) isBehind(args *raft.AppendEntriesRequest) bool {
	r := p.t.raft.Load()
	return r != nil && (*r).LastIndex() > lastOf(args)+maxBehind
}

// notice sends a request that raft does not know of, and waits for its answer.
func (p *pipe) notice(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	f := newFlight(args, resp, true)
	p.mu.Lock()
	room := p.window.hasRoom(f)
	p.mu.Unlock()
	if !room {
		return errFull
	}
	if err := p.send(f); err != nil {
		return err
	}
	return f.Error()
}

// waitForRoom waits until a request may be in flight beside the others.
func (p *pipe) waitForRoom(f *flight) error {
	for {
		wait := p.moved.Wait()
		p.mu.Lock()
		room, err := p.window.hasRoom(f), p.err
		p.mu.Unlock()
		if err != nil {
			f.end(err)
			return err
		}
		if room {
			return nil
		}
		<-wait
	}
}

// pace waits for the answer, or a moment.
func (p *pipe) pace(f *flight) {
	moment := time.NewTimer(pipePace)
	defer moment.Stop()
	select {
	case <-f.done:
	case <-moment.C:
	}
}

// send writes a request. One that is not written whole ends the pipe.
func (p *pipe) send(f *flight) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	var err error
	if f.round, err = p.t.begin(p.id, f.args); err == nil {
		f.start = time.Now()
		err = p.push(f)
	}
	if err != nil {
		f.end(err)
		return err
	}
	if err = p.write(p.t.toldEntries(p.id, f.args)); err != nil {
		p.fail(fmt.Errorf("send to %s: %w", p.id, err))
	}
	return err
}

// push counts a request as in flight.
func (p *pipe) push(f *flight) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	p.window.push(f)
	p.moved.Fire()
	return nil
}

// REQUIRES: p.sending held.
func (p *pipe) write(args *raft.AppendEntriesRequest) error {
	_ = p.conn.SetWriteDeadline(time.Now().Add(p.t.within))
	if err := p.w.WriteByte(requestAppend); err != nil {
		return err
	}
	if err := p.enc.Encode(args); err != nil {
		return err
	}
	return p.w.Flush()
}

// receive reads the answers until the pipe ends, and has raft's reader end then.
func (p *pipe) receive() {
	defer p.hand(pipeEnd{})
	var before time.Time
	for f := p.next(); f != nil; f = p.next() {
		if err := p.read(f.resp); err != nil {
			p.fail(fmt.Errorf("answer of %s: %w", p.id, err))
			return
		}
		p.t.measure(p.id, f.args, f.resp, f.start, before)
		before = time.Now()
		p.t.answered(p.id, p.target, f.args, f.resp, f.round)
		if !p.settle(f) {
			return
		}
		if f.endsReader() { // before raft hears of it, which then waits for nothing here
			p.fail(errRefused)
		}
		if !f.ours {
			p.hand(f)
		}
	}
}

// hand gives raft's reader what comes next, unless it has left.
func (p *pipe) hand(f raft.AppendFuture) {
	select {
	case p.out <- f:
	case <-p.closed:
	}
}

// pipeEnd ends the goroutine of raft's that reads the answers, and so raft's use of the pipe. raft knows no other way:
// an answer that is made up counts as a contact, and what raft logs of an error of AppendEntries is read without the
// lock under which it may just be changing.
type pipeEnd struct{ raft.AppendFuture }

// Request implements raft.AppendFuture. raft's reader holds no lock when it calls it.
func (pipeEnd) Request() *raft.AppendEntriesRequest {
	runtime.Goexit()
	return nil
}

// next waits for a request in flight, and returns the oldest; nil: the pipe has ended.
func (p *pipe) next() *flight {
	for {
		wait := p.moved.Wait()
		p.mu.Lock()
		f, err := p.window.oldest(), p.err
		p.mu.Unlock()
		switch {
		case err != nil:
			return nil
		case f != nil:
			return f
		}
		<-wait
	}
}

// read reads the answer that comes next. It has the time of a request from here on: those before it have been executed.
func (p *pipe) read(resp *raft.AppendEntriesResponse) error {
	_ = p.conn.SetReadDeadline(time.Now().Add(p.t.within))
	var text string
	if err := p.dec.Decode(&text); err != nil {
		return err
	}
	if err := p.dec.Decode(resp); err != nil {
		return err
	}
	if text != "" {
		return errors.New(text)
	}
	return p.t.answer(p.id, resp.Term, nil)
}

// settle ends the oldest request, which is answered; false: the pipe ended before.
func (p *pipe) settle(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return false
	}
	p.window.pop()
	f.end(nil)
	p.moved.Fire()
	return true
}

// fail ends the pipe and what is in flight; raft is not told of that, since none was answered.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return
	}
	p.err = err
	flights := p.window.drain()
	p.moved.Fire()
	p.mu.Unlock()
	_ = p.conn.Close()
	for _, f := range flights {
		f.end(err)
		p.t.failed(p.id, f.args.Term)
	}
	p.t.forget(p)
	if !errors.Is(err, raft.ErrPipelineShutdown) {
		p.t.log.Info("pipeline ended", "peer", p.id, "error", err)
	}
}

// Consumer implements raft.AppendPipeline.
func (p *pipe) Consumer() <-chan raft.AppendFuture { return p.out }

// Close implements raft.AppendPipeline.
func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	p.fail(raft.ErrPipelineShutdown)
	return nil
}
