package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/outputs"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/broker/homelogs"
	"github.com/cloudshare/cloudshare/node/coord/asklogs"
	"github.com/cloudshare/cloudshare/node/coord/relay"
)

// homeStore is a store as the daemon gives it, that says what it has taken.
type homeStore struct {
	*outputs.Store
	took chan executor.ID
}

// Put implements homelogs.Store.
func (s homeStore) Put(list []homelogs.Output) error {
	var items []outputs.Item
	for _, o := range list {
		items = append(items, outputs.Item{ID: o.ID, At: o.At, Streams: [2]outputs.Stream{
			outputs.Stream(o.Streams[0]), outputs.Stream(o.Streams[1]),
		}})
	}
	err := s.Store.Put(items)
	for _, it := range items {
		s.took <- it.ID
	}
	return err
}

// bringsHome restarts a site as one to which outputs come.
func (s *testSite) bringsHome(t *testing.T) homeStore {
	t.Helper()
	s.stop(t)
	s.handler = s.handler.reopen()
	kept, err := outputs.Open(outputs.Config{
		Dir: filepath.Join(s.dir, "outputs"), Keep: time.Hour, MaxBytes: 1 << 20, Now: time.Now,
		Aside: func(path string, why error) { t.Errorf("put aside %s: %v", path, why) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	store := homeStore{kept, make(chan executor.ID, 99)}
	s.home = &homelogs.Config{
		Store: store, Dir: filepath.Join(s.dir, "incoming"), Most: 1 << 20, Inline: outputs.MaxInline,
		Keep: time.Hour, Dial: s.dialLogs,
	}
	s.start(t)
	return store
}

// dialLogs connects to another broker of the group.
func (s *testSite) dialLogs(_ context.Context, site, _ string) (net.Conn, error) {
	b, ok := s.brokers.Load(site)
	if !ok || s.unreached.Load() {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	giver := asklogs.Server{Answer: b.(*Broker).GiveOutput} //nolint:forcetypeassert // it holds no others
	go giver.Serve(context.Background(), server, relay.Preamble{Site: s.name})
	return client, nil
}

// TestLogsThatCameHome: of a task that ended at another site before its start was told both attempts are read at its
// owner, followed or not, without a word of that site; what cannot be read here is read there as before.
func TestLogsThatCameHome(t *testing.T) {
	sites, _ := findingSites(t, 2)
	asked, ran := sites[0], sites[1]
	store := asked.bringsHome(t)
	job := asked.accept(t, `{"command":["false"],"retry":{"max_attempts":2},"sites":{"only":["site-2"]}}`).ID
	for range 2 {
		ran.handler.end(<-ran.handler.started, executor.Result{ExitCode: 1, Run: 1})
	}
	first, second := <-store.took, <-store.took
	asked.await(t, func(st *fsm.State) bool { v, ok := st.Job(job); return ok && v.State == fsm.TaskFailed })
	for attempt, id := range map[uint32]executor.ID{0: second, 1: first, 2: second} {
		for _, stream := range []string{"stdout", "stderr"} {
			for _, follow := range []bool{false, true} {
				q := node.LogQuery{Job: job, Attempt: attempt, Stream: stream, Follow: follow}
				r, err := asked.Logs(t.Context(), q)
				if err != nil {
					t.Fatalf("attempt %d: %v", attempt, err)
				}
				if got, _ := io.ReadAll(r); string(got) != stream+" of "+id.String() {
					t.Errorf("attempt %d, follow %t: %q", attempt, follow, got)
				}
			}
		}
	}
	kept := asked.KeptOutputs(job, []uint32{0, 1})
	if len(kept) != 1 || kept[0] != (node.KeptOutput{Attempt: 2}) {
		t.Errorf("it keeps %+v", kept)
	}
	if got := asked.HomeLogs(); got.Missing+got.GivenUp+got.Failed > 0 {
		t.Errorf("%+v", got)
	}
	if err := store.Close(); err != nil { // nothing can be read there any more
		t.Fatal(err)
	}
	var elsewhere *node.ElsewhereError
	if _, err := asked.Logs(t.Context(), node.LogQuery{Job: job}); !errors.As(err, &elsewhere) {
		t.Errorf("a copy that cannot be read: %v", err)
	}
}

// TestOutputsAreGivenToTheOwner: a site gives what it has of the asker's jobs, the newest attempt of a task, or says
// why it does not.
func TestOutputsAreGivenToTheOwner(t *testing.T) {
	sites, finds := findingSites(t, 2)
	asked, ran := sites[0], sites[1]
	job := asked.accept(t, `{"command":["true"],"sites":{"only":["site-2"]}}`).ID
	id := <-ran.handler.started
	ran.handler.end(id, executor.Result{Run: 1})
	asked.await(t, func(st *fsm.State) bool { v, ok := st.Job(job); return ok && v.State == fsm.TaskSucceeded })
	find := finds[ran.name]
	ask := func(from string, r asklogs.Ref) string {
		o, why := ran.GiveOutput(t.Context(), from, r)
		defer o.Close()
		if why != asklogs.Granted {
			return why.String()
		}
		text, err := io.ReadAll(o.Streams[1])
		if err != nil || o.Token != id.Token {
			t.Errorf("%v, token %d", err, o.Token)
		}
		return fmt.Sprintf("%d: %s", o.Attempt, text)
	}
	whole := "1: stderr of " + id.String()
	set := func(f func()) { find.mu.Lock(); defer find.mu.Unlock(); f() }
	for _, c := range []struct {
		from string
		ref  asklogs.Ref
		as   func()
		want string
	}{
		{"site-1", asklogs.Ref{Num: job.Num, Attempt: 1}, func() {}, whole},
		{"site-1", asklogs.Ref{Num: job.Num}, func() {}, whole},
		{"site-3", asklogs.Ref{Num: job.Num}, func() {}, asklogs.NotHere.String()},
		{"site-2", asklogs.Ref{Num: job.Num}, func() {}, asklogs.NotHere.String()},
		{"site-1", asklogs.Ref{Num: job.Num, Attempt: 2}, func() {}, asklogs.NotHere.String()},
		{"site-1", asklogs.Ref{Num: job.Num, Task: 1}, func() {}, asklogs.NotHere.String()},
		{"site-1", asklogs.Ref{Num: job.Num}, func() { find.trouble = executor.ErrDamaged }, asklogs.Damaged.String()},
		{
			"site-1",
			asklogs.Ref{Num: job.Num, Attempt: 1},
			func() { find.trouble = executor.ErrUnreadable },
			asklogs.Unreadable.String(),
		},
		{"site-1", asklogs.Ref{Num: job.Num}, func() { find.trouble, find.removed = nil, true }, asklogs.Removed.String()},
	} {
		set(c.as)
		if got := ask(c.from, c.ref); got != c.want {
			t.Errorf("%s asks for %+v: %q, want %q", c.from, c.ref, got, c.want)
		}
	}
}
