package broker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/stageout"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// startLender starts two sites whose tasks leave a file: the first one's core is taken, so what it submits runs at the
// other, which has so many cores.
func startLender(t *testing.T, cores int64) (a, b *testSite) {
	t.Helper()
	sites := startSites(t, 1, cores)
	for _, s := range sites {
		s.stop(t)
		s.filesDir, s.handler = t.TempDir(), s.handler.reopen()
		s.kind = func(h *fakeHandler) executor.Handler { return collectingFake{fencedFake{h}} }
		s.start(t)
	}
	sites[0].accept(t, sleepJob)
	<-sites[0].handler.started
	return sites[0], sites[1]
}

// kept returns what the lender has promised of its space for results, once its loop has done what has come.
func (s *testSite) kept(t *testing.T) int64 {
	t.Helper()
	if err := s.query(t.Context(), func(*core.Core) {}); err != nil {
		t.Fatal(err)
	}
	return s.files.Promised(store.Outgoing)
}

// TestPromisesOfTwoTasks: two tasks whose outputs may fill the space for results together do not run together, also
// when the broker starts again in between. The other one is handed back once, is no loss, and begins as soon as the
// first one has ended, whatever that has left.
func TestPromisesOfTwoTasks(t *testing.T) {
	a, b := startLender(t, 2)
	const most = 700 << 20
	job := a.accept(t, `{"command":["true"],"count":2,"outputs":{"optional":["y"],"max":"700Mi"}}`).ID
	first := <-b.handler.started
	declined := func(times uint32) func(*fsm.State) bool {
		return func(s *fsm.State) bool {
			tasks, _ := s.Tasks(job, 0, 2)
			return tasks[1-first.Task].Attempt == times && tasks[1-first.Task].State == fsm.Queued
		}
	}
	a.await(t, declined(1))
	b.stop(t)
	b.handler = b.handler.reopen()
	b.start(t)
	if kept := b.kept(t); kept != most {
		t.Errorf("%d bytes are kept after a restart, want %d", kept, int64(most))
	}
	a.await(t, declined(2))
	b.await(t, declined(2)) // whose copy of the state is asked
	if why, err := b.Why(t.Context(), job); err != nil || !strings.Contains(whyText(why), "left of data.outgoing") {
		t.Errorf("why it waits: %+v, %v", why, err)
	}
	b.handler.end(first, executor.Result{Started: time.Now(), Run: time.Second})
	second := <-b.handler.started
	if second.Task == first.Task || b.kept(t) != most {
		t.Errorf("%s begins, and %d bytes are kept", second, b.kept(t))
	}
	b.handler.end(second, executor.Result{Started: time.Now(), ExitCode: 1, Run: time.Second})
	a.await(t, func(s *fsm.State) bool {
		tasks, _ := s.Tasks(job, 0, 2)
		return tasks[second.Task].State == fsm.TaskFailed && tasks[0].Losses+tasks[1].Losses == 0
	})
	b.until(t.Context(), (*core.Core).Idle)
	if kept := b.kept(t); kept != 0 {
		t.Errorf("%d bytes are kept when nothing runs", kept)
	}
}

// whyText joins what is said of a job.
func whyText(w node.Why) string {
	text := w.Summary
	for _, s := range w.Sites {
		text += "; " + s.Text
	}
	return text
}

// TestWatermarkTakesTheCacheFirst: a disk that is full with inputs of ended tasks is not full.
func TestWatermarkTakesTheCacheFirst(t *testing.T) {
	s := startSites(t, 1)[0]
	s.stop(t)
	s.filesDir, s.handler = t.TempDir(), s.handler.reopen()
	var cached string
	s.disk = node.Disk{Path: "/data", MinFree: 1 << 20, Free: func(string) (int64, error) {
		if _, err := os.Stat(cached); cached != "" && err == nil {
			return 0, nil
		}
		return 2 << 20, nil
	}}
	s.start(t)
	at := store.CacheOf("site-2")
	b, err := s.files.Put(t.Context(), at, strings.NewReader("input"), files.MaxFile)
	if err != nil {
		t.Fatal(err)
	}
	s.files.PinsSaid()
	path, err := s.files.Path(at, b.Hash)
	if err != nil {
		t.Fatal(err)
	}
	s.files.Pin("attempt", store.Ref{Place: at, Hash: b.Hash})
	cached = path
	s.Broker.disk.Report(s.diskChanged)
	if err = s.Ready(); err == nil {
		t.Error("it is ready on a disk that is full with what a task needs")
	}
	s.files.Unpin("attempt")
	s.Broker.disk.Report(s.diskChanged)
	if err = s.Ready(); err != nil {
		t.Error(err)
	}
	if _, err = os.Stat(path); err == nil {
		t.Error("the input is there still")
	}
}

// TestOfferedRoom: less is offered at once, more only when it was there for a while, and never more than the least.
func TestOfferedRoom(t *testing.T) {
	o := offeredRoom{room: 16}
	for i, c := range []struct {
		room int64
		n    int
		want int64
		news bool
	}{
		{16, 20, 16, false},
		{1, 1, 1, true},
		{16, 9, 1, false},
		{1, 1, 1, false},
		{256, 1, 1, false},
		{16, 8, 1, false},
		{256, 1, 16, true},
		{0, 1, 0, true},
		{0, 5, 0, false},
	} {
		news := false
		for range c.n {
			news = o.see(c.room)
		}
		if o.room != c.want || news != c.news {
			t.Errorf("step %d: %d is offered, news %t; want %+v", i, o.room, news, c)
		}
	}
}

