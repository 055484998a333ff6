package relay

import (
	"testing"
	"time"
)

// linkOf returns a link of a member on a LAN, with so many calls of one command that wait.
func linkOf(calls, bundles int) *link {
	f := &forwarder{t: Timing{Bundles: bundles, Gather: 256}, outcome: func(*proposal, Outcome, uint64) {}}
	l := &link{f: f, kick: make(chan struct{}, 1), sent: map[uint64]sentCall{}}
	l.wait(1, calls)
	return l
}

// wait adds calls from a number on.
func (l *link) wait(from, calls int) {
	for i := range calls {
		l.queue = append(l.queue, &proposal{seq: uint64(from + i), cmds: [][]byte{make([]byte, 100)}, bytes: 100})
	}
}

func (l *link) takes() int {
	_, bundle := l.take(time.Now())
	return len(bundle)
}

// Calls that come while a bundle is under way share the next one, which goes when the last of the first has its
// outcome; many do not wait, and neither do those of a WAN.
func TestCallsShareBundles(t *testing.T) {
	l := linkOf(2, 1)
	if n := l.takes(); n != 2 {
		t.Fatalf("%d calls went at first", n)
	}
	l.wait(3, 5)
	if n := l.takes(); n != 0 {
		t.Errorf("%d calls went beside a bundle under way", n)
	}
	l.settleDone([]doneCall{{seq: 1}, {seq: 99}})
	if n := l.takes(); n != 0 {
		t.Errorf("%d calls went while one of the bundle has no outcome", n)
	}
	l.settleDone([]doneCall{{seq: 2}, {seq: 2}})
	if n := l.takes(); n != 5 {
		t.Errorf("%d calls went behind the bundle", n)
	}
	l.wait(10, 256)
	if n := l.takes(); n != 256 {
		t.Errorf("%d of many calls went", n)
	}
	if wan := linkOf(1, 16); wan.takes() != 1 {
		t.Error("the first call waits")
	} else if wan.wait(2, 1); wan.takes() != 1 {
		t.Error("a second bundle waits for the first over a WAN")
	}
}

// A call that is sent again before its outcome is under way once: what it was sent with before is not waited for.
func TestResentCallsHoldNoBundle(t *testing.T) {
	l := linkOf(2, 1)
	first := l.queue[0]
	l.takes()
	l.settleDone([]doneCall{{seq: 2}})
	for range 3 {
		l.queue = append(l.queue, first)
		l.wait(10, 256) // many, which do not wait
		l.takes()
	}
	var all []doneCall
	for seq := range l.sent {
		all = append(all, doneCall{seq: seq})
	}
	l.settleDone(all)
	if l.wait(1000, 1); l.flying != 0 || l.takes() != 1 {
		t.Errorf("%d bundles are said to be under way, %d calls", l.flying, len(l.sent))
	}
}

// TestOneCallUnansweredIsGivenUp: a leader that left one bundle out, and answers all else, has its calls sent again.
// They waited for the next leader before, a registration, too: found by a hostile member in test/chaos.
func TestOneCallUnansweredIsGivenUp(t *testing.T) {
	l := linkOf(1, 4)
	l.f.t.Reply = 5 * time.Second
	begun := time.Now()
	l.takes()
	for late, want := range map[int]bool{4: false, 14: false, 16: true} {
		now := begun.Add(time.Duration(late) * time.Second)
		l.heard = now // of something else
		if got := l.isOverdue(now); got != want {
			t.Errorf("%d s after it was sent: given up: %t", late, got)
		}
	}
	l.heard = begun
	if !l.isOverdue(begun.Add(6 * time.Second)) {
		t.Error("a leader that answers nothing is not given up")
	}
}

// A bundle of several calls has at most 1024 commands and 64 KiB; a call that is larger is alone.
func TestBundlesAreBounded(t *testing.T) {
	l := linkOf(3000, 0)
	if n := l.takes(); n != maxBundleBytes/100 {
		t.Errorf("%d calls of 100 bytes in a bundle", n)
	}
	l = linkOf(0, 0)
	for i := range 2000 {
		l.queue = append(l.queue, &proposal{seq: uint64(i), cmds: [][]byte{{0}}, bytes: 1})
	}
	if n := l.takes(); n != maxBundleCommands {
		t.Errorf("%d commands in a bundle", n)
	}
	l = linkOf(0, 0)
	for i := range 2 {
		l.queue = append(l.queue, &proposal{seq: uint64(i), cmds: make([][]byte, 4096), bytes: 1 << 20})
	}
	if n := l.takes(); n != 1 {
		t.Errorf("%d large calls in a bundle", n)
	}
}
