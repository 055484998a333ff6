package query

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/askprogress"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// farRig is a broker of site a and what other sites say.
type farRig struct {
	farProgress
	ahead     time.Duration // of the clock
	questions atomic.Int64
	away      atomic.Bool
	// answer says what a site tells of a task.
	answer func(site string, r askprogress.Ref) string
}

func newFarRig() *farRig {
	x := &farRig{answer: func(site string, r askprogress.Ref) string { return fmt.Sprint(site, " task ", r.Task) }}
	x.address = func(site string) string { return site + ":1" }
	x.now = func() time.Time { return time.Now().Add(x.ahead) }
	x.dial = func(_ context.Context, site, addr string) (net.Conn, error) {
		x.questions.Add(1)
		if x.away.Load() || addr != site+":1" {
			return nil, errors.New("connection refused")
		}
		client, server := net.Pipe()
		s := askprogress.Server{Answer: func(from string, refs []askprogress.Ref) (texts []string) {
			for _, r := range refs {
				texts = append(texts, x.answer(site, r))
			}
			return texts
		}}
		go s.Serve(server, relay.Preamble{Site: "a"})
		return client, nil
	}
	return x
}

// look looks at tasks of the job a.7 as if the state had them.
func (x *farRig) look(ctx context.Context, tasks ...node.Task) []node.Task {
	x.explain(ctx, "a", command.JobID{Site: "a", Num: 7}, tasks)
	return tasks
}

func assignedAt(site string, position uint32) node.Task {
	return node.Task{State: fsm.Assigned.String(), Site: site, Position: position, Attempt: 1, Token: 9}
}

// TestSitesAreAskedSeldom: each is asked once for all tasks of a look, again after a second only, and after some
// seconds if it did not answer; what the state says already, and what does not wait for another site, is not asked for.
func TestSitesAreAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFarRig()
		said, running, home := assignedAt("b", 3), assignedAt("b", 4), assignedAt("a", 5)
		said.Reason, running.State = "said", fsm.Running.String()
		look := func(want ...string) {
			t.Helper()
			got := x.look(t.Context(), assignedAt("b", 0), assignedAt("b", 1), assignedAt("c", 2), said, running, home)
			for i, w := range append(want, "said", "", "") {
				if got[i].Reason != w {
					t.Errorf("task %d: %q, want %q", i, got[i].Reason, w)
				}
			}
		}
		for range 3 {
			look("b task 0", "b task 1", "c task 2")
		}
		if n := x.questions.Load(); n != 2 {
			t.Errorf("%d questions for two sites", n)
		}
		x.ahead += farFresh
		x.away.Store(true)
		const silent = " prepares its start, and does not say how far it is"
		for range 3 {
			look("b"+silent, "b"+silent, "c"+silent)
		}
		if n := x.questions.Load(); n != 4 {
			t.Errorf("%d questions, want two more", n)
		}
		x.away.Store(false)
		look("b"+silent, "b"+silent, "c"+silent)
		x.ahead += farSilent
		look("b task 0", "b task 1", "c task 2")
		if n := x.questions.Load(); n != 6 {
			t.Errorf("%d questions, want two more", n)
		}
		if n := len(x.look(t.Context())); n != 0 || x.questions.Load() != 6 {
			t.Errorf("of nothing: %d", n)
		}
	})
}

// TestSilentSitesAreNotWaitedFor: a site that takes the question and says nothing keeps nobody longer than a second,
// whoever else looks meanwhile, and not the answers of others.
func TestSilentSitesAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, end := newFarRig(), make(chan struct{})
		x.answer = func(site string, r askprogress.Ref) string {
			if site == "b" {
				<-end
			}
			return "here"
		}
		begun := time.Now()
		done := make(chan []node.Task)
		for range 2 {
			go func() { done <- x.look(t.Context(), assignedAt("b", 0), assignedAt("c", 0)) }()
		}
		for range 2 {
			got := <-done
			if got[0].Reason != "b prepares its start, and does not say how far it is" || got[1].Reason != "here" {
				t.Errorf("%+v", got)
			}
		}
		if took := time.Since(begun); took > farPatience {
			t.Errorf("it took %s", took)
		}
		close(end)
		synctest.Wait()
	})
}

// TestFarWordsAreBounded: whoever looks at how many tasks, little is remembered, and few sites are asked at a time.
func TestFarWordsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFarRig()
		for look := range uint32(30) {
			var tasks []node.Task
			for i := range uint32(150) {
				tasks = append(tasks, assignedAt("b", 1000*look+i))
			}
			got := x.look(t.Context(), tasks...)
			if got[99].Reason == "" || got[100].Reason != "" {
				t.Fatalf("%q, %q", got[99].Reason, got[100].Reason)
			}
		}
		if n := len(x.sites["b"].words); n > maxFarWords+askprogress.MaxAttempts {
			t.Errorf("%d words are remembered", n)
		}
		before := x.questions.Load()
		var tasks []node.Task
		for i := range 20 {
			tasks = append(tasks, assignedAt(fmt.Sprint("site-", i), 0))
		}
		x.look(t.Context(), tasks...)
		if n := x.questions.Load() - before; n != maxFarSites {
			t.Errorf("%d sites were asked at once", n)
		}
	})
}
