//go:build attacks

package attacks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// rivals is a federation of its own whose leader turns hostile, by a build with the tag mutate.
type rivals struct {
	fed    *testbed.Federation
	file   string // says who is hostile, and how: see node/internal/mutate
	lead   *testbed.Site
	victim *testbed.Site
	third  *testbed.Site
	rows   []string // attack | what came of it
}

// TestHostileLeader: what a leader can do with its entries, its losses and its clock, against real brokers. DESIGN.md
// has the table.
func TestHostileLeader(t *testing.T) {
	r := startRivals(t)
	for _, attack := range []struct {
		name string
		run  func(*rivals, *testing.T)
	}{
		{"forges", (*rivals).forges},
		{"misplaces", (*rivals).misplaces},
		{"reorders", (*rivals).reorders},
		{"loses", (*rivals).loses},
		{"stretches time", (*rivals).stretchesTime}, // which stands then, until another one leads
		{"censors", (*rivals).censors},
		{"lies", (*rivals).lies},
	} {
		if !t.Run(attack.name, func(t *testing.T) { attack.run(r, t) }) {
			break // the others would begin with what it left
		}
	}
	t.Logf("what a hostile leader does | what comes of it\n%s", strings.Join(r.rows, "\n"))
}

// startRivals starts the federation, of three voters. As a mutation check its brokers work without the safeguards that
// CLOUDSHARE_MUTATE names; see test/chaos/DESIGN.md.
func startRivals(t *testing.T) *rivals {
	t.Helper()
	dir := t.TempDir()
	binary, err := testbed.Build(t.Context(), dir, "mutate")
	must(t, err)
	r := &rivals{file: filepath.Join(dir, "hostile")}
	data := filepath.Join(dir, "data")
	must(t, os.Mkdir(data, 0o700))
	r.fed, err = testbed.Start(t.Context(), testbed.Options{
		Binary: binary, Dir: data, Sites: 3, Cores: 2,
		Env: []string{"HOSTILE_LEADER=" + r.file, "HOSTILE_WITHOUT=" + os.Getenv("CLOUDSHARE_MUTATE")},
	})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range r.fed.Sites {
				t.Logf("%s\n%s", s.Name, s.LogTail(25))
			}
		}
		if err := r.fed.Stop(); err != nil {
			t.Error(err)
		}
	})
	await(t, "three voters", func() error {
		st, err := r.fed.Sites[0].Status(t.Context())
		if err == nil && len(st.Voters) < 3 {
			err = fmt.Errorf("%v", st.Voters)
		}
		return err
	})
	r.meetLeader(t, r.fed.Sites)
	return r
}

// meetLeader finds out who leads, and names the others.
func (r *rivals) meetLeader(t *testing.T, living []*testbed.Site) {
	t.Helper()
	await(t, "a leader", func() error {
		st, err := living[0].Status(t.Context())
		at := slices.IndexFunc(living, func(s *testbed.Site) bool { return s.Name == st.Leader })
		if err != nil || at < 0 {
			return fmt.Errorf("%q leads, %w", st.Leader, err)
		}
		r.lead = living[at]
		others := slices.DeleteFunc(slices.Clone(living), func(s *testbed.Site) bool { return s == r.lead })
		r.victim, r.third = others[0], others[len(others)-1]
		return nil
	})
}

// turn has the leader be hostile from now on, until the returned function is called.
func (r *rivals) turn(t *testing.T, how string) (back func()) {
	t.Helper()
	victim := r.victim.Name
	if how == "leader-forges" {
		victim = "" // all
	}
	must(t, os.WriteFile(r.file, []byte(r.lead.Name+" "+how+" "+victim), 0o600))
	back = func() { must(t, os.WriteFile(r.file, nil, 0o600)) }
	t.Cleanup(back)
	return back
}

// awaitDone waits until it has done a thing so often.
func (r *rivals) awaitDone(t *testing.T, how string, times int) {
	t.Helper()
	await(t, how, func() error {
		text, err := os.ReadFile(r.file + "." + how)
		if n, _ := strconv.Atoi(string(text)); err == nil && n < times {
			err = fmt.Errorf("%d times", n)
		}
		return err
	})
}

func (r *rivals) row(format string, args ...any) {
	r.rows = append(r.rows, fmt.Sprintf(format, args...))
}

