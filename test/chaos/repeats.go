package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	// replyWithin is how long a broker waits for the leader's answer before it
	// hangs up and sends its commands again.
	replyWithin = 5 * time.Second
	// longLease outlasts that: the sender must not be given up meanwhile.
	longLease = 20 * time.Second
	// small packets carry heartbeats and calls; an entry with largeEnv in it
	// does not come through where only they do.
	small    = 700
	largeEnv = 8 << 10
)

// repeat loses the answer to a command, has another site undo what it did, and
// then lets the command come again, before its sender can see what has become
// of it: heartbeats reach the sender, but no entries.
func repeat(ctx context.Context, r *run) error {
	lead, sender, other := r.members[0], r.members[1], r.members[2]
	before, after := policy{111_000}, policy{222_000}
	noEntries := r.lab.Cut(netlab.Rule{To: r.number(sender), Over: small})
	defer noEntries()
	if _, err := r.submit(ctx, r.number(other), plan.Job{
		Name: "large", Count: 1, Length: time.Second,
		Sites: []int{r.number(lead)}, Env: largeEnv,
	}); err != nil {
		return err
	}
	noAnswers := r.lab.Cut(netlab.Rule{To: r.number(sender), FromPort: peerPort})
	defer noAnswers()
	r.say("%s gets no entries and no answers", sender.Name)
	began := time.Now()
	var client sync.WaitGroup
	defer client.Wait()
	client.Go(func() {
		err := r.setPolicy(ctx, sender, before)
		r.say("%s answers its client: %v", sender.Name, err)
	})
	err := within(ctx, lag, check.Progress, "the command at "+other.Name, func() error {
		if err := r.approveAll(ctx, other); err != nil {
			return err
		}
		return r.shows(ctx, other, before)
	})
	if err != nil {
		return err
	}
	if err = r.setPolicy(ctx, other, after); err != nil {
		return broke(check.NoError, "set policy at %s: %s", other.Name, err)
	}
	r.say("%s undid it", other.Name)
	if err = sleep(ctx, replyWithin+500*time.Millisecond-time.Since(began)); err != nil {
		return err
	}
	r.say("%s gets answers again", sender.Name)
	noAnswers()
	if err = sleep(ctx, 3*time.Second); err != nil {
		return err
	}
	r.say("%s gets entries again", sender.Name)
	noEntries()
	for _, m := range r.members {
		err = within(ctx, agreeWithin, check.Once, "the later policy at "+m.Name, func() error { return r.shows(ctx, m, after) })
		if err != nil {
			return err
		}
	}
	return nil
}

// shows is nil once a broker shows a policy.
func (r *run) shows(ctx context.Context, m *member, want policy) error {
	got, err := r.policy(ctx, m, false)
	if err == nil && got != want {
		err = fmt.Errorf("%s shows %d, not %d", m.Name, got.ReserveAfterMs, want.ReserveAfterMs)
	}
	return err
}

// powerCuts of one site.
const powerCuts = 3

// power takes a site's power right after it has acknowledged a job that it
// started itself: nobody else has heard of the job or of its key.
func power(ctx context.Context, r *run) error {
	m := r.members[1]
	for i := range powerCuts {
		name := fmt.Sprintf("home-%d", i+1)
		id, err := r.submit(ctx, r.number(m), plan.Job{
			Name: name, Count: 1, Length: 300 * time.Millisecond,
			Home: true,
		})
		if err != nil {
			return err
		}
		r.say("%s: the power fails", m.Name)
		if err := m.powerCut(ctx); err != nil {
			return err
		}
		if err := m.launch(); err != nil {
			return err
		}
		if err := m.awaitReady(ctx); err != nil {
			return broke(check.Progress, "%s does not start after its power failed: %s", m.Name, err)
		}
		if err := r.stillKnown(ctx, m, name, id); err != nil {
			return err
		}
	}
	return nil
}

// stillKnown repeats the order's request: the same key, the same job.
func (r *run) stillKnown(ctx context.Context, m *member, name, id string) error {
	var he *testbed.HTTPError
	if _, err := m.Job(ctx, id); errors.As(err, &he) && he.Status == 404 {
		return broke(check.OneEnd, "%s acknowledged %s (%s) and knows it no more", m.Name, id, name)
	}
	r.mu.Lock()
	o := r.orders[len(r.orders)-1]
	r.mu.Unlock()
	if !r.untilAcknowledged(ctx, o) {
		return broke(check.NoError, "%s did not answer the repeat of %s", m.Name, name)
	}
	return nil
}

// alone cuts a site off while it owns a job that may have been sent, and has it
// take another.
func alone(ctx context.Context, r *run) error {
	m := r.members[1]
	n := r.number(m)
	// Its only core is taken for a while, so the next job goes to the queue.
	if _, err := r.submit(ctx, n, plan.Job{Name: "first", Count: 1, Length: 4 * time.Second, Home: true}); err != nil {
		return err
	}
	r.say("cut %s", m.Name)
	heal := r.lab.Cut(netlab.Isolate(n, netlab.Any)...)
	defer heal()
	if _, err := r.submit(ctx, n, plan.Job{Name: "sent", Count: 1, Length: time.Second}); err != nil {
		return err
	}
	if err := sleep(ctx, lease+margin); err != nil {
		return err
	}
	o := r.track(plan.Order{Site: n, Key: "own", Jobs: []plan.Job{{
		Name: "own", Count: 1, Length: time.Second,
		OnLoss: check.Fenced, Tries: 1,
	}}})
	call := r.callSubmit(m, o)[0]
	a, err := m.SubmitKeyed(ctx, o.Key, r.specs(o)[0])
	if err != nil || a.Durability != "site" {
		return broke(check.Alone, "%s, cut off, was sent a job: %+v, %v", m.Name, a, err)
	}
	r.acknowledged(o, 0, call, a)
	err = within(ctx, lag, check.Alone, a.ID+" run by its owner alone", func() error {
		job, e := m.Job(ctx, a.ID)
		if e == nil && job.State != "succeeded" {
			e = fmt.Errorf("it is %s (%s)", job.State, job.Reason)
		}
		return e
	})
	if err != nil {
		return err
	}
	r.say("%s ran its own job alone", m.Name)
	return nil
}
