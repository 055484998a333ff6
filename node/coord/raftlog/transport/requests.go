package transport

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// The kinds of requests, as raft's transport numbers them.
const (
	requestAppend   byte = 0
	requestVote     byte = 1
	requestSnapshot byte = 2
	requestTimeout  byte = 3
	requestPreVote  byte = 4
)

// Bounds of one request.
const (
	// maxPlain bounds a request of a few numbers and names.
	maxPlain = 16 << 10
	// MaxEntries is above what any profile sends at once.
	MaxEntries = 1024
	// maxAppendBytes is what a leader puts into one append request, unless a single
	// entry is larger.
	maxAppendBytes = 4 << 20
	// maxEntry is above the largest entry: a call of the greatest size and its header.
	maxEntry = relay.MaxFrame
	// entryCost is above what an entry takes in msgpack besides its bytes.
	entryCost = 256
	// maxSnapshotHead bounds a snapshot's configuration: a few thousand members.
	maxSnapshotHead = 1 << 20
	// maxSnapshot bounds what a snapshot may write to the disk.
	maxSnapshot = 4 << 30
	// maxAnswer bounds the answer to a request.
	maxAnswer = 64 << 10
)

// limitOf returns how many bytes a request of a kind may have.
func limitOf(kind byte) int {
	switch kind {
	case requestAppend:
		return max(maxAppendBytes, maxEntry) + MaxEntries*entryCost
	case requestSnapshot:
		return maxSnapshotHead
	}
	return maxPlain
}

func msgpack() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{}
	h.MaxInitLen = 1 << 20 // memory grows with what comes, not with what a length promises
	return h
}

// sentMsgpack encodes as raft's transport does.
func sentMsgpack() *codec.MsgpackHandle {
	h := msgpack()
	h.TimeNotBuiltin = true
	return h
}

// appendRequest is raft's request with the entries not yet decoded: a byte of msgpack
// may become a whole entry.
type appendRequest struct {
	raft.RPCHeader
	Term              uint64
	Leader            []byte
	PrevLogEntry      uint64
	PrevLogTerm       uint64
	Entries           codec.Raw
	LeaderCommitIndex uint64
}

// decodeRequest decodes a request of a kind, and nothing that is larger than any
// member's.
func decodeRequest(dec *codec.Decoder, in *boundedReader, kind byte) (any, error) {
	in.beginRequest(limitOf(kind))
	var command any
	switch kind {
	case requestAppend:
		return decodeAppend(dec)
	case requestVote:
		command = &raft.RequestVoteRequest{}
	case requestSnapshot:
		command = &raft.InstallSnapshotRequest{}
	case requestTimeout:
		command = &raft.TimeoutNowRequest{}
	case requestPreVote:
		command = &raft.RequestPreVoteRequest{}
	default:
		return nil, fmt.Errorf("%w: kind %d", ErrRequest, kind)
	}
	if err := dec.Decode(command); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return command, nil
}

func decodeAppend(dec *codec.Decoder) (any, error) {
	var a appendRequest
	if err := dec.Decode(&a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	c := &raft.AppendEntriesRequest{
		RPCHeader: a.RPCHeader, Term: a.Term, Leader: a.Leader, //nolint:staticcheck // raft fills both
		PrevLogEntry: a.PrevLogEntry, PrevLogTerm: a.PrevLogTerm, LeaderCommitIndex: a.LeaderCommitIndex,
	}
	switch n := countEntries(a.Entries); {
	case n < 0 || n > MaxEntries:
		return nil, fmt.Errorf("%w: the limit is %d entries, in a list", ErrRequest, MaxEntries)
	case n > 0:
		if err := codec.NewDecoderBytes(a.Entries, msgpack()).Decode(&c.Entries); err != nil {
			return nil, fmt.Errorf("%w: entries: %w", ErrRequest, err)
		}
	}
	return c, nil
}

// countEntries returns the length of a list in msgpack, -1 for what is none.
func countEntries(b []byte) int {
	const (
		none, list16, list32      = 0xc0, 0xdc, 0xdd
		shortList, shortListUntil = 0x90, 0x9f
	)
	switch {
	case len(b) == 0 || b[0] == none:
		return 0
	case b[0] >= shortList && b[0] <= shortListUntil:
		return int(b[0] - shortList)
	case b[0] == list16 && len(b) >= 3:
		return int(binary.BigEndian.Uint16(b[1:]))
	case b[0] == list32 && len(b) >= 5:
		return int(min(binary.BigEndian.Uint32(b[1:]), MaxEntries+1))
	}
	return -1
}

// boundEntries returns as many of the first entries as stand in one request. raft
// sends what is left out next, since it looks at what was sent.
func boundEntries(entries []*raft.Log) []*raft.Log {
	size := 0
	for i, e := range entries {
		if size += len(e.Data) + len(e.Extensions); i > 0 && size > maxAppendBytes {
			return entries[:i]
		}
	}
	return entries[:min(len(entries), MaxEntries)]
}

// What requests hold in memory until they are answered.
const (
	// freeRequest bytes of each request are not counted.
	freeRequest = 64 << 10
	// maxHeld is for each voter, and for all others together. A leader has one large
	// request under way, and those that it gave up waiting for.
	maxHeld = 32 << 20
)

// shareBytes counts the bytes of large requests by holder.
type shareBytes struct {
	mu sync.Mutex
	of map[string]int // Invariant: no zeros, none above maxHeld.
}

// reserve counts n bytes, unless they are too many.
func (h *shareBytes) reserve(holder string, n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[holder]+n > maxHeld {
		return false
	}
	if h.of == nil {
		h.of = map[string]int{}
	}
	h.of[holder] += n
	return true
}

func (h *shareBytes) release(holder string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n == 0 {
		return
	}
	if h.of[holder] -= n; h.of[holder] == 0 {
		delete(h.of, holder)
	}
}

// outbound is a dialed connection of raft's: what answers requests is bounded. Whoever sends a
// request reads its answer, and bounds the time of both; on a pipe others may be sent meanwhile.
type outbound struct {
	net.Conn
	complain func(net.Conn, error)
	left     atomic.Int64 // bytes that may still come
}

// newOutbound returns a connection whose answer may be read from the start: a pipe waits for the answer to its first
// request while that is still being encoded.
func newOutbound(conn net.Conn, complain func(net.Conn, error)) *outbound {
	o := &outbound{Conn: conn, complain: complain}
	o.left.Store(maxAnswer)
	return o
}

// Write implements net.Conn.
func (o *outbound) Write(b []byte) (int, error) {
	o.left.Store(maxAnswer)
	return o.Conn.Write(b)
}

// Read implements net.Conn.
func (o *outbound) Read(b []byte) (int, error) {
	left := o.left.Load()
	if left <= 0 {
		err := fmt.Errorf("%w: an answer of more than %d bytes", ErrRequest, maxAnswer)
		o.complain(o.Conn, err)
		return 0, err
	}
	n, err := o.Conn.Read(b[:min(len(b), int(left))])
	o.left.Add(-int64(n))
	return n, err
}
