package broker

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/query"
)

// findingFake keeps the logs of all attempts that it ever started.
type findingFake struct {
	fencedFake

	mu  sync.Mutex
	ran []executor.ID
	// removed: it has the output of none any more.
	removed bool
	// trouble is why it cannot read what it has.
	trouble error
	// blind: it cannot tell whether it has what it does not find.
	blind bool
}

var (
	_ executor.Finder        = (*findingFake)(nil)
	_ executor.OutputHistory = (*findingFake)(nil)
)

// RemovedOutput implements executor.OutputHistory.
func (h *findingFake) RemovedOutput(job string, task, attempt uint32) (executor.OutputRemoval, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return executor.OutputRemoval{ByAge: true}, h.removed
}

// Start implements executor.Handler.
func (h *findingFake) Start(ctx context.Context, t executor.Task) error {
	h.mu.Lock()
	h.ran = append(h.ran, t.ID)
	h.mu.Unlock()
	return h.fencedFake.Start(ctx, t)
}

// Find implements executor.Finder.
func (h *findingFake) Find(job string, task, attempt uint32) (executor.ID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range h.ran {
		if !h.removed && id.Job == job && id.Task == task && id.Attempt == attempt {
			return id, h.trouble
		}
	}
	if h.blind {
		return executor.ID{}, executor.ErrUnreadable
	}
	return executor.ID{}, executor.ErrUnknownAttempt
}

// FindNewest implements executor.Finder.
func (h *findingFake) FindNewest(job string, tasks []uint32) []executor.Newest {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make([]executor.Newest, len(tasks))
	for i, task := range tasks {
		for _, id := range h.ran {
			if !h.removed && id.Job == job && id.Task == task {
				found[i] = executor.Newest{Attempt: max(found[i].Attempt, id.Attempt)}
			}
		}
		if h.trouble != nil && found[i].Attempt > 0 {
			found[i] = executor.Newest{Err: h.trouble}
		}
	}
	return found
}

// findingSites are sites with a core each, whose handlers find attempts.
func findingSites(t *testing.T, n int) ([]*testSite, map[string]*findingFake) {
	t.Helper()
	sites := startSites(t, slices.Repeat([]int64{1}, n)...)
	finds := map[string]*findingFake{}
	for _, s := range sites {
		s.stop(t)
		s.handler = s.handler.reopen()
		find := &findingFake{}
		finds[s.name] = find
		s.kind = func(h *fakeHandler) executor.Handler { find.fencedFake = fencedFake{h}; return find }
		s.start(t)
	}
	return sites, finds
}

// TestLogsOfEarlierAttempts: an earlier attempt is read where it ran, and every
// other broker names the sites that may have run it.
func TestLogsOfEarlierAttempts(t *testing.T) {
	sites, finds := findingSites(t, 4)
	asked, b, c := sites[0], sites[1], sites[2]
	job := asked.accept(t, `{"command":["false"],"retry":{"max_attempts":2},"sites":{"only":["site-2","site-3"]}}`).ID
	var ran []*testSite
	for range 2 {
		select {
		case id := <-b.handler.started:
			ran = append(ran, b)
			b.handler.end(id, executor.Result{ExitCode: 1})
		case id := <-c.handler.started:
			ran = append(ran, c)
			c.handler.end(id, executor.Result{ExitCode: 1})
		}
	}
	for _, s := range sites {
		s.await(t, func(st *fsm.State) bool { v, ok := st.Job(job); return ok && v.State == fsm.TaskFailed })
	}

	q := node.LogQuery{Job: job, Attempt: 1, Stream: "stdout"}
	r, err := ran[0].Logs(t.Context(), q)
	if err != nil {
		t.Fatalf("at %s, which ran it: %v", ran[0].name, err)
	}
	if text, _ := io.ReadAll(r); !strings.Contains(string(text), job.String()+"-0-1-") {
		t.Errorf("the log is of another attempt: %s", text)
	}
	var anywhere *node.AnywhereError
	if _, err = asked.Logs(t.Context(), q); !errors.As(err, &anywhere) || len(anywhere.Sites) != 2 ||
		anywhere.Sites[0].Site != "site-2" || anywhere.Sites[1].Site != "site-3" || anywhere.Sites[0].Peer == "" {
		t.Errorf("elsewhere: %v, %+v", err, anywhere)
	}
	q.Here = true
	if _, err = asked.Logs(t.Context(), q); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("elsewhere, of what is there: %v", err)
	}
	var elsewhere *node.ElsewhereError
	if _, err = asked.Logs(t.Context(), node.LogQuery{Job: job, Attempt: 2}); !errors.As(err, &elsewhere) ||
		elsewhere.Site != ran[1].name {
		t.Errorf("the last attempt: %v, want a pointer to %s", err, ran[1].name)
	}
	if _, err = asked.Logs(t.Context(), node.LogQuery{Job: job, Attempt: 3}); !errors.Is(err, node.ErrNotFound) ||
		!strings.Contains(err.Error(), "2 attempts") {
		t.Errorf("an attempt that was never made: %v", err)
	}
	finds[ran[0].name].removed = true
	q.Here = false
	if _, err = ran[0].Logs(t.Context(), q); !errors.Is(err, node.ErrOutputGone) || !strings.Contains(err.Error(), "task_logs.keep") {
		t.Errorf("at the site that has removed it: %v, want why, and no other site", err)
	}
}