// TestHomeResultWaitsForRoom: a result that its own site's disk has no room for is not lost, and nothing is run again:
// it is kept once there is room, also behind a restart, and until then people are told why it has not ended.
func TestHomeResultWaitsForRoom(t *testing.T) {
	s := startSites(t, 1)[0]
	s.stop(t)
	s.filesDir, s.handler = t.TempDir(), s.handler.reopen()
	s.kind = func(h *fakeHandler) executor.Handler { return collectingFake{fencedFake{h}} }
	var g gauge
	g.Store(1<<20 + 100)
	s.disk = g.disk(1 << 20)
	s.start(t)
	job := s.accept(t, `{"command":["true"],"outputs":{"paths":["y"]}}`).ID
	s.handler.end(<-s.handler.started, executor.Result{Started: time.Now(), Run: time.Second})
	why := func() string {
		t.Helper()
		tasks, _, err := s.Tasks(t.Context(), job, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Why(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		return tasks[0].State + ": " + tasks[0].Reason + " | " + w.Summary
	}
	const text = "they have 35000 bytes, and there is room for 100"
	for strings.Count(why(), text) < 2 { // each question goes through the loop
		if t.Context().Err() != nil {
			t.Fatal(why())
		}
	}
	before := why()
	s.stop(t)
	s.handler = s.handler.reopen()
	s.start(t)
	for strings.Count(why(), text) < 2 {
		if t.Context().Err() != nil {
			t.Fatal(why())
		}
	}
	if again := why(); again != before {
		t.Errorf("after a restart it says %q, before %q", again, before)
	}
	g.Store(1 << 30)
	for {
		j, err := s.Job(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if j.State == fsm.TaskSucceeded.String() {
			break
		}
	}
	if list, _, err := s.Results(t.Context(), job, 0, 9); err != nil || len(list) != 1 || list[0].Attempt != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestFailuresDoNotGoInVain: what failed tasks left stays when a task comes that would have no room without it, either;
// and no more of it goes than a task lacks.
func TestFailuresDoNotGoInVain(t *testing.T) {
	s := startSites(t, 1)[0]
	s.stop(t)
	s.filesDir, s.handler = t.TempDir(), s.handler.reopen()
	s.start(t)
	room := s.Broker.files.room
	quota := s.files.Usage(store.Outgoing).Max
	keep := func(job string, exit int, size int64) {
		t.Helper()
		id := executor.ID{Job: job, Attempt: 1, Token: 1}
		file := oneFile{name: job, size: size}
		out, err := room.leftovers.Collect(t.Context(), file, stageout.Order{
			ID: id, Outputs: executor.Outputs{Paths: []string{"y"}, When: executor.WhenAlways},
			Result: executor.Result{Started: time.Now(), ExitCode: exit},
		})
		if err != nil || out.Output.IsZero() {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	keep("site-2.1", 1, 1<<20)
	keep("site-3.1", 1, 1<<20)
	spare := room.leftovers.Spare()
	id := func(task uint32) executor.ID { return executor.ID{Job: "site-2.9", Task: task, Attempt: 1, Token: 1} }
	s.files.KeepBytes("out/another", store.Outgoing, quota/2)
	err := room.reserveOutgoing(id(1), quota-(1<<20))
	if !errors.Is(err, store.ErrFull) || room.leftovers.Spare() != spare {
		t.Errorf("%v: of %d bytes that failed tasks left %d are there", err, spare, room.leftovers.Spare())
	}
	if err := room.reserveOutgoing(id(2), quota-quota/2-(1<<20)-(1<<16)); err != nil || room.leftovers.Spare() == 0 {
		t.Errorf("%v: of %d bytes that failed tasks left %d are there", err, spare, room.leftovers.Spare())
	}
}

// oneFile is a handler's side of one file.
type oneFile struct {
	name string
	size int64
}

func (f oneFile) Collect(_ context.Context, _ executor.ID, _ executor.Outputs, sink executor.OutputSink) error {
	content := bytes.Repeat([]byte(f.name+"#"), int(f.size)/len(f.name))[:f.size]
	return sink.File(executor.OutputFile{Path: "y", Size: f.size}, bytes.NewReader(content))
}

// TestSmallerPromisesPass: a task whose promise does not fit holds up none behind it whose promise does, and begins
// once it fits.
func TestSmallerPromisesPass(t *testing.T) {
	a, b := startLender(t, 3)
	big := a.accept(t, `{"command":["true"],"count":2,"outputs":{"optional":["y"],"max":"700Mi"}}`).ID
	first := <-b.handler.started
	small := a.accept(t, `{"command":["true"],"count":3,"outputs":{"optional":["y"],"max":"100Mi"}}`).ID
	for range 2 {
		id := <-b.handler.started
		if ref, err := node.AttemptOf(id); err != nil || ref.Job != small {
			t.Fatalf("%s begins beside %s, %v", id, first, err)
		}
	}
	b.handler.end(first, executor.Result{Started: time.Now(), ExitCode: 1, Run: time.Second})
	for range 2 { // a small one, too
		id := <-b.handler.started
		ref, err := node.AttemptOf(id)
		if err != nil {
			t.Fatal(err)
		}
		if ref.Job == big {
			return
		}
		b.handler.end(id, executor.Result{Started: time.Now(), ExitCode: 1, Run: time.Second})
	}
	t.Error("it has not begun though it would fit")
}
