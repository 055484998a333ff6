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

// away starts a job of site 1 whose only task runs at another site, and returns
// that site. Site 1 founded the federation and leads.
func (r *run) away(ctx context.Context, j plan.Job) (id string, at *member, err error) {
	for i := range r.members[1:] {
		j.Sites = append(j.Sites, i+2)
	}
	j.Count = 1
	if id, err = r.submit(ctx, 1, j); err != nil {
		return "", nil, err
	}
	a, err := r.attempt(ctx, id, 1, lag)
	if err != nil {
		return "", nil, err
	}
	r.say("%s runs", a)
	return id, r.byName(a.Site), nil
}

// moved waits for the second attempt and says how long it took since the fault.
// At most after most it must be there.
func (r *run) moved(ctx context.Context, id string, since time.Time, most time.Duration) error {
	a, err := r.attempt(ctx, id, 2, most-time.Since(since))
	if err != nil {
		return err
	}
	r.say("%s runs, %s after the fault", a, time.Since(since).Round(10*time.Millisecond))
	return nil
}

// deadSite kills the broker of an executing site for good. Its supervisor ends
// the foreign task; the federation gives the site up.
func deadSite(ctx context.Context, r *run) error {
	id, victim, err := r.away(ctx, plan.Job{Name: "foreign", Length: 12 * time.Second, Stubborn: true})
	if err != nil {
		return err
	}
	never, err := r.neverThere(ctx, victim)
	if err != nil {
		return err
	}
	began := time.Now()
	r.say("kill %s", victim.Name)
	if err = victim.end(syscall.SIGKILL); err != nil {
		return err
	}
	home := r.members[0]
	if err = r.siteState(ctx, home, victim, lease+margin+lag, "lost"); err != nil {
		return err
	}
	r.say("%s is lost, %s after the fault", victim.Name, time.Since(began).Round(10*time.Millisecond))
	if err = r.moved(ctx, id, began, lease+margin+lag); err != nil {
		return err
	}
	if err = r.withdrawn(ctx, never); err != nil {
		return err
	}
	if err = victim.launch(); err != nil {
		return err
	}
	return r.siteState(ctx, home, victim, readyWait, "alive")
}

// withdrawn waits until the first site shows that of a job of another, which is away.
func (r *run) withdrawn(ctx context.Context, id string) error {
	return within(ctx, lag, check.Withdrawn, id+" withdrawn", func() error {
		job, err := r.members[0].Job(ctx, id)
		if err == nil && job.State != "withdrawn" {
			err = fmt.Errorf("it is %s", job.State)
		}
		return err
	})
}

// neverThere has a site own a job that waits for the core it has lent.
func (r *run) neverThere(ctx context.Context, m *member) (string, error) {
	n := r.number(m)
	return r.submit(ctx, n, plan.Job{Name: "own", Count: 1, Length: time.Second, OnLoss: check.Never, Sites: []int{n}})
}

// fence cuts a site off while it runs a task that does not mind TERM.
func fence(ctx context.Context, r *run) error {
	id, victim, err := r.away(ctx, plan.Job{Name: "foreign", Length: 10 * time.Second, Stubborn: true})
	if err != nil {
		return err
	}
	began := time.Now()
	r.say("cut %s", victim.Name)
	heal := r.lab.Cut(netlab.Isolate(r.number(victim), netlab.Any)...)
	defer heal()
	return r.moved(ctx, id, began, lease+margin+lag)
}

// wideMargin leaves room to put a delay well inside it.
const wideMargin = 4 * time.Second

// slowSupervisor stops the supervisors of a cut-off site until the lease has
// been over for half of the margin: a clock that runs slow, made visible. The
// margin is there for that.
func slowSupervisor(ctx context.Context, r *run) error {
	id, victim, err := r.away(ctx, plan.Job{Name: "foreign", Length: 12 * time.Second})
	if err != nil {
		return err
	}
	began := time.Now()
	r.say("cut %s and stop its supervisors", victim.Name)
	heal := r.lab.Cut(netlab.Isolate(r.number(victim), netlab.Any)...)
	defer heal()
	pids, err := supervisors(victim.Dir)
	if err != nil || len(pids) == 0 {
		return errors.Join(err, fmt.Errorf("%s has %d supervisors", victim.Name, len(pids)))
	}
	signalAll(pids, syscall.SIGSTOP)
	defer signalAll(pids, syscall.SIGCONT)
	if err := sleep(ctx, lease+wideMargin/2); err != nil {
		return err
	}
	signalAll(pids, syscall.SIGCONT)
	r.say("supervisors of %s go on", victim.Name)
	return r.moved(ctx, id, began, lease+wideMargin+lag)
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}

// supervisors lists those of a site.
func supervisors(dir string) ([]int, error) {
	all, err := under(dir)
	var out []int
	for _, pid := range all {
		if argument(filepath.Join("/proc", strconv.Itoa(pid)), 1) == "supervise" {
			out = append(out, pid)
		}
	}
	return out, err
}

// leadChange kills the leader in the moment in which an executing site is cut
// off: whoever leads next has never heard of its lease.
func leadChange(ctx context.Context, r *run) error {
	home := r.members[0]
	err := within(ctx, readyWait, check.Progress, "five voters", func() error {
		st, e := home.Status(ctx)
		if e == nil && len(st.Voters) < len(r.members) {
			e = fmt.Errorf("there are %d", len(st.Voters))
		}
		return e
	})
	if err != nil {
		return err
	}
	id, victim, err := r.away(ctx, plan.Job{Name: "foreign", Length: 2 * wideLease, Stubborn: true})
	if err != nil {
		return err
	}
	began := time.Now()
	r.say("cut %s and kill the leader", victim.Name)
	heal := r.lab.Cut(netlab.Isolate(r.number(victim), netlab.Any)...)
	defer heal()
	lead := r.byName(r.leadName(ctx))
	if err := lead.end(syscall.SIGKILL); err != nil {
		return err
	}
	// An election, then the full wait of the new leader. The dead leader owns the
	// task, so it is back before that is over.
	if err := sleep(ctx, wideLease/2); err != nil {
		return err
	}
	if err := lead.launch(); err != nil {
		return err
	}
	return r.moved(ctx, id, began, electionWithin+wideLease+margin+lag)
}

const (
	// wideLease is long beside an election.
	wideLease = 12 * time.Second
	// electionWithin a new leader leads.
	electionWithin = 3 * time.Second
)

// staleReport has an idempotent task given up at the first hint. Its first attempt has
// failed meanwhile, unheard, and tells so when its site is heard again.
func staleReport(ctx context.Context, r *run) error {
	id, victim, err := r.away(ctx, plan.Job{
		Name: "idempotent", OnLoss: check.Immediate, First: 2 * time.Second, Exit: 7, Length: 8 * time.Second,
	})
	if err != nil {
		return err
	}
	r.say("cut %s", victim.Name)
	heal := r.lab.Cut(netlab.Isolate(r.number(victim), netlab.Any)...)
	defer heal()
	second, err := r.attempt(ctx, id, 2, lease+margin+lag)
	if err != nil {
		return err
	}
	r.say("%s runs", second)
	heal()
	r.say("%s is heard again", victim.Name)
	return nil // the rest is judged like every job
}
