package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// busy is a broker that takes jobs once it is let.
type busy struct {
	Broker
	free chan struct{}
	jobs uint64 // that it has begun with
}

func (b *busy) BeginSubmit(_ context.Context, reqs []node.Request) func() []node.Answer {
	answers := make([]node.Answer, len(reqs))
	for i := range answers {
		b.jobs++
		answers[i].ID = command.JobID{Site: "a", Num: b.jobs}
	}
	return func() []node.Answer {
		<-b.free
		return answers
	}
}

// counting counts what is read of a body.
type counting struct {
	io.Reader
	n atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// before returns Jobs before a broker, which take lines of so many bytes at most.
func before(b *busy, most int64) *Jobs {
	slow := transport.NewPlaces(1, "slow", "Slow", "bodies", func(context.Context) string { return "" })
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "submissions"})
	return New(Config{
		Broker: b, Bodies: transport.NewBodies(most, 64<<20, time.Hour, slow), Accepted: counter, Refused: counter,
		Resolve: func(context.Context, *jobspec.Spec) error { return nil }, Log: zerolog.Nop(),
	})
}

// TestLinesDoNotAwaitEachOther: the broker has all of a thousand lines before it has answered one, and the answers are
// in the lines' order.
func TestLinesDoNotAwaitEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines = 1000
		b := &busy{free: make(chan struct{})}
		j := before(b, 1<<20)
		body := strings.NewReader(strings.Repeat("{\"command\":[\"true\"]}\n", lines))
		w := httptest.NewRecorder()
		done := make(chan error)
		go func() { done <- j.submitLines(w, httptest.NewRequest("POST", "/v1/jobs", body), "", false) }()
		synctest.Wait()
		if b.jobs != lines {
			t.Errorf("the broker has %d of %d lines while none is answered", b.jobs, lines)
		}
		close(b.free)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for i, result := range bytes.Split(bytes.TrimSpace(w.Body.Bytes()), []byte("\n")) {
			if id := fmt.Sprintf(`"id":"a.%d"`, i+1); !bytes.Contains(result, []byte(id)) {
				t.Fatalf("result %d is %s, want %s", i+1, result, id)
			}
		}
	})
}

// TestLongLinesAreNotReadAhead: while the broker is busy, few long lines are read ahead of it: a thousand of them,
// as of short ones, would be a gigabyte.
func TestLongLinesAreNotReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines, most = 20, 1 << 20
		b := &busy{free: make(chan struct{})}
		j := before(b, most)
		spec := `{"command":["echo","` + strings.Repeat("x", most-100) + "\"]}\n"
		body := &counting{Reader: strings.NewReader(strings.Repeat(spec, lines))}
		w := httptest.NewRecorder()
		done := make(chan error)
		go func() { done <- j.submitLines(w, httptest.NewRequest("POST", "/v1/jobs", body), "", false) }()
		synctest.Wait()
		if n := body.n.Load(); n < most || n > 9*most {
			t.Errorf("%d MiB of %d are read ahead", n>>20, lines)
		}
		close(b.free)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(w.Body.Bytes(), []byte("\n")); n != lines || body.n.Load() != int64(lines*len(spec)) {
			t.Errorf("%d results; %d bytes were read", n, body.n.Load())
		}
	})
}
