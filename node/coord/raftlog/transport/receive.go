package transport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// raft's requests are received here and not by raft's own transport, which decodes
// whatever comes, for as long as it comes, and believes the name in it. The format is
// raft's: one byte of kind and the request in msgpack, answered by an error text and
// the response. Requests of one connection are executed one after another; those that a
// pipe has sent meanwhile wait in the connection.

// inbound answers the raft requests of one accepted connection.
type inbound struct {
	t    *Transport
	conn net.Conn
	site string // the dialer's, of its preamble
	in   boundedReader
	dec  *codec.Decoder
	w    *bufio.Writer
	enc  *codec.Encoder
}

// Serve answers raft's requests until the connection or the transport ends.
func (t *Transport) Serve(conn net.Conn, p relay.Preamble) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 32<<10)
	s := &inbound{t: t, conn: conn, site: p.Site, w: bufio.NewWriter(conn)}
	s.in = boundedReader{r: r, held: &t.held, holder: func() string { return t.memoryShare(p.Site) }}
	s.dec, s.enc = codec.NewDecoder(&s.in, msgpack()), codec.NewEncoder(s.w, msgpack())
	for over := false; !over; {
		if _, err := r.Peek(1); err != nil { // a connection may be idle as long as it likes
			return
		}
		var err error
		if over, err = s.exchange(); err != nil {
			if errors.Is(err, ErrRequest) || errors.Is(err, os.ErrDeadlineExceeded) {
				t.complain(conn, fmt.Errorf("raft request of site %.63q: %w", s.site, err))
			}
			return
		}
	}
}

// memoryShare is whose share of the memory a connection uses: each voter has its own, all
// other names together have one, since a stranger may choose among them.
func (t *Transport) memoryShare(site string) string {
	r := t.raft.Load()
	if r == nil || !slices.ContainsFunc((*r).GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return string(s.ID) == site && s.Suffrage == raft.Voter
	}) {
		return ""
	}
	return site
}

// exchange receives one request and answers it; over says that nothing can follow.
func (s *inbound) exchange() (over bool, err error) {
	defer s.in.release()
	_ = s.conn.SetReadDeadline(time.Now().Add(s.t.within))
	kind, err := s.in.r.ReadByte()
	if err != nil {
		return true, err
	}
	command, err := s.decode(kind)
	if err != nil {
		return true, err
	}
	if err = checkSender(command, s.site); err != nil {
		return true, errors.Join(err, s.respond(raft.RPCResponse{Response: &raft.AppendEntriesResponse{}, Error: err}))
	}
	_ = s.conn.SetReadDeadline(time.Time{})
	rpc := raft.RPC{Command: command}
	if c, ok := command.(*raft.InstallSnapshotRequest); ok {
		over = true // what is left of the snapshot would be taken for a request
		rpc.Reader = &pacedReader{conn: s.conn, r: s.in.r, left: max(c.Size, 0), within: s.t.within}
	}
	answer, ok := s.t.passToRaft(rpc)
	if !ok {
		return true, net.ErrClosed
	}
	return over, s.respond(answer)
}

// decode reads a request behind its kind.
func (s *inbound) decode(kind byte) (any, error) {
	command, err := decodeRequest(s.dec, &s.in, kind)
	if cause := s.in.err; cause != nil && err != nil { // the decoder wraps it beyond recognition
		return nil, cause
	}
	return command, err
}

func (s *inbound) respond(a raft.RPCResponse) error {
	text := ""
	if a.Error != nil {
		text = a.Error.Error()
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.t.within))
	err := s.enc.Encode(text)
	if err == nil {
		err = s.enc.Encode(a.Response)
	}
	if err == nil {
		err = s.w.Flush()
	}
	return err
}

// passToRaft has raft answer a request, if it may see it; false: the transport is closed.
func (t *Transport) passToRaft(rpc raft.RPC) (raft.RPCResponse, bool) {
	answer := make(chan raft.RPCResponse, 1)
	rpc.RespChan = answer
	if t.screen(rpc) {
		if beat := t.HeartbeatHandler(); beat != nil && isHeartbeat(rpc.Command) {
			beat(rpc) // concurrently with raft's main goroutine, which may wait for the disk
		} else {
			select {
			case t.screened <- rpc:
			case <-t.shut:
				return raft.RPCResponse{}, false
			}
		}
	}
	select {
	case a := <-answer:
		return a, true
	case <-t.shut:
		return raft.RPCResponse{}, false
	}
}

// isHeartbeat reports whether a request is one of raft's empty append requests that
// say nothing but who leads.
func isHeartbeat(command any) bool {
	c, ok := command.(*raft.AppendEntriesRequest)
	return ok && c.Term != 0 && c.PrevLogEntry == 0 && c.PrevLogTerm == 0 && len(c.Entries) == 0 &&
		c.LeaderCommitIndex == 0
}

// checkSender refuses a request in another name than the connection's, which was told
// the receiver before anything else.
func checkSender(command any, site string) error {
	from := command.(raft.WithRPCHeader).GetRPCHeader() //nolint:forcetypeassert // all that decodeRequest returns are
	named, _, _ := strings.Cut(string(from.Addr), "@")
	if noRequestIdentity || string(from.ID) == site && named == site {
		return nil
	}
	return fmt.Errorf("%w: %T in the name of %.63q at %.80q", ErrRequest, command, from.ID, from.Addr)
}

// boundedReader reads one request: a bounded number of bytes, those beyond the first few in
// the holder's share of the memory.
type boundedReader struct {
	r      *bufio.Reader
	left   int // bytes that may still come
	counts int // of a share, once left is below it
	held   *shareBytes
	holder func() string // asked once a request is counted
	shares string        // the holder of what it took
	took   int
	err    error // the first one of this request
}

// beginRequest allows a request so many bytes.
func (i *boundedReader) beginRequest(limit int) {
	i.left, i.counts, i.err = limit, limit-freeRequest, nil
}

// Read implements io.Reader.
func (i *boundedReader) Read(b []byte) (int, error) {
	if i.err != nil {
		return 0, i.err
	}
	if len(b) > i.left {
		i.err = fmt.Errorf("%w: it is longer than any", ErrRequest)
		return 0, i.err
	}
	if n := i.counts - (i.left - len(b)) - i.took; n > 0 { // counted before they come
		if i.took == 0 {
			i.shares = i.holder()
		}
		if !i.held.reserve(i.shares, n) {
			i.err = fmt.Errorf("%w: too many large ones are under way", ErrRequest)
			return 0, i.err
		}
		i.took += n
	}
	n, err := i.r.Read(b)
	i.left -= n
	if err != nil {
		i.err = err
	}
	return n, err
}

// release gives back what the request held.
func (i *boundedReader) release() {
	i.held.release(i.shares, i.took)
	i.took = 0
}

// pacedReader reads a snapshot, which must come at a pace: raft's main goroutine waits
// for it, and the one that sends it allows raft.DefaultTimeoutScale bytes the time
// of one request, too.
type pacedReader struct {
	conn   net.Conn
	r      io.Reader
	left   int64
	step   int64 // bytes until the time is set again
	within time.Duration
}

// Read implements io.Reader.
func (s *pacedReader) Read(b []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	if s.step <= 0 {
		const requests = 4 // at once: a short pause does not end it
		s.step = requests * raft.DefaultTimeoutScale
		_ = s.conn.SetReadDeadline(time.Now().Add(requests * s.within))
	}
	n, err := s.r.Read(b[:min(int64(len(b)), s.left)])
	s.left -= int64(n)
	s.step -= int64(n)
	return n, err
}
