package broker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/transfer"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/files"
	"github.com/cloudshare/cloudshare/node/files/store"
)

// collectingFake leaves one file of each attempt.
type collectingFake struct{ fencedFake }

var leftBytes = bytes.Repeat([]byte("result "), 5000)

// Collect implements executor.Collector.
func (h collectingFake) Collect(_ context.Context, _ executor.ID, _ executor.Outputs, sink executor.OutputSink) error {
	return sink.File(executor.OutputFile{Path: "y", Size: int64(len(leftBytes))}, bytes.NewReader(leftBytes))
}

// travel is two sites of a core each: a's is taken, so what it submits runs at b, which pulls from a.
type travel struct {
	*testing.T
	a, b  *testSite
	input files.Blob
	gate  chan struct{} // nil: a answers at once
	asked chan struct{}
}

func startTravel(t *testing.T, gate chan struct{}) *travel {
	t.Helper()
	sites := startSites(t, 1, 1)
	x := &travel{T: t, a: sites[0], b: sites[1], gate: gate, asked: make(chan struct{}, 100)}
	client := transfer.NewClient(x.dial(t.Context()))
	t.Cleanup(client.Close)
	for _, s := range sites {
		s.stop(t)
		s.filesDir, s.transfers = t.TempDir(), client
		s.kind = func(h *fakeHandler) executor.Handler { return collectingFake{fencedFake{h}} }
		s.start(t)
	}
	var err error
	x.input, err = x.a.cfg.Files.Put(t.Context(), store.OwnOf(""), strings.NewReader("input"), 100)
	if err != nil {
		t.Fatal(err)
	}
	x.a.accept(t, sleepJob)
	<-x.a.handler.started
	return x
}

// dial connects b to what a's broker serves.
func (x *travel) dial(life context.Context) func(context.Context, string, string) (net.Conn, error) {
	server := &transfer.Server{
		Answer: func(ctx context.Context, from string, q transfer.Request) (transfer.Source, transfer.Refusal) {
			if _, assigned := x.assigned(from, q.Attempt); !assigned {
				return nil, transfer.NotAllowed
			}
			x.asked <- struct{}{}
			if x.gate != nil {
				select {
				case <-x.gate:
				case <-ctx.Done():
					return nil, transfer.Busy
				}
			}
			r, err := x.a.cfg.Files.Open(store.OwnOf(""), q.Hash)
			if err != nil {
				return nil, transfer.NotHere
			}
			return r, transfer.Granted
		},
	}
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go server.Serve(life, far, relay.Preamble{Kind: relay.KindFiles, Site: "site-2"})
		return near, nil
	}
}

func (x *travel) assigned(site string, ref command.AttemptRef) (as fsm.Assignment, ok bool) {
	x.a.cfg.Replica.View(func(s *fsm.State) { as, ok = s.Assignment(site, ref) })
	return as, ok
}

func (x *travel) job() string {
	return fmt.Sprintf(`{"command":["true"],"inputs":[{"path":"in","sha256":%q,"size":5}],`+
		`"outputs":{"paths":["y"],"max":"1Mi"}}`, x.input.Hash)
}

// TestFilesTravelWithATask: there and back, with what it took told at its end.
func TestFilesTravelWithATask(t *testing.T) {
	x := startTravel(t, nil)
	job := x.a.accept(t, x.job()).ID
	id := <-x.b.handler.started
	task := x.b.handler.task(id)
	if len(task.Files) != 1 || task.Files[0].Path != "in" || len(task.Outputs.Paths) != 1 {
		t.Fatalf("started with %+v, %+v", task.Files, task.Outputs)
	}
	if got, err := os.ReadFile(task.Files[0].Source); err != nil || string(got) != "input" {
		t.Errorf("its file has %q, %v", got, err)
	}
	x.b.handler.end(id, executor.Result{Started: time.Now(), Run: time.Second})
	var v fsm.TaskView
	x.a.await(t, func(s *fsm.State) bool {
		tasks, _ := s.Tasks(job, 0, 1)
		v = tasks[0]
		return v.Delivering
	})
	if v.Output.Bytes != int64(len(leftBytes)) || v.Measured.InBytes != 5 || v.Measured.OutBytes != v.Output.Bytes {
		t.Errorf("output %+v, measured %+v", v.Output, v.Measured)
	}
	x.b.stop(t) // it keeps what its owner has not fetched
	x.b.start(t)
	ref := command.AttemptRef{Job: job, Attempt: id.Attempt, Token: id.Token}
	for what, h := range map[transfer.What][32]byte{
		transfer.Manifest: v.Output.Manifest, transfer.Output: files.HashOf(leftBytes),
	} {
		q := transfer.Request{Blob: transfer.Blob{Attempt: ref, What: what, Hash: h}}
		src, refusal := x.b.Broker.files.outgoing.Answer(t.Context(), "site-1", q)
		if src == nil {
			t.Fatalf("asked for %d: %s", what, refusal)
		}
		b, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size()))
		if err != nil || files.HashOf(b) != h {
			t.Errorf("%d bytes of %d come, %v", len(b), what, err)
		}
		_ = src.Close()
	}
}

