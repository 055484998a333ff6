package publish

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core/keys"
	"github.com/cloudshare/cloudshare/node/core/turn"
)

// rig is a book of site a with its outbox and clock.
type rig struct {
	Book
	now turn.Clock
	out turn.Outbox
}

func newRig() *rig {
	r := &rig{now: turn.Clock{Wall: time.Now()}, out: turn.NewOutbox("a")}
	k := keys.NewBook()
	released := func(*Job) uint32 { return 0 }
	r.Book = NewBook("a", &r.now, &r.out, &k, func(uint64, *turn.Effects) {}, func(uint64) {}, released)
	return r
}

// publish sends what is due; numbers below next are given.
func (r *rig) publish(next uint64) {
	r.Publish(func() uint64 { return r.SettledBelow(next) })
}

// answerAll gives every command the same result, and returns how many there were.
func (r *rig) answerAll(res command.Result) (commands int) {
	for r.out.Len() > 0 {
		fx := &turn.Effects{}
		r.out.Flush(fx)
		commands += len(fx.Propose)
		r.out.HandleResults(fx.Propose, slices.Repeat([]command.Result{res}, len(fx.Propose)), fsm.New(), fx)
		for _, reply := range fx.Replies {
			reply()
		}
	}
	return commands
}

// Without a quorum nothing takes publications away: a site takes 256 MiB of them.
func TestRoomIsBounded(t *testing.T) {
	r := newRig()
	js := command.JobSpec{Num: 1, Count: 1}
	if err := r.Room(&js, ""); err != nil {
		t.Fatal(err)
	}
	r.bytes = maxWaitingBytes - js.SizeBound() - pendingBytes + 1
	if err := r.Room(&js, ""); !errors.Is(err, node.ErrFull) || !strings.Contains(err.Error(), "256 MiB, at most 256") &&
		!strings.Contains(err.Error(), "255 MiB, at most 256") {
		t.Errorf("beyond the bound: %v", err)
	}
}

// TestGroupsAreCommands: what users submit at the same time makes groups that a
// command holds, and the journal can read, whatever it is in their jobs that is long.
func TestGroupsAreCommands(t *testing.T) {
	var sites, selectors []string
	for i := range command.MaxSiteNames {
		sites = append(sites, fmt.Sprintf("site-%055d", i))
	}
	for i := range command.MaxSelectors {
		selectors = append(selectors, fmt.Sprintf("k%02d", i))
	}
	spec := command.JobSpec{
		Count: 1, Need: command.Resources{MilliCPU: 1000}, MaxAttempts: 1, Only: sites,
		Selectors: selectors,
	}
	jobs := slices.Repeat([]Job{{Spec: spec}}, maxJobs)
	for i := range jobs {
		jobs[i].Spec.Num = uint64(i + 1)
	}
	for groups := 1; len(jobs) > 0; groups++ {
		n := groupSize(jobs)
		cmd := submitOf(&publication{jobs: jobs[:n]})
		if err := cmd.Validate(); err != nil {
			t.Fatalf("group %d of %d jobs: %v", groups, n, err)
		}
		size := 0
		for i := range cmd.Jobs {
			size += cmd.Jobs[i].SizeBound()
		}
		if size > maxBytes && n > 1 {
			t.Fatalf("group %d of %d jobs has %d bytes, at most %d", groups, n, size, maxBytes)
		}
		jobs = jobs[n:]
	}
}

// TestSharedCommandTellsEachGroup: a command with several groups' jobs gives each
// client the code of its own job.
func TestSharedCommandTellsEachGroup(t *testing.T) {
	r := newRig()
	var got [2]node.Answer
	for i := range got {
		r.queue(&publication{since: r.now.Wall, jobs: []Job{{
			Spec: command.JobSpec{
				Num: uint64(10 * (i + 1)), Count: 1, Need: command.Resources{MilliCPU: 1000},
				MaxAttempts: 1,
			},
			Reply: func(ans node.Answer) { got[i] = ans },
		}}})
	}
	r.publish(30)
	if n := r.answerAll(command.Result{Jobs: []command.Code{command.TooManyShapes, command.OK}}); n != 1 {
		t.Fatalf("%d commands", n)
	}
	if !errors.Is(got[0].Err, node.ErrFull) || got[1].Err != nil || got[1].ID.Num != 20 {
		t.Errorf("answers %+v", got)
	}
}

// alonePublications gives a book n jobs that a site alone took one by one, and
// publishes them.
func alonePublications(n int) *rig {
	r := newRig()
	for i := range uint64(n) {
		job := Job{Spec: command.JobSpec{Num: i + 1, Count: 1, Payload: []byte("{}")}, Promised: true}
		r.queue(&publication{jobs: []Job{job}, since: r.now.Wall})
	}
	r.publish(uint64(n) + 1)
	return r
}

// What a site alone had taken one by one was refused one by one and so asked for
// again one by one; now the groups of a command become one. That the wall clock is
// set back meanwhile delays nothing.
func TestRefusedGroupsOfACommandBecomeOne(t *testing.T) {
	const n = 5000
	r := alonePublications(n)
	commands := r.answerAll(command.Result{Code: command.TooManyJobs})
	if len(r.order) > commands || r.Len() != n || r.nums.Len() != n {
		t.Errorf("%d jobs of %d wait in %d groups, after %d commands", r.Len(), n, len(r.order), commands)
	}
	r.now = turn.Clock{Wall: r.now.Wall.Round(0).Add(-time.Hour), Boot: r.now.Boot + int64(3*FullPause)}
	r.publish(n + 1)
	r.answerAll(command.Result{})
	if r.Opened() != 0 || r.Len() != 0 || r.nums.Len() != 0 || r.bytes != 0 {
		t.Errorf("left are %d groups, %d jobs, %d numbers, %d bytes", len(r.order), r.Len(), r.nums.Len(), r.bytes)
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
