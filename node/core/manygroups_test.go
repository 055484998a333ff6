package core

import (
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// alonePublications gives a core n jobs that a site alone took one by one, and
// publishes them.
func alonePublications(n int) *Core {
	c := New("a", node.DefaultExposure())
	c.now = Clock{Wall: time.Now()}
	for i := range uint64(n) {
		job := pendingJob{spec: command.JobSpec{Num: i + 1, Count: 1, Payload: []byte("{}")}, promised: true}
		c.addPublication(&publication{jobs: []pendingJob{job}, since: c.now.Wall})
	}
	c.nextJob = uint64(n) + 1
	c.publish()
	return c
}

// answerAll gives every command the same result.
func (c *Core) answerAll(r command.Result) *Effects {
	fx, sent := &Effects{}, c.out.waiting
	c.out.waiting = nil
	for _, w := range sent {
		w.then(r, fsm.New(), fx)
	}
	return fx
}

// What a site alone had taken one by one was refused one by one and so asked for
// again one by one; now the groups of a command become one. That the wall clock is
// set back meanwhile delays nothing.
func TestRefusedGroupsOfACommandBecomeOne(t *testing.T) {
	const n = 5000
	c := alonePublications(n)
	commands := len(c.out.waiting)
	c.answerAll(command.Result{Code: command.TooManyJobs})
	if len(c.pubs.order) > commands || len(c.pubs.byJob) != n || len(c.pubs.nums) != n {
		t.Errorf("%d jobs of %d wait in %d groups, after %d commands", len(c.pubs.byJob), n, len(c.pubs.order), commands)
	}
	c.now = Clock{Wall: c.now.Wall.Round(0).Add(-time.Hour), Boot: c.now.Boot + int64(3*fullPause)}
	c.publish()
	c.answerAll(command.Result{})
	if !c.pubs.empty() || len(c.pubs.byJob) != 0 || len(c.pubs.nums) != 0 || c.pubs.bytes != 0 {
		t.Errorf("left are %d groups, %d jobs, %d numbers, %d bytes", len(c.pubs.order), len(c.pubs.byJob), len(c.pubs.nums), c.pubs.bytes)
	}
}

// BenchmarkReturnOfALonelySite is what a quarter of a million jobs, taken one by
// one without a quorum, cost the core's goroutine when there is one again: it
// grew with the square of their number.
func BenchmarkReturnOfALonelySite(b *testing.B) {
	for b.Loop() {
		alonePublications(250_000).answerAll(command.Result{})
	}
}
