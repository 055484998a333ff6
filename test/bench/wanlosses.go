package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// farAskEvery is how often a client sends the next submission while the leader is killed.
const farAskEvery = 20 * time.Millisecond

// measureFarLeader kills the leader and times until others' submissions are committed again.
func measureFarLeader(ctx context.Context, env environment, t *table) error {
	layouts := []layout{evenLayout(farCount(env), 20*time.Millisecond)}
	if !env.quick {
		layouts = append(layouts, evenLayout(farCount(env), 100*time.Millisecond),
			evenLayout(farCount(env), 200*time.Millisecond))
	}
	return eachScene(ctx, env, t, layouts, func(ctx context.Context, sc *scene) error { return sc.loseLeaders(ctx) })
}

func (sc *scene) loseLeaders(ctx context.Context) error {
	var all outage
	kills := pick(sc.env, 3, 1)
	if sc.name == aimed(sc.env) {
		kills = pick(sc.env, 5, 1)
	}
	for range kills {
		if err := sc.loseLeader(ctx, &all); err != nil {
			return fmt.Errorf("kill leader %d of %d: %w", len(all.gaps)+1, kills, err)
		}
	}
	sc.add("leader killed → acknowledged, p50", figure{
		measured: all.gaps.quantile(0.5) / 1000, unit: "s", aim: aim{atMost: 3.5},
		note: fmt.Sprintf("%d kills, %s to %s; of %d requests %d failed", len(all.gaps), number(all.gaps.quantile(0)/1000),
			number(all.gaps.quantile(1)/1000), all.asked, all.failed),
	})
	return nil
}

func (sc *scene) loseLeader(ctx context.Context, all *outage) error {
	return loseLead(ctx, &sc.Federation, farAskEvery, 0, all, func(lead *testbed.Site) error {
		return sc.again(ctx, lead)
	})
}

// measureFarSite kills a site that runs two tasks of another, and times each until it runs elsewhere.
func measureFarSite(ctx context.Context, env environment, t *table) error {
	l := evenLayout(farCount(env), pick(env, 100*time.Millisecond, 20*time.Millisecond))
	return eachScene(ctx, env, t, []layout{l}, func(ctx context.Context, sc *scene) (err error) {
		marks, err := listenStarts(env)
		if err != nil {
			return err
		}
		defer marks.close()
		moved := map[string]sample{}
		for i := range pick(env, 2, 1) {
			if err := sc.loseSite(ctx, marks, i, moved); err != nil {
				return fmt.Errorf("kill site %d: %w", i+1, err)
			}
		}
		sc.addMoved("immediate", moved, 5*time.Second)
		sc.addMoved("fenced", moved, farLease(env)+2*time.Second)
		return nil
	})
}

func (sc *scene) addMoved(onLoss string, moved map[string]sample, most time.Duration) {
	took := moved[onLoss]
	sc.add("site killed → its "+onLoss+" task runs elsewhere", figure{
		measured: took.quantile(0.5) / 1000, unit: "s", aim: aim{atMost: most.Seconds()},
		note: fmt.Sprintf("%d kills, lease %s, at most %s", len(took), farLease(sc.env), number(took.quantile(1)/1000)),
	})
}

func (sc *scene) loseSite(ctx context.Context, marks *starts, i int, moved map[string]sample) error {
	lead, others, err := leadAndOthers(ctx, &sc.Federation)
	if err != nil {
		return err
	}
	at := func(n int) *testbed.Site { return others[(i+n)%len(others)] }
	victim, spare, owner := at(0), at(1), at(2)
	if owner == victim { // there are but three sites
		owner = lead
	}
	jobs, err := placeForeign(ctx, owner, victim, spare, farCores, sc.env.stamp, marks)
	if err != nil {
		return err
	}
	err = loseExecutor(ctx, jobs, owner, victim, spare, marks, 3*farLease(sc.env), moved)
	if err != nil {
		return err
	}
	return sc.again(ctx, victim)
}

// measureFarNoise counts changes of the leader and sites given up while links lose and vary; nobody fails.
func measureFarNoise(ctx context.Context, env environment, t *table) error {
	l := noisy(evenLayout(farCount(env), pick(env, 100*time.Millisecond, 20*time.Millisecond)))
	return eachScene(ctx, env, t, []layout{l}, func(ctx context.Context, sc *scene) error {
		before, err := sc.follower.Status(ctx)
		if err != nil {
			return err
		}
		lost, window := 0, pick(env, time.Minute, time.Second)
		var took sample
		for began := time.Now(); time.Since(began) < window; {
			a := submitNowhere(ctx, sc.follower)
			if a.err != nil {
				return a.err
			}
			took = append(took, a.answered.Sub(a.sent))
			if allPresent(ctx, &sc.Federation, before.Leader) != nil {
				lost++
			}
		}
		after, err := sc.follower.Status(ctx)
		if err != nil {
			return err
		}
		note := fmt.Sprintf("in %s, %d looks", window, len(took))
		sc.add("new terms, nobody fails", figure{measured: float64(after.Term - before.Term), aim: aim{none: true}, note: note})
		sc.add("looks at a site given up", figure{measured: float64(lost), aim: aim{none: true}, note: note})
		sc.add("follower, 1 client, p50", figure{measured: took.quantile(0.5), limit: ms(sc.submitted(sc.follower)), unit: "ms"})
		return nil
	})
}
