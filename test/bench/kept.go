package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// keptBags are run with all sites and with one down. The sleeps are bound by
// the cores that the sites lend, the others by what the machine can start.
var keptBags = []struct {
	tasks   int
	command []string
}{
	{400, []string{"sleep", "0.2"}},
	{2 * shortTasks, []string{"/bin/true"}},
}

// leastKept of the rate: four fifths of the cores are left, less the noise.
const leastKept = 0.75

// measureKept compares tasks a second before and after one of five is lost.
func measureKept(ctx context.Context, env environment, t *table) (err error) {
	fed, err := startWhole(ctx, env, "kept", lossSites, coresPerSite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fed.Stop()) }()
	lead, others, err := leadAndOthers(ctx, fed)
	if err != nil {
		return err
	}
	home, victim := others[0], others[1]
	before, err := bagRates(ctx, home)
	if err != nil {
		return err
	}
	if err = lose(ctx, lead, victim); err != nil {
		return err
	}
	after, err := bagRates(ctx, home)
	if err != nil {
		return err
	}
	for i, b := range keptBags {
		t.add(figure{
			name:     fmt.Sprintf("one of %d down: %d × %s", lossSites, b.tasks, strings.Join(b.command, " ")),
			measured: after[i], limit: before[i], unit: "tasks/s", aim: aim{minRatio: leastKept},
			note: "limit: with all sites; four fifths of the cores are left",
		})
	}
	return nil
}

// bagRates runs each bag and returns its tasks a second.
func bagRates(ctx context.Context, s *testbed.Site) ([]float64, error) {
	var rates []float64
	for _, b := range keptBags {
		began := time.Now()
		if err := runBag(ctx, s, b.tasks, b.command...); err != nil {
			return nil, fmt.Errorf("run %d × %s: %w", b.tasks, strings.Join(b.command, " "), err)
		}
		rates = append(rates, float64(b.tasks)/time.Since(began).Seconds())
	}
	return rates, nil
}

// lose kills a site and waits until the federation has given it up.
func lose(ctx context.Context, lead, victim *testbed.Site) error {
	if err := victim.Kill(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return testbed.Await(ctx, "loss of "+victim.Name, func() error {
		info, err := lead.Info(ctx, victim.Name)
		if err == nil && info.State != "lost" {
			err = fmt.Errorf("it is %s", info.State)
		}
		return err
	})
}