// jobsEnd has every site order jobs for every other one, and waits for their ends.
func (r *rivals) jobsEnd(t *testing.T, among ...*testbed.Site) {
	t.Helper()
	type sent struct {
		by *testbed.Site
		id string
	}
	var jobs []sent
	for _, by := range among {
		for _, at := range among {
			a, err := by.Submit(within(t), testbed.Spec{
				Command: []string{"/bin/true"}, Count: 2, Sites: &testbed.Where{Only: []string{at.Name}},
			})
			must(t, err)
			jobs = append(jobs, sent{by, a.ID})
		}
	}
	for _, j := range jobs {
		job, err := j.by.AwaitJob(within(t), j.id, "succeeded", "failed", "lost", "cancelled")
		if err != nil || job.State != "succeeded" {
			t.Errorf("a job of %s: %s %s, %v", j.by.Name, job.State, job.Reason, err)
		}
	}
}

// metric reads one series of a broker, 0 = there is none.
func metric(t *testing.T, s *testbed.Site, series string) float64 {
	t.Helper()
	text, _, err := s.Do(within(t), "GET", "/metrics", nil, nil)
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			must(t, err)
			return v
		}
	}
	return 0
}

// agree checks that all brokers run on, with equal states, and none has seen a difference.
func (r *rivals) agree(t *testing.T, among ...*testbed.Site) {
	t.Helper()
	must(t, testbed.AwaitEqualState(within(t), among...))
	for _, s := range among {
		if !s.Alive() {
			t.Errorf("%s has ended", s.Name)
		}
		for _, other := range among {
			if v := metric(t, s, `cloudshare_replica_differs{with="`+other.Name+`"}`); v != 0 {
				t.Errorf("%s: the state of %s differs", s.Name, other.Name)
			}
		}
		if err := s.ReportedDifference(); err != nil {
			t.Error(err)
		}
	}
}

// standing is what an attack on the victim may not change: its incarnation, and the attempt of a job that runs there.
func (r *rivals) standing(t *testing.T, job string) string {
	t.Helper()
	info, err := r.third.Info(within(t), r.victim.Name)
	must(t, err)
	tasks, err := r.third.Tasks(within(t), job)
	must(t, err)
	return fmt.Sprintf("%s incarnation %d, task %s at %s, attempt %d token %s", info.State, info.Incarnation,
		tasks[0].State, tasks[0].Site, tasks[0].Attempt, tasks[0].Token)
}

// forges: the leader orders, in others' names, what they have not said, and what they have said before.
func (r *rivals) forges(t *testing.T) {
	back := r.turn(t, "leader-forges")
	// The leader hears of its start, and then forges its end, and its owner's wish to cancel it.
	a, err := r.third.Submit(within(t), testbed.Spec{
		Command: []string{"/bin/sleep", "600"}, Sites: &testbed.Where{Only: []string{r.victim.Name}},
	})
	must(t, err)
	t.Cleanup(func() { cancel(t, r.third, a.ID) })
	id := a.ID
	await(t, "a running task", func() error {
		job, err := r.third.Job(t.Context(), id)
		if err == nil && job.Counts["running"] != 1 {
			err = errNotYet
		}
		return err
	})
	before := r.standing(t, id)
	r.awaitDone(t, "leader-forges-ends", 10)
	for range 3 {
		r.jobsEnd(t, r.fed.Sites...)
	}
	r.agree(t, r.fed.Sites...)
	if after := r.standing(t, id); after != before {
		t.Errorf("the victim was\n%s, and is\n%s", before, after)
	}
	back()
	r.jobsEnd(t, r.fed.Sites...)
	text, _ := os.ReadFile(r.file + ".leader-forges")
	r.row("forged and replayed commands, %s entries of them | refused by all replicas alike", text)
}

// misplaces: the leader's headers name calls where other commands stand.
func (r *rivals) misplaces(t *testing.T) {
	back := r.turn(t, "leader-misplaces")
	begun := time.Now()
	r.jobsEnd(t, r.fed.Sites...)
	took := time.Since(begun)
	r.awaitDone(t, "leader-misplaces", 5)
	r.agree(t, r.fed.Sites...)
	back()
	r.row("headers that name calls at others' places | no call takes another's result; jobs end, in %.1f s", took.Seconds())
}

// reorders: the leader turns the order of what came.
func (r *rivals) reorders(t *testing.T) {
	back := r.turn(t, "leader-reorders")
	for range 3 {
		r.jobsEnd(t, r.fed.Sites...)
	}
	r.awaitDone(t, "leader-reorders", 1)
	r.agree(t, r.fed.Sites...)
	back()
	r.row("bundles in another order | no state differs, jobs end; undetectable: nobody else knows what came first")
}

