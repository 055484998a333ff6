package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	leadKills = 20
	// askEvery is how often a client sends the next submission, answered or not.
	askEvery = 5 * time.Millisecond
	// askAround a loss: before the kill, and after the first answer.
	askAround = 250 * time.Millisecond
	// openAsks is more than the clients can have unread at any time.
	openAsks = int(answerLimit/askEvery) + 1024
)

// nowhere is a site that does not exist: its jobs are committed and wait.
const nowhere = "nowhere"

// measureLeadLoss kills the lead again and again while clients submit to the
// other brokers, and restarts it until it votes before the next kill.
func measureLeadLoss(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startWhole(ctx, env, "lead", siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	var all outage
	for range leadKills {
		if err = killLead(ctx, fed, &all); err != nil {
			err = fmt.Errorf("kill lead %d of %d: %w", len(all.gaps)+1, leadKills, err)
			break
		}
	}
	all.add(t)
	return err
}

// outage is what the clients have seen of all losses.
type outage struct {
	gaps   sample // kill → first commit of a request sent after it
	asked  int
	failed int
	local  int // acknowledged by one site only
	first  error
}

func (o *outage) count(a ask) {
	o.asked++
	switch {
	case a.err != nil:
		o.failed++
		if o.first == nil {
			o.first = a.err
		}
	case a.durability != "federation":
		o.local++
	}
}

func (o *outage) add(t *table) {
	const name = "kill -9 of the leader → next acknowledged submission"
	note := fmt.Sprintf("%d kills, %d sites", len(o.gaps), siteCount)
	t.add(figure{name: name + ", p50", measured: o.gaps.quantile(0.5) / 1000, unit: "s", aim: aim{below: 1}, peers: "Nomad 2.8 to 3.7, Slurm and Kubernetes 1.0", note: note})
	t.add(figure{name: name + ", p99", measured: o.gaps.quantile(0.99) / 1000, unit: "s", note: note})
	asked := fmt.Sprintf("of %d, every %s at the other brokers; %d were acknowledged as durable at one site only", o.asked, askEvery, o.local)
	if o.first != nil {
		asked += "; the first: " + o.first.Error()
	}
	t.add(figure{name: name + ", failed requests", measured: float64(o.failed), aim: aim{none: true}, note: asked})
}

// killLead kills the leader once and waits until the federation is whole again.
func killLead(ctx context.Context, fed *testbed.Federation, all *outage) error {
	return loseLead(ctx, fed, askEvery, askAround, all, func(lead *testbed.Site) error {
		if err := fed.Restart(ctx, lead); err != nil {
			return err
		}
		return awaitWhole(ctx, fed)
	})
}

// loseLead kills the leader once while others are asked so often, until a while after the first acknowledgement. again
// starts it again.
func loseLead(
	ctx context.Context, fed *testbed.Federation, every, while time.Duration, all *outage,
	again func(lead *testbed.Site) error,
) error {
	lead, others, err := leadAndOthers(ctx, fed)
	if err != nil {
		return err
	}
	asks := openStream(ctx, others, every)
	defer func() {
		for a := range asks.stop() {
			all.count(a)
		}
	}()
	if err = pause(ctx, askAround); err != nil {
		return err
	}
	killed := time.Now()
	if err = lead.Kill(); err != nil {
		return err
	}
	gap, err := asks.firstCommit(ctx, killed, time.Now(), all)
	if err != nil {
		return err
	}
	all.gaps = append(all.gaps, gap)
	if err = pause(ctx, while); err != nil {
		return err
	}
	asks.end()
	return again(lead)
}

// ask is one submission as its client saw it.
type ask struct {
	sent, answered time.Time
	durability     string
	err            error
}

// stream is clients that submit at a steady pace, however long the answers
// take: a client that waits for each answer would send one request per loss.
type stream struct {
	end     context.CancelFunc // no more requests; idempotent
	answers chan ask           // closed when all have been answered
}

// openStream submits to the sites in turn, every so often, at most each askEvery.
func openStream(ctx context.Context, sites []*testbed.Site, every time.Duration) *stream {
	going, end := context.WithCancel(ctx)
	s := &stream{end: end, answers: make(chan ask, openAsks)}
	go func() {
		var open sync.WaitGroup
		defer close(s.answers)
		defer open.Wait()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-going.Done():
				return
			case <-tick.C:
				open.Go(func() { s.answers <- submitNowhere(ctx, sites[n%len(sites)]) })
			}
		}
	}()
	return s
}

// submitNowhere submits one job that waits in the federation's queue.
func submitNowhere(ctx context.Context, s *testbed.Site) ask {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	sent := time.Now()
	a, err := s.Submit(ctx, waitingSpec)
	return ask{sent: sent, answered: time.Now(), durability: a.Durability, err: err}
}

// stop returns what has not been read yet, until every request is answered.
func (s *stream) stop() <-chan ask {
	s.end()
	return s.answers
}

// firstCommit reads until a request that was sent when the leader was gone is
// acknowledged as committed, and returns how long after the kill that was. An
// earlier request may have been committed by the leader itself.
func (s *stream) firstCommit(ctx context.Context, killed, gone time.Time, all *outage) (time.Duration, error) {
	limit := time.NewTimer(answerLimit)
	defer limit.Stop()
	for {
		select {
		case a := <-s.answers:
			all.count(a)
			if a.err == nil && a.durability == "federation" && a.sent.After(gone) {
				return a.answered.Sub(killed), nil
			}
		case <-limit.C:
			return 0, fmt.Errorf("no submission was committed within %s of the kill", answerLimit)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
