package zk

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/facade"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/zk/tree"
)

// sent is what a leader hands out of an entry.
func sent(t *testing.T, n uint64, batch []byte) []byte {
	t.Helper()
	f := &flight{n: n, batch: tree.Entry{At: time.UnixMilli(7), Header: []byte("header"), Batch: batch}}
	f.data, f.parts = f.batch.Encode()
	b, err := relay.ReadFrame(bytes.NewReader(f.frame()), nil, maxFeedFrame)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFedAsWritten: what is handed out is what the znodes hold, in parts or not.
func TestFedAsWritten(t *testing.T) {
	for _, size := range []int{0, 1, tree.MaxPart + 1, relay.MaxCallBytes + 3*relay.MaxCallCommands} {
		batch := bytes.Repeat([]byte{7}, size)
		b := sent(t, 1<<40, batch)
		n, e, err := parseFed(b)
		if err != nil || n != 1<<40 || string(e.Header) != "header" || !e.At.Equal(time.UnixMilli(7)) ||
			!bytes.Equal(e.Batch, batch) {
			t.Errorf("%d bytes: entry %d with %d, %v", size, n, len(e.Batch), err)
		}
		b[len(b)/2] ^= 1
		if _, _, err := parseFed(b); !errors.Is(err, tree.ErrEntry) {
			t.Errorf("%d bytes, one changed: %v", size, err)
		}
	}
}

func FuzzFed(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, e, err := parseFed(b); err == nil && (n == 0 || e.Parts > 0) {
			t.Errorf("entry %d in %d parts", n, e.Parts)
		}
	})
}

func newEar() *feedReceiver { return &feedReceiver{news: make(chan struct{}, 1)} }

// TestEar: entries come out in order; what lies before them is forgotten, and after a
// gap nothing is taken.
func TestEar(t *testing.T) {
	a := newEar()
	if e, coming := a.takeEntry(1); e != nil || coming {
		t.Error("an entry without a feed")
	}
	for n := uint64(5); n < 8; n++ {
		if !a.add(receivedEntry{n: n, bytes: 10}) {
			t.Fatalf("entry %d is refused", n)
		}
	}
	if a.add(receivedEntry{n: 9}) || a.add(receivedEntry{n: 7}) {
		t.Error("an entry behind a gap, or twice")
	}
	for _, want := range []struct {
		n            uint64
		some, coming bool
	}{{4, false, false}, {6, true, true}, {6, false, false}, {7, true, true}, {8, false, true}, {20, false, true}} {
		if e, coming := a.takeEntry(want.n); (e != nil) != want.some || coming != want.coming {
			t.Errorf("entry %d: there %v, coming %v", want.n, e != nil, coming)
		}
	}
	if a.bytes != 0 {
		t.Errorf("%d bytes are left of nothing", a.bytes)
	}
	a.detach()
	if _, coming := a.takeEntry(8); coming {
		t.Error("a feed that has ended brings something")
	}
}

// TestEarIsBounded: a reader that takes nothing loses the feed.
func TestEarIsBounded(t *testing.T) {
	for _, bytes := range []int{0, maxFedBytes / 10} {
		a, n := newEar(), uint64(1)
		for a.add(receivedEntry{n: n, bytes: bytes}) {
			n++
		}
		if len(a.queue) > maxFed || a.bytes > maxFedBytes {
			t.Errorf("%d entries of %d bytes wait", len(a.queue), bytes)
		}
	}
	if !newEar().add(receivedEntry{n: 1, bytes: maxFedBytes + 1}) {
		t.Error("a long entry alone is refused")
	}
}

// TestFeedIsBounded: a member that takes nothing is given up, and the leader holds
// nothing for it.
func TestFeedIsBounded(t *testing.T) {
	f := &feed{kick: make(chan struct{}, 1)}
	frame := make([]byte, 1<<20)
	for range maxFedBytes/len(frame) + 1 {
		f.add(frame)
	}
	f.add(frame)
	if frames, over := f.takeFrames(); !over || len(frames) > 0 {
		t.Errorf("%d frames, over: %v", len(frames), over)
	}
}

// TestFeedsAreBounded: a leader hands out to so many members only.
func TestFeedsAreBounded(t *testing.T) {
	r := &leaderTerm{feeds: map[*feed]struct{}{}}
	for range maxFeeds {
		if !r.addFeed(&feed{kick: make(chan struct{}, 1)}) {
			t.Fatal("a feed is refused")
		}
	}
	last := &feed{kick: make(chan struct{}, 1)}
	if r.addFeed(last) {
		t.Error("one feed too many")
	}
	for f := range r.feeds {
		r.removeFeed(f)
		break
	}
	if !r.addFeed(last) {
		t.Error("no feed in the place of one that has ended")
	}
}

// TestIdleFeedStays: where nothing happens but idle entries, late ones too, a feed is
// not mistaken for one that hangs; silence is found out.
func TestIdleFeedStays(t *testing.T) {
	for _, profile := range []Profile{LAN, WAN} {
		synctest.Test(t, func(t *testing.T) {
			l := &Log{
				Member: &facade.Member{Ctx: t.Context()}, t: timingOf(profile), c: &client{},
				receiver: feedReceiver{news: make(chan struct{}, 1)},
			}
			l.c.up.Store(true)
			rd := &reader{l: l}
			time.AfterFunc(l.t.tick+l.t.tick/2, func() { coord.Signal(l.receiver.news) })
			if err := rd.listen(t.Context()); err != nil || rd.doubt {
				t.Errorf("an idle entry that comes late: %v, doubt %v", err, rd.doubt)
			}
			if err := rd.listen(t.Context()); err != nil || !rd.doubt {
				t.Errorf("nothing comes: %v, doubt %v", err, rd.doubt)
			}
		})
	}
}

// TestHangUp: a feed that is not trusted is closed.
func TestHangUp(t *testing.T) {
	a := newEar()
	a.disconnect() // none
	here, there := net.Pipe()
	defer there.Close()
	a.attach(here)
	a.disconnect()
	if _, err := here.Write([]byte{1}); err == nil {
		t.Error("it is open")
	}
}
