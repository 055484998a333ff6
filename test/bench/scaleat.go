package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// grow has one site join, and then all others of this size at once.
func (s step) grow(ctx context.Context) error {
	more := s.sites - len(s.list)
	if more <= 0 {
		return nil
	}
	ways, err := s.invite(ctx, 1)
	if err != nil {
		return err
	}
	one, err := s.join(ctx, ways)
	if err != nil {
		return err
	}
	s.found[rowJoinOne] = one.alive.quantile(1) / 1000
	if more == 1 {
		return nil
	}
	began := time.Now()
	if ways, err = s.invite(ctx, more-1); err != nil {
		return err
	}
	s.found[rowInvite] = ms(time.Since(began)) / float64(more-1)
	all, err := s.join(ctx, ways)
	if err != nil {
		return err
	}
	s.found[rowJoined] = float64(more - 1)
	s.found[rowJoinAlive], s.found[rowJoinReady] = all.alive.quantile(1)/1000, all.ready.quantile(1)/1000
	return nil
}

// used is what each broker has used of the cores so far, by site.
func (s step) used(of []*testbed.Site) (map[*testbed.Site]time.Duration, error) {
	out := make(map[*testbed.Site]time.Duration, len(of))
	for _, site := range of {
		var err error
		if out[site], err = timeOf(site); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// contactsAsked is how often others have asked a broker whether it is there.
const contactsAsked = `cloudshare_http_request_seconds_count{method="GET",route="/v1/contact",status="200"}`

// settle waits until sites that have joined, and all others, have asked each other whether they reach each other.
func (s step) settle(ctx context.Context) error {
	const look, few = 3 * time.Second, 4
	ends := []*testbed.Site{s.Sites[0], s.Sites[len(s.Sites)-1]}
	last := []float64{0, 0}
	for began := time.Now(); time.Since(began) < s.plan.settle; {
		if err := pause(ctx, min(look, s.plan.settle)); err != nil {
			return err
		}
		settled := true
		for i, site := range ends {
			asked, err := metricsOf(ctx, site, contactsAsked)
			if err != nil { // nobody has yet
				settled = false
				continue
			}
			settled = settled && asked[0]-last[i] < few
			last[i] = asked[0]
		}
		if settled {
			return nil
		}
	}
	return nil
}

// rest looks at brokers that have nothing to do.
func (s step) rest(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	lead, _, others, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if err = s.memory(lead, others); err != nil {
		return err
	}
	was, err := s.spent(ctx, append([]*testbed.Site{lead}, s.Sites...))
	if err != nil {
		return err
	}
	packets, err := listenIn(s.lab.Hosts[0], crowdPort, len(s.list))
	if err != nil {
		return err
	}
	began := time.Now()
	err = pause(ctx, s.plan.window)
	took := time.Since(began)
	counted, lost := packets.end()
	if err = errors.Join(err, lost); err != nil {
		return err
	}
	now, err := s.spent(ctx, append([]*testbed.Site{lead}, s.Sites...))
	if err != nil {
		return err
	}
	s.found[rowEntries] = (now.entries - was.entries) / took.Seconds()
	s.shares(lead, was.used, now.used, took)
	s.traffic(lead, counted, took)
	return nil
}

func (s step) memory(lead *testbed.Site, others []*testbed.Site) error {
	m, err := memoryOf(lead)
	if err != nil {
		return err
	}
	s.found[rowOwnLead] = m.own
	var own, share []float64
	for _, site := range others {
		if m, err = memoryOf(site); err != nil {
			return err
		}
		own, share = append(own, m.own), append(share, m.share)
	}
	if len(own) > 0 {
		s.found[rowOwn], s.found[rowShare] = median(own), median(share)
	}
	return nil
}

// shares adds what was used of the cores meanwhile.
func (s step) shares(lead *testbed.Site, before, after map[*testbed.Site]time.Duration, took time.Duration) {
	var all, voters, others time.Duration
	for i, site := range s.Sites {
		used := after[site] - before[site]
		all += used
		switch {
		case site == lead:
			s.found[rowRestLead] = 100 * used.Seconds() / took.Seconds()
		case i < crowdVoters:
			voters += used
		default:
			others += used
		}
	}
	share := func(d time.Duration, n int) float64 { return 100 * d.Seconds() / took.Seconds() / float64(n) }
	s.found[rowRestAll], s.found[rowRestVoter] = share(all, 1), share(voters, crowdVoters-1)
	if n := len(s.Sites) - crowdVoters; n > 0 {
		s.found[rowRestOther] = share(others, n)
	}
}

// traffic adds what was sent meanwhile.
func (s step) traffic(lead *testbed.Site, l links, took time.Duration) {
	rate := func(n int) float64 { return float64(n) / took.Seconds() }
	n := float64(len(s.Sites))
	s.found[rowGossip], s.found[rowGossipCount] = rate(l.gossip.bytes)/n, rate(l.gossip.packets)/n
	var all traffic
	var others []float64
	for i, site := range s.Sites {
		t := l.calls[i]
		all.bytes, all.packets = all.bytes+t.bytes, all.packets+t.packets
		switch {
		case site == lead:
			s.found[rowCalls] = rate(t.bytes)
		case i >= crowdVoters:
			others = append(others, rate(t.bytes))
		}
	}
	s.found[rowAllCalls], s.found[rowAllCount] = rate(all.bytes), rate(all.packets)
	if len(others) > 0 {
		s.found[rowFollow] = median(others)
	}
}

// work has a site that does not vote submit, and run tasks everywhere.
func (s step) work(ctx context.Context) error {
	lead, at, others, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		at = others[0]
	}
	began := time.Now()
	page, _, err := at.Do(ctx, http.MethodGet, "/v1/sites", nil, nil)
	if err != nil {
		return err
	}
	s.found[rowPage], s.found[rowPageBytes] = ms(time.Since(began)), float64(len(page))
	if err := s.submissions(ctx, at); err != nil {
		return err
	}
	return s.bag(ctx, lead, at)
}

// bag runs short tasks, and adds what that cost.
func (s step) bag(ctx context.Context, lead, at *testbed.Site) error {
	pair := []*testbed.Site{lead, at}
	was, err := s.spent(ctx, pair)
	if err != nil {
		return err
	}
	packets, err := listenIn(s.lab.Hosts[0], crowdPort, len(s.list))
	if err != nil {
		return err
	}
	began := time.Now()
	err = runBag(ctx, at, s.plan.tasks, "/bin/true")
	took := time.Since(began)
	sent, lost := packets.end()
	if err != nil {
		return err
	}
	now, err := s.spent(ctx, pair)
	if err != nil {
		return err
	}
	s.found[rowTasks], s.found[rowTasksTime] = float64(s.plan.tasks), took.Seconds()
	s.found[rowTasksCount] = now.entries - was.entries
	s.found[rowTasksLead] = (now.used[lead] - was.used[lead]).Seconds()
	s.found[rowTasksOther] = (now.used[at] - was.used[at]).Seconds()
	if lost != nil { // the machine was too busy to count
		fmt.Fprintf(s.env.notes, "%d sites, short tasks: %s\n", s.sites, lost)
		return nil
	}
	s.found[rowTasksSent] = float64(sent.total()) / 1e6
	return nil
}

// spent is what the leader, the first of some sites, has ordered so far, and all of them have used of the cores.
type spent struct {
	entries float64
	used    map[*testbed.Site]time.Duration
}

func (s step) spent(ctx context.Context, of []*testbed.Site) (out spent, err error) {
	entries, err := metricsOf(ctx, of[0], "cloudshare_entries_applied")
	if err != nil {
		return out, err
	}
	out.entries = entries[0]
	out.used, err = s.used(of)
	return out, err
}

// submissions are of jobs that no site may run, and are cancelled.
func (s step) submissions(ctx context.Context, at *testbed.Site) error {
	var took sample
	for range pick(s.env, 30, 5) {
		began := time.Now()
		a, err := at.Submit(ctx, waitingSpec)
		if err != nil {
			return err
		}
		took = append(took, time.Since(began))
		if err := at.Cancel(ctx, a.ID); err != nil {
			return err
		}
	}
	s.found[rowSubmit] = took.quantile(0.5)
	return nil
}

// loss kills the last site, has its state written, and starts it again.
func (s step) loss(ctx context.Context) error {
	lead, victim, others, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		victim = others[len(others)-1]
	}
	if err := s.kill(ctx, lead, victim); err != nil {
		return err
	}
	if err := s.export(ctx, victim); err != nil {
		return err
	}
	began := time.Now()
	if err := s.launch(s.list[s.number(victim)]); err != nil {
		return err
	}
	if err := s.awaitReady(ctx, s.list[s.number(victim)]); err != nil {
		return err
	}
	s.found[rowRestart] = time.Since(began).Seconds()
	return nil
}