// TestFollowersWaitForTheStart: whoever follows a task that waits is served once
// it starts, and told once it never will, or the broker stops.
func TestFollowersWaitForTheStart(t *testing.T) {
	a := startSites(t, 1)[0]
	a.accept(t, sleepJob)
	first := <-a.handler.started
	follow := func(id command.JobID) chan error {
		done := make(chan error, 1)
		go func() {
			r, err := a.Logs(t.Context(), node.LogQuery{Job: id, Stream: "stdout", Follow: true})
			if err == nil {
				err = r.Close()
			}
			done <- err
		}()
		return done
	}
	next, never, last := a.accept(t, sleepJob).ID, a.accept(t, sleepJob).ID, a.accept(t, sleepJob).ID
	starts, ends, stops := follow(next), follow(never), follow(last)
	a.handler.end(first, executor.Result{Run: 1})
	if err := <-starts; err != nil {
		t.Errorf("a task that started: %v", err)
	}
	if err := a.Cancel(t.Context(), never); err != nil {
		t.Fatal(err)
	}
	if err := <-ends; !errors.Is(err, node.ErrNotFound) {
		t.Errorf("a task that was cancelled: %v", err)
	}
	select {
	case err := <-stops:
		t.Errorf("a task that waits yet: %v", err)
	default:
	}
	a.stop(t)
	if err := <-stops; !errors.Is(err, node.ErrStopping) {
		t.Errorf("a broker that stops: %v", err)
	}
}

// TestUnreadableIsNotTheEndOfASearch: a site that cannot read all that it keeps sends who
// asks for another site's output to the others, and looks at all its handlers. It answered
// that the output may be with itself.
func TestUnreadableIsNotTheEndOfASearch(t *testing.T) {
	sites, finds := findingSites(t, 2)
	asked, ran := sites[0], sites[1]
	job := asked.accept(t, `{"command":["false"],"retry":{"max_attempts":2},"sites":{"only":["site-2"]}}`).ID
	var last executor.ID
	for range 2 {
		last = <-ran.handler.started
		ran.handler.end(last, executor.Result{ExitCode: 1})
	}
	asked.await(t, func(st *fsm.State) bool { v, ok := st.Job(job); return ok && v.State == fsm.TaskFailed })
	finds[asked.name].blind = true
	q := node.LogQuery{Job: job, Attempt: 1, Stream: "stdout"}
	var anywhere *node.AnywhereError
	if _, err := asked.Logs(t.Context(), q); !errors.As(err, &anywhere) || len(anywhere.Sites) != 1 ||
		!errors.Is(anywhere.Here, node.ErrOutputUnreadable) {
		t.Errorf("%v, %+v", err, anywhere)
	}
	q.Here, q.Attempt = true, last.Attempt
	reader := query.New(query.Sources{Handlers: []executor.Handler{finds[asked.name], finds[ran.name]}})
	if r, err := reader.Logs(t.Context(), q); err != nil {
		t.Errorf("what the second handler has: %v", err)
	} else {
		_ = r.Close()
	}
}
