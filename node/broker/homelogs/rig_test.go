package homelogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/replica"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keptStore is the real store as the daemon gives it.
type keptStore struct {
	*outputs.Store
	mu   sync.Mutex
	fail error // of each Put; guarded by mu
}

func (s *keptStore) setFail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Put implements Store.
func (s *keptStore) Put(list []Output) error {
	s.mu.Lock()
	err := s.fail
	s.mu.Unlock()
	if err != nil {
		return err
	}
	items := make([]outputs.Item, len(list))
	for i, o := range list {
		items[i] = outputs.Item{ID: o.ID, At: o.At}
		for n, stream := range o.Streams {
			items[i].Streams[n] = outputs.Stream(stream)
		}
	}
	return s.Store.Put(items)
}

// federation is what the state says: job 1 of site-1 with its ended tasks, and who answers at the other sites.
type federation struct {
	t     testing.TB
	dir   string
	mu    sync.Mutex
	tasks []Task                         // guarded by mu
	sites map[string]func(conn net.Conn) // by name; nil = away; guarded by mu

	store *keptStore
	*Puller
	end func()
}

var _ Source = (*federation)(nil)

func (f *federation) Sites() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.sites {
		names = append(names, name)
	}
	return names
}

func (f *federation) Address(site string) string { return site + ":1" }

func (f *federation) Jobs(before uint64) (jobs []Job, next uint64) {
	if before > 0 {
		return nil, 0
	}
	return []Job{{ID: command.JobID{Site: "site-1", Num: 1}, Allows: func(string) bool { return true }}}, 1
}

func (f *federation) Ended(_ command.JobID, from uint32) (tasks []Task, next uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.tasks[from:]
	if len(list) <= replica.TasksAtOnce {
		return list, 0
	}
	return list[:replica.TasksAtOnce], from + replica.TasksAtOnce
}

func (f *federation) Position(_ command.JobID, index uint32) uint32 { return index }

func (f *federation) dial(_ context.Context, site, _ string) (net.Conn, error) {
	f.mu.Lock()
	serve := f.sites[site]
	f.mu.Unlock()
	if serve == nil {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	go serve(server)
	return client, nil
}

// set says who answers at a site.
func (f *federation) set(site string, serve func(net.Conn)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sites[site] = serve
}

// ran adds tasks that a site has run.
func (f *federation) ran(site string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		at := uint32(len(f.tasks))
		f.tasks = append(f.tasks, Task{Position: at, Site: site, Attempt: 1, Token: 7, EndedAt: time.Now()})
	}
}

// start opens the store and a puller that runs until stop.
func (f *federation) start() {
	f.t.Helper()
	kept, err := outputs.Open(outputs.Config{
		Dir: filepath.Join(f.dir, "outputs"), Keep: 24 * time.Hour, MaxBytes: 1 << 30, Now: time.Now,
		Aside: func(path string, why error) { f.t.Errorf("put aside %s: %v", path, why) },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.store = &keptStore{Store: kept}
	r := replica.NewReplica()
	current := make(chan struct{})
	close(current)
	f.Puller, err = New(Config{
		Store: f.store, Dir: filepath.Join(f.dir, "incoming"), Most: 1 << 20, Inline: outputs.MaxInline,
		Keep: 24 * time.Hour, Dial: f.dial,
	}, Around{
		Site: "site-1", Source: f, Now: r.Feed().Now, Current: current, Full: func() error { return nil },
		Events: func(from node.EventID, filter node.EventFilter) *replica.Subscription {
			return r.Events(from, filter, nil)
		},
		Logger: zerolog.Nop(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	f.end = func() {
		cancel()
		<-done
		if err := kept.Close(); err != nil {
			f.t.Error(err)
		}
	}
}

// stop ends both, as the end of a broker does.
func (f *federation) stop() { f.end() }

// textOf is what a task writes: one in a hundred has much to say.
func textOf(r asklogs.Ref) (stdout, stderr string) {
	stdout = fmt.Sprintf("task %d attempt %d\n", r.Task, r.Attempt)
	if r.Task%100 == 42 {
		stdout = strings.Repeat(stdout, 10_000)
	}
	if r.Task%3 == 0 {
		stderr = fmt.Sprintf("err %d\n", r.Task)
	}
	return stdout, stderr
}

// give answers as an honest site does that has all.
func give(_ context.Context, _ string, r asklogs.Ref) (asklogs.Output, asklogs.Refusal) {
	stdout, stderr := textOf(r)
	return asklogs.Output{Attempt: r.Attempt, Token: 7, Streams: [2]io.ReadCloser{
		io.NopCloser(strings.NewReader(stdout)), io.NopCloser(strings.NewReader(stderr)),
	}}, asklogs.Granted
}

// honest serves by a function.
func honest(answer func(context.Context, string, asklogs.Ref) (asklogs.Output, asklogs.Refusal)) func(net.Conn) {
	s := asklogs.Server{Answer: answer}
	return func(conn net.Conn) { s.Serve(context.Background(), conn, relay.Preamble{Site: "site-1"}) }
}

// missing returns how many tasks of a site are not here, and fails if one is not what was written.
func (f *federation) missingOf(site string) (n int) {
	f.t.Helper()
	for _, task := range f.tasks {
		if task.Site != site {
			continue
		}
		id := executor.ID{Job: "site-1.1", Task: task.Position, Attempt: 1, Token: 7}
		stdout, stderr := textOf(asklogs.Ref{Task: task.Position, Attempt: 1})
		for stream, want := range []string{stdout, stderr} {
			r, err := f.store.Open(id, stream)
			if errors.Is(err, executor.ErrUnknownAttempt) {
				n++
				break
			}
			if err != nil {
				f.t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if string(got) != want || err != nil {
				f.t.Fatalf("%s stream %d: %d bytes, %v; want %d", id, stream, len(got), err, len(want))
			}
			_ = r.Close()
		}
	}
	return n
}

// parts are the streams that are half there.
func (f *federation) parts() int {
	left, _ := filepath.Glob(filepath.Join(f.dir, "incoming", "*"))
	return len(left)
}

// pass lets the bubble's time pass, until nothing goes on any more.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
