package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	pauseCount = 100
	pauseFor   = 2 * time.Second
	// settleFor is longer than a lease and its margin: a loss that the last
	// pause has caused is there after it.
	settleFor = 8 * time.Second
	// againWithin a requeued task is to run again: its site is free and has
	// only to end the former attempt.
	againWithin = 5 * time.Second
)

// measurePauses stops one broker after the other for two seconds, the leader like
// the others, while each site runs two tasks of its neighbour. Nobody is dead,
// so every further attempt is a mistake.
func measurePauses(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startWhole(ctx, env, "pauses", lossSites, coresPerSite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	lent, err := lendAll(ctx, fed)
	if err != nil {
		return err
	}
	var p pauseRun
	for i := 0; i < pauseCount && err == nil; i++ {
		if err = p.once(ctx, env, fed, fed.Sites[i%len(fed.Sites)], lent); err != nil {
			err = fmt.Errorf("pause %d of %d: %w", i+1, pauseCount, err)
		}
	}
	if err == nil {
		err = errors.Join(pause(ctx, settleFor), lookAll(ctx, lent))
	}
	for _, onLoss := range []string{"fenced", "immediate"} {
		t.add(figure{
			name:     fmt.Sprintf("false requeues of %s tasks in %d pauses of %s", onLoss, p.done, pauseFor),
			measured: float64(requeues(lent, onLoss)), aim: aim{none: true},
			note: fmt.Sprintf("SIGSTOP of each of %d brokers in turn (%d times the leader), %d such tasks at work", lossSites, p.leads, lossSites),
		})
	}
	stranded := 0
	for _, l := range lent {
		stranded += l.stranded
	}
	t.add(figure{
		name:     fmt.Sprintf("of these, not running again within %s", againWithin),
		measured: float64(stranded), aim: aim{none: true}, note: "their only site is there, and free",
	})
	return err
}

// pauseRun counts pauses.
type pauseRun struct{ done, leads int }

// once pauses one broker, and notes what it cost.
func (p *pauseRun) once(ctx context.Context, env environment, fed *testbed.Federation, s *testbed.Site,
	lent []*lent,
) error {
	lead, _, err := leadAndOthers(ctx, fed)
	if err != nil {
		return err
	}
	before := requeues(lent, "")
	if err := errors.Join(pauseOne(ctx, fed, s), lookAll(ctx, lent)); err != nil {
		return err
	}
	p.done++
	if s == lead {
		p.leads++
	}
	if n := requeues(lent, "") - before; n > 0 {
		fmt.Fprintf(env.notes, "pause %d, of %s (lead: %s): requeues: %d\n", p.done, s.Name, lead.Name, n)
	}
	return nil
}

// pauseOne stops a broker for a while and waits until it is back.
func pauseOne(ctx context.Context, fed *testbed.Federation, s *testbed.Site) error {
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// It goes on even if the measurement ends here.
	if err := errors.Join(pause(ctx, pauseFor), s.Signal(syscall.SIGCONT)); err != nil {
		return err
	}
	return awaitWhole(ctx, fed)
}

// lent is a task that runs at another site than its owner's.
type lent struct {
	owner, at *testbed.Site
	onLoss    string
	job       string
	attempt   int
	requeues  int // seen so far
	stranded  int // of these, how many did not run again soon
}

// lendAll has every site run a task of each kind for the next one.
func lendAll(ctx context.Context, fed *testbed.Federation) ([]*lent, error) {
	var all []*lent
	for i, at := range fed.Sites {
		for _, onLoss := range []string{"fenced", "immediate"} {
			l := &lent{owner: fed.Sites[(i+1)%len(fed.Sites)], at: at, onLoss: onLoss}
			if err := l.place(ctx); err != nil {
				return nil, err
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// place starts the task.
func (l *lent) place(ctx context.Context) error {
	a, err := l.owner.Submit(ctx, testbed.Spec{
		Command: []string{"sleep", "1800"},
		Retry:   &testbed.Retry{OnLoss: l.onLoss},
		Sites:   &testbed.Where{Only: []string{l.at.Name}},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	l.job, l.attempt = a.ID, 1
	_, err = l.owner.AwaitJob(ctx, a.ID, "running")
	return err
}

// look counts a requeue if the attempt that ran at the last look was given up,
// whatever became of its successors. A task that does not run again soon is
// replaced, so that the next pause has something to disturb.
func (l *lent) look(ctx context.Context) error {
	task, err := l.task(ctx)
	atWork := task.State == "running" || task.State == "assigned" // not yet told to be running
	if err != nil || atWork && task.Attempt == l.attempt {
		return err
	}
	l.requeues++
	soon, cancel := context.WithTimeout(ctx, againWithin)
	defer cancel()
	job, err := l.owner.AwaitJob(soon, l.job, "running", "lost", "failed", "succeeded", "cancelled")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && job.State == "running":
		task, err = l.task(ctx)
		l.attempt = task.Attempt
		return err
	case err == nil && job.State == "lost":
		return l.place(ctx)
	case err == nil:
		return fmt.Errorf("job %s, which sleeps, is %s: %s", l.job, job.State, job.Reason)
	}
	l.stranded++
	return errors.Join(cancelJob(ctx, l.owner, l.job), l.place(ctx))
}

// task returns the job's only one.
func (l *lent) task(ctx context.Context) (testbed.Task, error) {
	tasks, err := l.owner.Tasks(ctx, l.job)
	if err == nil && len(tasks) != 1 {
		err = fmt.Errorf("job %s has %d tasks", l.job, len(tasks))
	}
	if err != nil {
		return testbed.Task{}, err
	}
	return tasks[0], nil
}

// requeues that were seen, of one kind or ("") of all.
func requeues(all []*lent, onLoss string) int {
	n := 0
	for _, l := range all {
		if onLoss == "" || l.onLoss == onLoss {
			n += l.requeues
		}
	}
	return n
}

func lookAll(ctx context.Context, all []*lent) error {
	for _, l := range all {
		if err := l.look(ctx); err != nil {
			return err
		}
	}
	return nil
}
