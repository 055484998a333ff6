package transport

import (
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport. A pipe takes a connection that is there already: to open one takes
// several round trips, in which raft goes on with one request at a time, and asks again. Who is not far has none.
func (t *Transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.progressOf(id)
	if t.closed || !f.way.isFar() {
		return nil, raft.ErrPipelineReplicationNotSupported
	}
	if f.spare == nil {
		t.dialSpare(id, f)
		return nil, raft.ErrPipelineReplicationNotSupported
	}
	p := newPipe(t, id, target, f.spare)
	f.pipe, f.spare = p, nil
	t.wg.Go(p.receive)
	return p, nil
}

// dialSpare opens a connection for the next pipe.
//
// REQUIRES: t.mu held.
func (t *Transport) dialSpare(id raft.ServerID, f *progress) {
	if f.dialing || t.closed {
		return
	}
	f.dialing = true
	t.wg.Go(func() {
		conn, err := t.stream.Dial(raft.ServerAddress(id), t.within)
		t.mu.Lock()
		defer t.mu.Unlock()
		f.dialing = false
		switch {
		case err != nil: // raft asks again once a request was answered
		case t.closed:
			_ = conn.Close()
		default:
			f.spare = conn
			time.AfterFunc(spareFor, func() { t.dropSpare(f, conn) })
		}
	})
}

// spareFor is how long a connection waits for a pipe: a leader takes it with the next answer.
const spareFor = 10 * time.Second

// dropSpare closes a connection that no pipe has taken: this member leads no more.
func (t *Transport) dropSpare(f *progress, conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.spare == conn {
		_ = conn.Close()
		f.spare = nil
	}
}

// forget has nothing more sent by a pipe.
func (t *Transport) forget(p *pipe) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.peers[p.id]; f != nil && f.pipe == p {
		f.pipe = nil
	}
}

// closePipes ends all.
func (t *Transport) closePipes() {
	var open []*pipe
	t.mu.Lock()
	for _, f := range t.peers {
		if f.spare != nil {
			_ = f.spare.Close()
			f.spare = nil
		}
		if f.pipe != nil {
			open = append(open, f.pipe)
		}
	}
	t.mu.Unlock()
	for _, p := range open {
		_ = p.Close()
	}
}
