package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"github.com/cloudshare/cloudshare/node/coord/relay"
)

func headerOf(site string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(site), Addr: []byte(site + "@h:1")}
}

// encoded is a raft request as it is sent.
func encoded(t testing.TB, kind byte, request any) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{kind})
	if err := codec.NewEncoder(b, msgpack()).Encode(request); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hostileBytes are requests that no member sends, without end where one is promised.
func hostileBytes(t testing.TB) map[string][]byte {
	key := func(name string) []byte { return append([]byte{0, 0x81, 0xa0 | byte(len(name))}, name...) }
	many := encoded(t, requestAppend, &raft.AppendEntriesRequest{
		RPCHeader: headerOf("b"),
		Entries:   make([]*raft.Log, MaxEntries+1),
	})
	return map[string][]byte{
		"unknown kind":  {99},
		"garbage":       append([]byte{0}, bytes.Repeat([]byte{0xde}, 100)...),
		"huge string":   append(key("Leader"), 0xc6, 0xff, 0xff, 0xff, 0xff),
		"huge key":      {1, 0xdf, 0xff, 0xff, 0xff, 0xff, 0xdb, 0xff, 0xff, 0xff, 0xff},
		"huge list":     append(key("Entries"), 0xdd, 0xff, 0xff, 0xff, 0xff),
		"list of names": append(key("Entries"), 0x81, 0xa1, 'x', 0x80),
		"too many":      many,
		"long vote": encoded(t, requestVote, &raft.RequestVoteRequest{
			RPCHeader: headerOf("b"), Candidate: make([]byte, maxPlain), //nolint:staticcheck // raft still decodes it
		}),
		"deep":          append(key("x"), bytes.Repeat([]byte{0x91}, 1<<20)...),
		"short entries": append(key("Entries"), append([]byte{0xdc, 0x7f, 0xff}, bytes.Repeat([]byte{0x80}, 0x7fff)...)...),
		"long snapshot": encoded(t, requestSnapshot, &raft.InstallSnapshotRequest{
			RPCHeader: headerOf("b"), SnapshotVersion: 1,
			LastLogIndex: 1, Size: maxSnapshot + 1,
		}),
		"half a snapshot": encoded(t, requestSnapshot, &raft.InstallSnapshotRequest{
			RPCHeader:     headerOf("b"),
			Configuration: make([]byte, maxSnapshotHead),
		}),
	}
}

// receiving is a transport whose raft answers nothing by itself.
func receiving(complaints *atomic.Int32) *Transport {
	tr := &Transport{
		screened: make(chan raft.RPC), shut: make(chan struct{}), within: time.Second,
		complain: func(net.Conn, error) { complaints.Add(1) },
	}
	tr.Attach(still{})
	return tr
}

// TestHostileRequestsEndTheConnection: what is no request of a member ends the connection,
// whatever length it promises.
func TestHostileRequestsEndTheConnection(t *testing.T) {
	endless := make([]byte, 64<<10)
	for name, b := range hostileBytes(t) {
		var complaints atomic.Int32
		tr := receiving(&complaints)
		near, far := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() { tr.Serve(far, relay.Preamble{Site: "b"}) })
		wg.Go(func() { _, _ = io.Copy(io.Discard, near) })
		_, err := near.Write(b)
		sent := 0
		for err == nil && sent < 256<<20 {
			var n int
			n, err = near.Write(endless)
			sent += n
		}
		if err == nil || sent > limitOf(requestAppend)+len(endless) || complaints.Load() != 1 {
			t.Errorf("%s: %d bytes were taken behind it, %v, %d complaints", name, sent, err, complaints.Load())
		}
		_ = near.Close()
		wg.Wait()
	}
}

// TestSlowRequestIsCutOff: a request that comes byte by byte ends after the time of
// one request; a connection may be silent between two.
func TestSlowRequestIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var complaints atomic.Int32
		tr := receiving(&complaints)
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			tr.Serve(far, relay.Preamble{Site: "b"})
		}()
		<-time.After(time.Hour)
		if complaints.Load() != 0 {
			t.Error("a silent connection is cut off")
		}
		begun := time.Now()
		for range 1000 {
			if _, err := near.Write([]byte{0x00}); err != nil {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		<-done
		if took := time.Since(begun); took > 2*tr.within || complaints.Load() != 1 {
			t.Errorf("cut off after %v, %d complaints", took, complaints.Load())
		}
	})
}

// TestSlowSnapshotIsCutOff: raft's main goroutine waits for a snapshot's bytes.
func TestSlowSnapshotIsCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		step, pause int // bytes, ms
		whole       bool
	}{"steady": {64 << 10, 200, true}, "drip": {16, 900, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 4 << 20
				tr := receiving(new(atomic.Int32))
				near, far := net.Pipe()
				var wg sync.WaitGroup
				wg.Go(func() { tr.Serve(far, relay.Preamble{Site: "b"}) })
				wg.Go(func() {
					_, _ = near.Write(encoded(t, requestSnapshot, &raft.InstallSnapshotRequest{
						RPCHeader: headerOf("b"), SnapshotVersion: 1, Term: 8, LastLogIndex: 1, Size: size,
						Configuration: raft.EncodeConfiguration(raft.Configuration{}),
					}))
					for sent := 0; sent < size; sent += c.step {
						if _, err := near.Write(make([]byte, c.step)); err != nil {
							return
						}
						<-time.After(time.Duration(c.pause) * time.Millisecond)
					}
				})
				rpc := <-tr.screened
				begun := time.Now()
				n, err := io.Copy(io.Discard, rpc.Reader)
				if c.whole && (n != size || err != nil) {
					t.Errorf("%d of %d bytes, %v", n, size, err)
				}
				if took := time.Since(begun); !c.whole && (err == nil || took > 10*tr.within) {
					t.Errorf("raft waits %v for %d bytes, %v", took, n, err)
				}
				close(tr.shut)
				_ = near.Close()
				wg.Wait()
			})
		})
	}
}

