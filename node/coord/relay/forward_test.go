package relay

import (
	"context"
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

// Over a WAN calls wait for a pace beside a bundle under way, and not for its outcome; there is a signal then.
func TestBundlesOverlapFarAway(t *testing.T) {
	l := linkOf(1, 3)
	l.f.t.Pace = 3 * time.Millisecond
	now := time.Now()
	takes := func(after time.Duration) int {
		_, bundle := l.take(now.Add(after))
		return len(bundle)
	}
	if takes(0) != 1 {
		t.Error("the first call waits")
	}
	l.wait(2, 2)
	if takes(2*time.Millisecond) != 0 {
		t.Error("a second bundle was sent at once")
	}
	<-l.kick
	if takes(3*time.Millisecond) != 2 {
		t.Error("a second bundle waits for more than the pace")
	}
	l.wait(4, 256)
	if takes(3*time.Millisecond) != 256 {
		t.Error("many calls wait")
	}
	l.wait(300, 1)
	if takes(time.Second) != 0 {
		t.Error("more bundles than there may be")
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

// unansweredLink is a link whose leader answers others, with calls that it leaves out, and what was given up of them.
func unansweredLink(calls int) (l *link, givenUp *[]*proposal) {
	l, givenUp = linkOf(calls, 1), new([]*proposal)
	l.f.t.Reply, l.f.link = 5*time.Second, l
	l.f.outcome = func(c *proposal, o Outcome, _ uint64) {
		if o == Unknown {
			*givenUp = append(*givenUp, c)
		}
	}
	l.stop = func() { l.dead = true }
	return l, givenUp
}

// tick has the leader answer something, and looks at what it owes.
func (l *link) tick(now time.Time) {
	l.heard = now
	l.f.giveUpOverdue(now)
}

// TestOneCallUnansweredIsGivenUp: a leader that left one bundle out, and answers all else, has its calls sent again,
// and those of another one that it leaves out then, or the same once more. They waited for the next leader before, a
// registration, too: found by a hostile member in test/chaos.
func TestOneCallUnansweredIsGivenUp(t *testing.T) {
	l, givenUp := unansweredLink(2)
	begun := time.Now()
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	l.take(at(0))
	for _, c := range []struct{ at, late int }{{4, 0}, {14, 0}, {16, 2}} {
		if l.tick(at(c.at)); len(*givenUp) != c.late || l.dead {
			t.Fatalf("%d s after they were sent: %d calls are given up, the link %t", c.at, len(*givenUp), l.dead)
		}
	}
	l.queue, *givenUp = append(l.queue, *givenUp...), nil
	l.take(at(16))
	l.settleDone([]doneCall{{seq: 1}, {seq: 2}})
	l.wait(3, 2)
	if l.take(at(20)); len(l.sent) != 2 {
		t.Fatalf("%d calls went behind those that were left out", len(l.sent))
	}
	if l.tick(at(36)); len(*givenUp) != 2 || l.flying != 0 || l.dead {
		t.Errorf("of a second bundle %d calls are given up, %d bundles are under way", len(*givenUp), l.flying)
	}
	l.queue = append(l.queue, *givenUp...)
	l.take(at(36))
	if l.tick(at(52)); len(*givenUp) != 2 || l.flying != 0 {
		t.Errorf("%d calls are given up, and %d bundles keep others waiting", len(*givenUp), l.flying)
	}
	if l.tick(at(67)); len(*givenUp) != 4 || len(l.sent) != 0 || l.flying != 0 {
		t.Errorf("%d calls are given up that were left out twice, %d bundles under way", len(*givenUp), l.flying)
	}
	l.queue = append(l.queue, (*givenUp)[2:]...)
	l.take(at(67))
	l.f.leadChanged(Peer{})
	if l.tick(at(83)); len(*givenUp) != 6 {
		t.Error("the next leader is waited for as long as the last one")
	}
	l.wait(9, 1)
	l.take(at(83))
	if l.f.giveUpOverdue(at(89)); !l.dead {
		t.Error("a leader that answers nothing is not given up")
	}
}

// TestSlowLeaderGetsFewCopies: a leader that answers, and orders nothing for ten minutes, keeps its connection and gets
// few copies of a call, however many calls come. It lost the connection every 15 s, and got all of them again, which
// stayed in its site's share of the leader's memory: when that was full, it read no more renewals.
func TestSlowLeaderGetsFewCopies(t *testing.T) {
	l, givenUp := unansweredLink(0)
	copies, most := map[uint64]int{}, 0
	begun := time.Now()
	for s := range 600 {
		now := begun.Add(time.Duration(s) * time.Second)
		l.wait(1+s, 1)
		l.queue, *givenUp = append(l.queue, *givenUp...), nil
		_, bundle := l.take(now)
		for _, c := range bundle {
			copies[c.seq]++
			most = max(most, copies[c.seq])
		}
		if l.tick(now); l.dead {
			t.Fatalf("it was given up after %d s", s)
		}
	}
	if most > 6 || len(copies) < 580 {
		t.Errorf("%d calls were sent, one of them %d times", len(copies), most)
	}
	var all []doneCall
	for seq := range l.sent {
		all = append(all, doneCall{seq: seq})
	}
	if l.settleDone(all); l.flying != 0 {
		t.Errorf("%d bundles are under way when all have their outcomes", l.flying)
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

// TestLinkBesideWait: the log may end while somebody asks the leader. Nothing begins any more behind wait, and the race
// detector finds no link that began beside it.
func TestLinkBesideWait(t *testing.T) {
	for range 200 {
		ctx, end := context.WithCancel(t.Context())
		f := &forwarder{ctx: ctx, dialer: &Dialer{Net: &Network{}, Site: "site-1"}, t: Timing{RPC: time.Second}}
		asked, begins := make(chan *link), make(chan struct{})
		go func() {
			close(begins)
			asked <- f.linkTo(Peer{Site: "site-2", Addr: "127.0.0.1:1"})
		}()
		<-begins
		end()
		f.wait()
		if l := <-asked; !l.isDead() {
			f.wait()
			if !l.isDead() {
				t.Fatal("a link goes on behind wait")
			}
		}
	}
}
