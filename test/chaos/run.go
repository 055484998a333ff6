package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/linear"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// run is one federation under test and all that is found out about it.
type run struct {
	*fleet

	marker string // path of the mark binary
	marks  string // path of the file that tasks write to
	forks  bool   // a state is another one on purpose
	began  time.Time
	out    io.Writer

	faults faultSet // who is down, stopped or cut

	history  *linear.History // what clients did and were told
	indexes  check.Indexes
	policies atomic.Int64 // that were set by clients

	mu       sync.Mutex
	orders   []*order
	found    []check.Violation
	hashes   check.Hashes
	steady   check.Steady
	watching context.CancelFunc
	watched  sync.WaitGroup
	ended    chan string
}

// newRun starts a federation in a folder of its own.
func newRun(ctx context.Context, opts fleetOptions, marker string, out io.Writer) (*run, error) {
	r := &run{
		marker: marker, marks: filepath.Join(opts.dir, "shared", "marks"), began: time.Now(), out: out,
		ended: make(chan string, 64),
	}
	err := errors.Join(testbed.MakeShared(filepath.Dir(r.marks)), testbed.MakeSharedFile(r.marks))
	if err != nil {
		return nil, fmt.Errorf("make file of marks: %w", err)
	}
	opts.env = append(slices.Clone(opts.env), "CLOUDSHARE_SANDBOX_SHARE="+filepath.Dir(marker)+","+filepath.Dir(r.marks),
		"CLOUDSHARE_DATA_DELIVER_WAIT=1m") // what a site has lost with its disk is not waited for in vain
	if r.fleet, err = newFleet(ctx, opts, r.ended); err != nil {
		return nil, err
	}
	err = r.fleet.start(ctx)
	if err == nil && opts.far {
		err = r.fleet.moveApart(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.fleet.stop())
	}
	r.began = time.Now()
	r.history = linear.NewHistory(func() time.Duration { return time.Since(r.began) })
	if err := r.firstPolicy(ctx); err != nil {
		return nil, errors.Join(err, r.fleet.stop())
	}
	r.watch(ctx)
	return r, nil
}

// firstPolicy returns what the history begins with.
func (r *run) firstPolicy(ctx context.Context) error {
	first := r.honest()[0]
	p, err := r.policy(ctx, first, false)
	if err != nil {
		return fmt.Errorf("read the first policy: %w", err)
	}
	r.history = linear.NewHistory(func() time.Duration { return time.Since(r.began) })
	r.history.Saw(0, linear.Op{Kind: linear.SetPolicy, At: first.Name, Value: p.ReserveAfterMs})
	return nil
}

// say prints one line with the time since the beginning.
func (r *run) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%7.2fs %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// blame records violations and prints each when it is found.
func (r *run) blame(list ...check.Violation) {
	for _, v := range list {
		r.say("VIOLATION %s", v)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, list...)
}

func (r *run) violated(rule check.Rule, format string, args ...any) {
	r.blame(check.Violation{Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// sleepUntil waits until a moment of the run.
func (r *run) sleepUntil(ctx context.Context, at time.Duration) error {
	return sleep(ctx, at-time.Since(r.began))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// play carries a plan out, heals everything and judges what came of it.
func (r *run) play(ctx context.Context, p plan.Plan) error {
	traffic, cancel := context.WithCancel(ctx)
	defer cancel()
	setting, stopSetting := context.WithCancel(ctx)
	defer stopSetting()
	r.setPolicies(setting)
	var clients sync.WaitGroup
	for _, o := range p.Orders {
		if err := r.sleepUntilFaults(ctx, &p, o.At); err != nil {
			return err
		}
		tracked := r.track(o)
		clients.Go(func() { r.place(traffic, tracked) })
	}
	if err := r.sleepUntilFaults(ctx, &p, 1<<62); err != nil {
		return err
	}
	stopSetting()
	return r.finish(ctx, &clients, cancel)
}

// finish heals everything, waits until all is done and judges. If it does not
// get that far because a promise is broken, that is what it found.
func (r *run) finish(ctx context.Context, clients *sync.WaitGroup, stopClients context.CancelFunc) error {
	err := r.healAll(ctx)
	if err == nil {
		r.settle(ctx, clients, stopClients)
		err = r.judge(ctx)
	}
	return r.blameBroken(err)
}

// blameBroken turns a broken promise that ended a step into a violation.
func (r *run) blameBroken(err error) error {
	var b *brokenError
	if errors.As(err, &b) {
		r.blame(b.Violation)
		return nil
	}
	return err
}

// close ends the federation and returns what was found.
func (r *run) close() ([]check.Violation, error) {
	r.watching()
	r.watched.Wait()
	err := r.fleet.stop()
	for {
		select {
		case text := <-r.ended:
			r.violated(check.NoPanic, "%s", text)
		default:
			r.readLogs()
			return r.found, err
		}
	}
}