// TestAppendRequestsAreBounded: what a leader sends at once is what a follower takes.
func TestAppendRequestsAreBounded(t *testing.T) {
	entry := func(size int) *raft.Log { return &raft.Log{Data: make([]byte, size)} }
	for name, c := range map[string]struct {
		entries []*raft.Log
		want    int
	}{
		"none":              {nil, 0},
		"one of any size":   {[]*raft.Log{entry(maxEntry), entry(1)}, 1},
		"up to the limit":   {[]*raft.Log{entry(maxAppendBytes / 2), entry(maxAppendBytes / 2), entry(1)}, 2},
		"the first is last": {[]*raft.Log{entry(1), entry(maxEntry)}, 1},
	} {
		if n := len(boundEntries(c.entries)); n != c.want {
			t.Errorf("%s: %d of %d entries, want %d", name, n, len(c.entries), c.want)
		}
	}
	full := &raft.AppendEntriesRequest{RPCHeader: headerOf("b"), Entries: []*raft.Log{entry(maxEntry)}}
	if n := len(encoded(t, requestAppend, full)); n > limitOf(requestAppend) {
		t.Errorf("a request with the largest entry has %d bytes, %d are taken", n, limitOf(requestAppend))
	}
}

// TestVotersKeepTheirShare: large requests in other names take no voter's memory.
func TestVotersKeepTheirShare(t *testing.T) {
	tr := receiving(new(atomic.Int32))
	for _, site := range []string{"x", "y", "x2"} {
		if h := tr.memoryShare(site); h != "" {
			t.Errorf("%s has the share of %q", site, h)
		}
	}
	for tr.held.reserve(tr.memoryShare("x"), 1<<20) {
	}
	if !tr.held.reserve(tr.memoryShare("a"), maxEntry) || tr.memoryShare("a") != "a" {
		t.Error("a voter has no share of its own")
	}
	in := &boundedReader{
		r: bufio.NewReader(bytes.NewReader(make([]byte, 1<<20))), held: &tr.held,
		holder: func() string { return tr.memoryShare("y") },
	}
	in.beginRequest(1 << 20)
	if n, err := io.ReadFull(in, make([]byte, freeRequest)); err != nil {
		t.Errorf("a small request: %d bytes, %v", n, err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, ErrRequest) {
		t.Errorf("beyond the share: %v", err)
	}
	in.release()
	tr.held.release("", maxHeld)
	tr.held.release("a", maxEntry)
	if len(tr.held.of) != 0 {
		t.Errorf("left over: %v", tr.held.of)
	}
}

// TestLongAnswerIsCutOff: a member's answer is bounded, too.
func TestLongAnswerIsCutOff(t *testing.T) {
	near, far := net.Pipe()
	complaints := 0
	conn := newOutbound(near, func(net.Conn, error) { complaints++ })
	go func() {
		_, _ = far.Read(make([]byte, 1))
		_, _ = far.Write(make([]byte, 2*maxAnswer))
	}()
	if _, err := conn.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, conn)
	if n != maxAnswer || !errors.Is(err, ErrRequest) || complaints != 1 {
		t.Errorf("%d bytes, %v, %d complaints", n, err, complaints)
	}
	_, _ = near.Close(), far.Close()
}

// TestAnswerIsAwaitedBeforeItsRequestIsSent: a pipe's reader that comes first waits. On busy processors it was told of
// "an answer of more than 65536 bytes" before a byte had come, and a new connection was dialed instead.
func TestAnswerIsAwaitedBeforeItsRequestIsSent(t *testing.T) {
	near, far := net.Pipe()
	complaints := 0
	conn := newOutbound(near, func(net.Conn, error) { complaints++ })
	go func() { _, _ = far.Write([]byte{1}) }()
	if n, err := conn.Read(make([]byte, 8)); n != 1 || err != nil || complaints != 0 {
		t.Errorf("%d bytes, %v, %d complaints", n, err, complaints)
	}
	_, _ = near.Close(), far.Close()
}

// FuzzRaftRequest: whatever comes is an error or a request that can be judged, in the
// memory that its bytes may take.
func FuzzRaftRequest(f *testing.F) {
	for _, b := range hostileBytes(f) {
		f.Add(b[:min(len(b), 4<<10)])
	}
	f.Add(encoded(f, requestAppend, &raft.AppendEntriesRequest{
		RPCHeader: headerOf("b"), Term: 7,
		Entries: []*raft.Log{{Index: 1, Term: 1, AppendedAt: time.Unix(1, 2)}},
	}))
	f.Add(encoded(f, requestTimeout, &raft.TimeoutNowRequest{RPCHeader: headerOf("b")}))
	f.Add(encoded(f, requestPreVote, &raft.RequestPreVoteRequest{RPCHeader: headerOf("b"), Term: 7}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		in := &boundedReader{
			r: bufio.NewReader(bytes.NewReader(b[1:])), held: &shareBytes{},
			holder: func() string { return "" },
		}
		command, err := decodeRequest(codec.NewDecoder(in, msgpack()), in, b[0])
		in.release()
		if err != nil {
			return
		}
		if c, ok := command.(*raft.AppendEntriesRequest); ok && len(c.Entries) > MaxEntries {
			t.Errorf("%d entries", len(c.Entries))
		}
		_ = checkSender(command, "b")
		_ = new(Transport).checkRequest(racing{state: raft.Follower}, command)
	})
}
