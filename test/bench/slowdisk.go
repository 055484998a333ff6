package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

const (
	// slowClients submit one job after the other, at the brokers that do not lead.
	slowClients = 4
	// healthyFor, slowFor: how long the clients are watched before the disk is slow,
	// and after the handover.
	healthyFor, slowFor = 8 * time.Second, 10 * time.Second
	// handOverLimit bounds the wait for a handover.
	handOverLimit = time.Minute
)

// measureSlowDisk makes the leader's disk slow while clients submit to the others.
func measureSlowDisk(ctx context.Context, env environment, t *table) error {
	program := filepath.Join(filepath.Dir(env.binary), "slowfs")
	if why := whyNoSlowDisks(program); why != "" {
		t.addSheet(sheet{title: "LEFT OUT: a slow disk of the leader: " + why})
		return nil
	}
	for _, by := range []time.Duration{100 * time.Millisecond, time.Second} {
		if err := slowLeader(ctx, env, t, program, by); err != nil {
			return fmt.Errorf("leader's disk at %s a sync: %w", by, err)
		}
	}
	return nil
}

// slowLeader measures one delay on a federation of its own: a handover holds the
// next one off.
func slowLeader(ctx context.Context, env environment, t *table, program string, by time.Duration) (err error) {
	name := "slow-" + by.String()
	disks, err := slowFolders(program, filepath.Join(env.dir, name), siteCount)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(disks)) }()
	fed, err := startWhole(ctx, env, name, siteCount, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	leader, others, err := leadAndOthers(ctx, fed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(disks[leader.Name].set(0), err) }() // before it is stopped
	clients := openLanes(ctx, others)
	defer clients.close()
	began := time.Now()
	if err = pause(ctx, healthyFor); err != nil {
		return err
	}
	slow := time.Now()
	if err = disks[leader.Name].set(by); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, handOverLimit)
	defer cancel()
	missed := awaitNextLeader(waiting, others[0], leader)
	handed := time.Now()
	if missed == nil {
		if err = pause(ctx, slowFor); err != nil {
			return err
		}
	}
	ended := time.Now()
	clients.close()
	title := fmt.Sprintf("leader's disk at %s a sync", by)
	clients.add(t, title+": healthy before", began, slow)
	clients.add(t, title+": slow, before the handover", slow, handed)
	t.add(figure{
		name: title + ": slow → another leader", measured: handed.Sub(slow).Seconds(), unit: "s", aim: aim{below: 30},
		note: "a leader hands over when it was slow for 4 s",
	})
	if missed == nil {
		clients.add(t, title+": slow, after the handover", handed, ended)
	}
	return missed
}

// awaitNextLeader waits until a broker follows another leader.
func awaitNextLeader(ctx context.Context, asked, old *testbed.Site) error {
	return testbed.Await(ctx, "another leader than "+old.Name, func() error {
		st, err := asked.Status(ctx)
		if err == nil && (st.Leader == "" || st.Leader == old.Name) {
			err = fmt.Errorf("%s follows %q", asked.Name, st.Leader)
		}
		return err
	})
}

// clients submit until they are closed, and keep what they have seen.
type clients struct {
	end  context.CancelFunc
	open sync.WaitGroup
	mu   sync.Mutex
	asks []ask
}

func openLanes(ctx context.Context, sites []*testbed.Site) *clients {
	going, end := context.WithCancel(ctx)
	c := &clients{end: end}
	for n := range slowClients {
		c.open.Go(func() {
			for going.Err() == nil {
				a := submitNowhere(going, sites[n%len(sites)])
				c.mu.Lock()
				c.asks = append(c.asks, a)
				c.mu.Unlock()
			}
		})
	}
	return c
}

// close is idempotent.
func (c *clients) close() {
	c.end()
	c.open.Wait()
}

// add tells what was acknowledged in a time, and how long that took.
func (c *clients) add(t *table, name string, from, to time.Time) {
	var took sample
	var local, failed int
	for _, a := range c.asks {
		switch {
		case a.answered.Before(from) || !a.answered.Before(to):
		case a.err != nil:
			failed++
		case a.durability != "federation":
			local++
		default:
			took = append(took, a.answered.Sub(a.sent))
		}
	}
	note := fmt.Sprintf("%d clients at the two others, %d acknowledged by one site only, %d failed", slowClients, local, failed)
	t.add(figure{name: name, measured: float64(len(took)) / to.Sub(from).Seconds(), unit: "acknowledgements/s", note: note})
	t.add(figure{name: name + ", p99", measured: took.quantile(0.99), unit: "ms", note: fmt.Sprintf("p50 %s ms", number(took.quantile(0.5)))})
}