// TestCancelledInTheMiddleOfAFetch: the transfer ends, nothing is started, and the site says what it does until then.
func TestCancelledInTheMiddleOfAFetch(t *testing.T) {
	x := startTravel(t, make(chan struct{}))
	job := x.a.accept(t, x.job()).ID
	<-x.asked
	tasks, _, err := x.b.Tasks(t.Context(), job, 0, 1)
	if err != nil || tasks[0].Reason != "staging 0 of 1 files, 0 B of 5 B" {
		t.Errorf("it does %q, %v", tasks[0].Reason, err)
	}
	if err := x.a.Cancel(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	x.a.await(t, func(s *fsm.State) bool {
		v, _ := s.Job(job)
		return v.State == fsm.TaskCancelled
	})
	x.idle()
}

// idle waits until b has nothing any more, and checks that it has started nothing.
func (x *travel) idle() {
	x.Helper()
	x.b.until(x.Context(), (*core.Core).Idle)
	if n := len(x.b.handler.started); n != 0 {
		x.Errorf("%d attempts were started", n)
	}
	x.b.eventually(x.T, func() bool { // who prepared it ends after the core has heard of it
		x.b.Broker.files.mu.Lock()
		defer x.b.Broker.files.mu.Unlock()
		return len(x.b.Broker.files.preparing) == 0
	})
}

// TestRestartInTheMiddleOfAFetch: that is no loss, and the task runs there or elsewhere.
func TestRestartInTheMiddleOfAFetch(t *testing.T) {
	x := startTravel(t, make(chan struct{}))
	job := x.a.accept(t, x.job()).ID
	<-x.asked
	x.b.stop(t)
	close(x.gate)
	x.b.handler = x.b.handler.reopen()
	x.b.start(t)
	if id := <-x.b.handler.started; id.Job != job.String() {
		t.Errorf("%s was started", id)
	}
	x.a.await(t, func(s *fsm.State) bool {
		tasks, _ := s.Tasks(job, 0, 1)
		if tasks[0].Losses > 0 {
			t.Fatalf("it has %d losses", tasks[0].Losses)
		}
		return tasks[0].Attempt == 2
	})
}

// TestStopWithTasksInTheMiddleOfAFetch: a broker that ends with all that it runs hands back what has not begun.
func TestStopWithTasksInTheMiddleOfAFetch(t *testing.T) {
	x := startTravel(t, make(chan struct{}))
	job := x.a.accept(t, x.job()).ID
	<-x.asked
	if err := x.b.Stop(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	x.a.await(t, func(s *fsm.State) bool {
		tasks, _ := s.Tasks(job, 0, 1)
		return tasks[0].State == fsm.Queued && tasks[0].Losses == 0
	})
}

// TestIndexDecidesWhichFileIsSent: a task that is run again alone gets the file of its index, not that of its position.
func TestIndexDecidesWhichFileIsSent(t *testing.T) {
	x := startTravel(t, nil)
	var entries []files.Entry
	for _, name := range []string{"0", "1", "2"} {
		entries = append(entries, files.Entry{
			Path: name, Size: 1, Hash: files.HashOf([]byte(name)), Inline: []byte(name),
		})
	}
	text, err := files.EncodeManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	each := x.a.put(t, string(text))
	x.a.accept(t, fmt.Sprintf(`{"command":["true"],"indices":"2","inputs":[{"path":"in","each":%q}]}`, each.Hash))
	task := x.b.handler.task(<-x.b.handler.started)
	if len(task.Files) != 1 || string(task.Files[0].Content) != "2" {
		t.Errorf("started with %+v", task.Files)
	}
}
