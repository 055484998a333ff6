package zk

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// A feed is a connection over which the leader hands a member each entry that it has
// appended, so that the member need not ask the ensemble for it. Frames, one an entry:
//
//	u32 length · uvarint number · the entry as its znode holds it, its parts included
//
// Only what was appended for certain is handed out, so a frame is true forever,
// whoever leads by the time it is read. Numbers follow each other without a gap: a
// member that cannot keep up loses its feed, and reads the tree.

// Bounds of the feeds of a leader. Members beyond maxFeeds follow by watches.
const (
	maxFeeds     = 64
	maxFedBytes  = 16 << 20 // that one member has not taken
	maxFed       = 4096     // entries, the same
	maxFeedFrame = relay.MaxFrame
)

// feed is the leader's end.
type feed struct {
	kick chan struct{} // signalled when something waits, or the feed is over

	mu    sync.Mutex
	queue [][]byte
	bytes int
	over  bool // the member fell behind
}

// add queues a frame.
func (f *feed) add(frame []byte) {
	f.mu.Lock()
	if len(f.queue) > 0 && (f.bytes+len(frame) > maxFedBytes || len(f.queue) >= maxFed) {
		f.over = true
	}
	if f.over {
		f.queue, f.bytes = nil, 0
	} else {
		f.queue = append(f.queue, frame)
		f.bytes += len(frame)
	}
	f.mu.Unlock()
	coord.Signal(f.kick)
}

// takeFrames returns what waits; over says that there is a gap behind it.
func (f *feed) takeFrames() (frames [][]byte, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	frames, f.queue, f.bytes = f.queue, nil, 0
	return frames, f.over
}

// serveFeed hands a member what this one appends from now on, until either lays it
// down. Who is not known as a member may be soon, and asks again.
func (l *Log) serveFeed(conn net.Conn, p relay.Preamble) {
	defer conn.Close()
	r := l.leaderTerm.Load()
	if r == nil || !l.group.isMember(p.Site) {
		return
	}
	f := &feed{kick: make(chan struct{}, 1)}
	if !r.addFeed(f) {
		return
	}
	defer r.removeFeed(f)
	for {
		select {
		case <-f.kick:
		case <-r.ctx.Done():
			return
		}
		frames, over := f.takeFrames()
		if over {
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(l.t.Reply))
		for _, b := range frames {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}
}

// addFeed has a member told of the entries from now on.
func (r *leaderTerm) addFeed(f *feed) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.feeds) >= maxFeeds {
		return false
	}
	r.feeds[f] = struct{}{}
	return true
}

func (r *leaderTerm) removeFeed(f *feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.feeds, f)
}

// sendToFeeds hands an entry out that was appended. One goroutine calls it, in the order
// of the numbers.
func (r *leaderTerm) sendToFeeds(f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.feeds) == 0 {
		return
	}
	frame := f.frame()
	for to := range r.feeds {
		to.add(frame)
	}
}

// frame returns the entry on its way to a member.
func (f *flight) frame() []byte {
	data := f.data
	if len(f.parts) > 0 {
		data = f.batch.EncodeWhole()
	}
	b := binary.AppendUvarint(relay.Frame(make([]byte, 0, 16+len(data))), f.n)
	return relay.EndFrame(append(b, data...))
}

// parseFed reads a frame.
func parseFed(b []byte) (n uint64, e tree.Entry, err error) {
	d := relay.NewDecoder(b)
	n = d.Uvarint()
	e, err = tree.DecodeEntry(b[len(b)-d.Left():])
	if err == nil && (n == 0 || e.Parts > 0) {
		err = fmt.Errorf("%w: number %d in %d parts", tree.ErrEntry, n, e.Parts)
	}
	return n, e, err
}