// kill kills a site, and waits until all others have that it is lost.
func (s step) kill(ctx context.Context, lead, victim *testbed.Site) error {
	began := time.Now()
	if err := victim.Kill(); err != nil {
		return err
	}
	<-s.list[s.number(victim)].ended
	for state := "alive"; state != "lost"; {
		if err := pause(ctx, crowdLook); err != nil {
			return fmt.Errorf("it is %s: %w", state, err)
		}
		info, err := lead.Info(ctx, victim.Name)
		if err != nil {
			return err
		}
		if state == "alive" && info.State != state {
			s.found[rowSuspect] = time.Since(began).Seconds()
		}
		state = info.State
	}
	st, err := lead.Status(ctx)
	if err != nil {
		return err
	}
	for _, site := range s.Sites {
		if site == victim {
			continue
		}
		err := testbed.Await(ctx, site.Name+" has heard of the loss", func() error {
			own, err := site.Status(ctx)
			if err == nil && own.Index < st.Index {
				err = fmt.Errorf("it is at entry %d, the leader at %d", own.Index, st.Index)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	s.found[rowLost] = time.Since(began).Seconds()
	return nil
}

// export writes the state of a broker that does not run.
func (s step) export(ctx context.Context, of *testbed.Site) error {
	file, data := filepath.Join(s.dir, "state"), filepath.Join(of.Dir, "data")
	began := time.Now()
	if out, err := exec.CommandContext(ctx, s.env.binary, "state", "export", file, "--data-dir", data).CombinedOutput(); err != nil {
		return fmt.Errorf("export state of %s: %w: %s", of.Name, err, out)
	}
	s.found[rowExport] = ms(time.Since(began))
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	s.found[rowState] = float64(info.Size())
	if out, err := exec.CommandContext(ctx, s.env.binary, "state", "reopen", "--data-dir", data).CombinedOutput(); err != nil {
		return fmt.Errorf("reopen data of %s: %w: %s", of.Name, err, out)
	}
	return os.Remove(file)
}