// loses: the leader declares a site lost that has a lease.
func (r *rivals) loses(t *testing.T) {
	const series = "cloudshare_unjust_losses_total"
	r.jobsEnd(t, r.fed.Sites...)
	if n := metric(t, r.victim, series); n != 0 {
		t.Fatalf("%v unjust losses before", n)
	}
	begun := time.Now()
	back := r.turn(t, "leader-loses")
	await(t, "the alarm", func() error {
		if metric(t, r.victim, series) == 0 {
			return errNotYet
		}
		return nil
	})
	took := time.Since(begun)
	back()
	for _, s := range []*testbed.Site{r.lead, r.third} {
		if n := metric(t, s, series); n != 0 {
			t.Errorf("%s: %v unjust losses", s.Name, n)
		}
	}
	const told = "was declared lost while its lease was valid"
	log, err := os.ReadFile(filepath.Join(r.victim.Dir, "broker.log"))
	must(t, err)
	if !strings.Contains(string(log), told) || !strings.Contains(lineWith(string(log), told), "lead="+r.lead.Name) {
		t.Errorf("the victim's log does not name %s: %q", r.lead.Name, lineWith(string(log), told))
	}
	await(t, "the victim is back", func() error { return r.victim.Ready(t.Context()) })
	r.jobsEnd(t, r.fed.Sites...)
	r.agree(t, r.fed.Sites...)
	r.row("a loss under a valid lease | alarmed at the wronged site within %.1f s, which is back by itself", took.Seconds())
}

// lineWith returns the first line that has a text.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// censors: the leader orders nothing of one site, and answers it nothing. Another leader does.
func (r *rivals) censors(t *testing.T) {
	back := r.turn(t, "leader-censors")
	spec := testbed.Spec{Command: []string{"/bin/true"}, Sites: &testbed.Where{Only: []string{r.third.Name}}}
	a, err := r.victim.Submit(within(t), spec)
	must(t, err)
	r.awaitDone(t, "leader-censors", 1)
	for range 2 { // others' jobs, sent later
		r.jobsEnd(t, r.lead, r.third)
	}
	job, err := r.victim.Job(within(t), a.ID)
	must(t, err)
	if job.State == "succeeded" || job.Counts["running"] > 0 {
		t.Errorf("the censored site's job is %s %v", job.State, job.Counts)
	}
	publishing := metric(t, r.victim, "cloudshare_publishing_jobs")
	if publishing != 1 {
		t.Errorf("%v jobs are on their way to the federation, by the censored site", publishing)
	}
	former := r.lead
	begun := time.Now()
	must(t, former.Kill())
	back()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		must(t, r.fed.Restart(ctx, former))
	})
	if got, err := r.victim.AwaitJob(within(t), a.ID, "succeeded", "failed", "lost", "cancelled"); err != nil || got.State != "succeeded" {
		t.Errorf("under another leader: %s %s, %v", got.State, got.Reason, err)
	}
	r.row("censorship of one site | undetectable; there it is acknowledged as %s, state %s, %v jobs publishing; ordered and "+
		"run %.1f s after the leader was gone", a.Durability, job.State, publishing, time.Since(begun).Seconds())
}

// stretchesTime: the leader has the log's time run ten times as fast.
func (r *rivals) stretchesTime(t *testing.T) {
	const series = "cloudshare_log_time_ahead_seconds"
	r.meetLeader(t, r.fed.Sites)
	begun := time.Now()
	back := r.turn(t, "leader-stretches-time")
	for _, s := range []*testbed.Site{r.victim, r.third} {
		await(t, "the alarm at "+s.Name, func() error {
			if ahead := metric(t, s, series); ahead <= 60 {
				return fmt.Errorf("%.0f s", ahead)
			}
			return nil
		})
	}
	took := time.Since(begun)
	back()
	for _, s := range []*testbed.Site{r.victim, r.third} {
		await(t, "it is told at "+s.Name, func() error {
			log, err := os.ReadFile(filepath.Join(s.Dir, "broker.log"))
			if err == nil && !strings.Contains(string(log), "time runs faster than this machine's clock") {
				err = errors.New("not told")
			}
			return err
		})
	}
	r.jobsEnd(t, r.fed.Sites...)
	r.agree(t, r.fed.Sites...)
	r.row("log time ten times as fast | alarmed at every other site within %.1f s", took.Seconds())
}
