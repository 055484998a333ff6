package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

// pausedAndLost pauses a leader with its supervisors and its foreign task until
// its site is lost. The broker then goes on, but cannot end that task, so it does
// not register again; and it is made the leader. Somebody must still judge the
// others: a site that is killed now is lost in time.
func pausedAndLost(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	m := r.byName(r.leadName(ctx))
	rest := rotate(r.members, r.number(m))
	dead, third := rest[0], rest[1]
	id, err := r.submit(ctx, r.number(third), plan.Job{
		Name: "foreign", Length: 15 * time.Second, OnLoss: check.Never, Count: 1,
		Sites: []int{r.number(m)},
	})
	if err != nil {
		return err
	}
	if _, err = r.attempt(ctx, id, 1, lag); err != nil {
		return err
	}
	goOn, err := m.freeze()
	if err != nil {
		return err
	}
	defer goOn()
	r.say("%s, which leads, is paused with all that it runs", m.Name)
	if err = r.siteState(ctx, third, m, electionWithin+lease+margin+2*lag, "lost"); err != nil {
		return err
	}
	if err = r.leadsAgain(ctx, m, third, dead); err != nil {
		return err
	}
	if err = r.siteState(ctx, third, dead, electionWithin+lease+margin+3*lag, "lost"); err != nil {
		return err
	}
	r.say("%s is lost", dead.Name)
	goOn()
	return r.launchAll(ctx)
}

// freeze stops the broker and every process of its tasks, and returns what
// lets the latter go on. The broker goes on by itself (leadsAgain).
func (m *member) freeze() (goOn func(), err error) {
	pids, err := under(m.Dir)
	if err != nil {
		return nil, err
	}
	broker, err := m.PID()
	if err != nil {
		return nil, err
	}
	var tasks, guards []int
	for _, pid := range pids {
		switch {
		case pid == broker:
		case argument(filepath.Join("/proc", strconv.Itoa(pid)), 1) == "supervise":
			guards = append(guards, pid)
		default:
			tasks = append(tasks, pid)
		}
	}
	if len(guards) == 0 || len(tasks) == 0 {
		return nil, fmt.Errorf("%s has %d supervisors and %d processes of tasks", m.Name, len(guards), len(tasks))
	}
	signalAll(append(append([]int{broker}, guards...), tasks...), syscall.SIGSTOP)
	return func() { // supervisors first: they know that the lease is over
		signalAll(append(guards, tasks...), syscall.SIGCONT)
	}, nil
}

// leadsAgain resumes the broker and has it win the next election: its only rival
// dies, and the third is not heard by it.
func (r *run) leadsAgain(ctx context.Context, m, third, dead *member) error {
	if err := m.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	r.say("the broker of %s goes on, what it runs does not", m.Name)
	if err := r.caughtUp(ctx, m, third); err != nil {
		return err
	}
	heal := r.lab.Cut(netlab.Rule{From: r.number(third), To: r.number(m), ToPort: peerPort})
	defer heal()
	r.say("kill %s; %s cannot ask for votes", dead.Name, third.Name)
	if err := dead.end(syscall.SIGKILL); err != nil {
		return err
	}
	return within(ctx, electionWithin+2*lag, check.Progress, m.Name+" leading", func() error {
		for _, at := range []*member{m, third} {
			if st, err := at.Status(ctx); err == nil && st.Leader == m.Name {
				r.say("%s leads, as %s sees it", m.Name, at.Name)
				return nil
			}
		}
		return errors.New("nobody says so")
	})
}

// caughtUp waits until a broker has applied what another has.
func (r *run) caughtUp(ctx context.Context, m, other *member) error {
	return within(ctx, readyWait, check.Progress, m.Name+" caught up", func() error {
		theirs, err := other.Status(ctx)
		if err != nil {
			return err
		}
		own, err := m.Status(ctx)
		if err == nil && (own.Index < theirs.Index || own.Leader == "") {
			err = fmt.Errorf("it is at entry %d, %s at %d", own.Index, other.Name, theirs.Index)
		}
		return err
	})
}
