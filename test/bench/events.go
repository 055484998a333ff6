package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	// streams of events at one broker.
	streams = 1000
	// eventEvery is the pause between two submissions.
	eventEvery = 20 * time.Millisecond
)

// measureEvents has many clients follow one broker's events while another one
// submits jobs: how long after the submission was begun each of them hears of
// the job, and what the streams cost the broker.
func measureEvents(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startWhole(ctx, env, "events", siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	return measureStreams(ctx, t, fed, pick(env, streams, streams/10), pick(env, 250, 25))
}

func measureStreams(ctx context.Context, t *table, fed *testbed.Federation, clients, jobs int) error {
	at, from := fed.Sites[0], fed.Sites[1]
	before, err := at.ResidentMiB()
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var all listeners
	if err = all.connect(ctx, at, clients, jobs); err != nil {
		return err
	}
	begun, err := submitSlowly(ctx, from, jobs)
	if err != nil {
		return err
	}
	after, err := at.ResidentMiB()
	if err != nil {
		return err
	}
	took, missing := all.hear(ctx, begun)
	name := fmt.Sprintf("%d event streams at one broker", clients)
	t.add(figure{name: name + ": submission → all told, p50", measured: took.quantile(0.5), unit: "ms", note: fmt.Sprintf("%d jobs, submitted at another broker", jobs)})
	t.add(figure{name: name + ": submission → all told, p99", measured: took.quantile(0.99), unit: "ms"})
	t.add(figure{name: name + ": events not delivered", measured: float64(missing), unit: "events", aim: aim{none: true}})
	t.add(figure{name: name + ": memory a stream", measured: (after - before) * 1024 / float64(clients), unit: "KiB"})
	return nil
}

// submitSlowly submits waiting jobs one by one, and returns when each was begun.
func submitSlowly(ctx context.Context, s *testbed.Site, jobs int) (map[string]time.Time, error) {
	begun := make(map[string]time.Time, jobs)
	for range jobs {
		now := time.Now()
		a, err := s.Submit(ctx, waitingSpec)
		if err != nil {
			return nil, fmt.Errorf("submit: %w", err)
		}
		begun[a.ID] = now
		if err := pause(ctx, eventEvery); err != nil {
			return nil, err
		}
	}
	return begun, nil
}

// listeners are clients that follow events.
type listeners struct {
	heard []map[string]time.Time // by client and job; a client's own until done
	done  sync.WaitGroup
}

// connect opens the streams; each ends by itself once it has heard of so many
// jobs.
func (l *listeners) connect(ctx context.Context, s *testbed.Site, clients, jobs int) error {
	transport := &http.Transport{MaxConnsPerHost: clients, DisableCompression: true}
	l.heard = make([]map[string]time.Time, clients)
	var ready sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range clients {
		l.heard[i] = make(map[string]time.Time, jobs)
		ready.Add(1)
		l.done.Go(func() {
			err := listen(ctx, transport, s, l.heard[i], jobs, ready.Done)
			if err != nil && ctx.Err() == nil {
				failed.Store(&err)
			}
		})
	}
	ready.Wait()
	if err := failed.Load(); err != nil {
		return fmt.Errorf("open an event stream: %w", *err)
	}
	return nil
}

// listen notes when it hears of each job; ready is called once.
func listen(ctx context.Context, transport http.RoundTripper, s *testbed.Site, heard map[string]time.Time, jobs int,
	ready func(),
) error {
	return follow(ctx, transport, s, "kind=job.submitted", ready, func(e event) bool {
		heard[e.Job] = time.Now()
		return len(heard) < jobs
	})
}

// hear waits for the streams, a while at most, and returns how long after its
// submission each job was known to all of them, and how many events are missing.
func (l *listeners) hear(ctx context.Context, begun map[string]time.Time) (took sample, missing int) {
	over := make(chan struct{})
	go func() {
		l.done.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(idleFor):
		return nil, len(begun) * len(l.heard)
	case <-ctx.Done():
		return nil, len(begun) * len(l.heard)
	}
	for id, at := range begun {
		var last time.Duration
		for _, heard := range l.heard {
			when, ok := heard[id]
			if !ok {
				missing++
				continue
			}
			last = max(last, when.Sub(at))
		}
		took = append(took, last)
	}
	return took, missing
}
