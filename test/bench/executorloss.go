package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	executorKills = 6
	lossSites     = 5
	// foreignSpan of a task that is lost: longer than it is looked at.
	foreignSpan = "60"
)

// measureExecutorLoss kills a site that runs two tasks of another, and times
// each from the kill until its second attempt reads the clock at a third site.
func measureExecutorLoss(ctx context.Context, env environment, t *table) (err error) {
	marks, err := listenStarts(env)
	if err != nil {
		return err
	}
	defer marks.close()
	fed, err := startWhole(ctx, env, "executor", lossSites, coresPerSite, env.shares())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	moved := map[string]sample{}
	for i := range executorKills {
		if err = killExecutor(ctx, fed, env.stamp, marks, i, moved); err != nil {
			err = fmt.Errorf("kill executing site, %d of %d: %w", i+1, executorKills, err)
			break
		}
	}
	for _, c := range []struct {
		onLoss string
		aim    float64
	}{{"immediate", 6}, {"fenced", 9}} {
		for _, q := range []struct {
			name string
			q    float64
		}{{"p50", 0.5}, {"max", 1}} {
			t.add(figure{
				name: "kill -9 of an executing site → its " + c.onLoss + " task runs elsewhere, " + q.name, unit: "s",
				measured: moved[c.onLoss].quantile(q.q) / 1000, aim: aim{below: c.aim}, peers: "Nomad 17 to 20",
				note: fmt.Sprintf("%d kills, %d sites, lease 6 s + margin 1 s", len(moved[c.onLoss]), lossSites),
			})
		}
	}
	return err
}

// killExecutor does it once, with other sites each time; none of them leads.
func killExecutor(ctx context.Context, fed *testbed.Federation, stamp string, marks *starts, i int,
	moved map[string]sample,
) error {
	_, others, err := leadAndOthers(ctx, fed)
	if err != nil {
		return err
	}
	at := func(n int) *testbed.Site { return others[(i+n)%len(others)] }
	victim, spare, owner := at(0), at(1), at(2)
	jobs, err := placeForeign(ctx, owner, victim, spare, coresPerSite, stamp, marks)
	if err != nil {
		return err
	}
	if err = loseExecutor(ctx, jobs, owner, victim, spare, marks, startLimit, moved); err != nil {
		return err
	}
	if err := fed.Restart(ctx, victim); err != nil {
		return err
	}
	return awaitWhole(ctx, fed)
}

// loseExecutor kills the site that runs jobs, times until each runs at the spare site, which must be within a limit,
// and cancels them. jobs says what each does about a loss.
func loseExecutor(ctx context.Context, jobs map[string]string, owner, victim, spare *testbed.Site, marks *starts,
	within time.Duration, moved map[string]sample,
) error {
	killed := time.Now()
	if err := victim.Kill(); err != nil {
		return err
	}
	for range jobs {
		st, err := marks.nextWithin(ctx, within)
		if err != nil {
			return err
		}
		onLoss, ok := jobs[st.job]
		if !ok || st.attempt != 2 || st.site != spare.Name {
			return fmt.Errorf("unexpected start %+v after the loss of %s", st, victim.Name)
		}
		moved[onLoss] = append(moved[onLoss], since(killed, st.at))
	}
	for id := range jobs {
		if err := cancelJob(ctx, owner, id); err != nil {
			return err
		}
	}
	return nil
}

// placeForeign has a task of each kind run at the victim, with room for both at
// the spare site, which has so many cores. It returns what each job does about a loss.
func placeForeign(ctx context.Context, owner, victim, spare *testbed.Site, cores int, stamp string,
	marks *starts,
) (map[string]string, error) {
	held, err := occupy(ctx, spare, cores)
	if err != nil {
		return nil, err
	}
	jobs := map[string]string{}
	for _, onLoss := range []string{"immediate", "fenced"} {
		a, err := owner.Submit(ctx, testbed.Spec{
			Command: []string{"sh", "-c", `"$0" "$1"; exec sleep ` + foreignSpan, stamp, marks.path},
			Retry:   &testbed.Retry{OnLoss: onLoss},
			Sites:   &testbed.Where{Only: []string{victim.Name, spare.Name}},
		})
		if err != nil {
			return nil, err
		}
		st, err := marks.next(ctx)
		if err != nil {
			return nil, err
		}
		if st.job != a.ID || st.site != victim.Name {
			return nil, fmt.Errorf("job %s, meant for %s: started %+v", a.ID, victim.Name, st)
		}
		jobs[a.ID] = onLoss
	}
	return jobs, cancelJob(ctx, spare, held)
}

// cancelJob returns when nothing of the job runs any more.
func cancelJob(ctx context.Context, s *testbed.Site, id string) error {
	if err := s.Cancel(ctx, id); err != nil {
		return fmt.Errorf("cancel %s: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	_, err := s.AwaitJob(ctx, id, "cancelled")
	return err
}
