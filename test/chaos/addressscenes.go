package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/netlab"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
)

// allVoters waits until every site votes.
func (r *run) allVoters(ctx context.Context) error {
	return within(ctx, readyWait, check.Progress, "a vote of every site", func() error {
		st, err := r.members[0].Status(ctx)
		if err == nil && len(st.Voters) < len(r.members) {
			err = fmt.Errorf("%v vote", st.Voters)
		}
		return err
	})
}

// minority is how long a minority is asked whether it acknowledges anything.
const minority = 6 * time.Second

// fewAcknowledge asks the brokers that are left of a federation without a quorum
// to take jobs. None may be acknowledged as the federation's.
func (r *run) fewAcknowledge(ctx context.Context, left ...*member) error {
	until := time.Now().Add(minority)
	for i := 0; time.Now().Before(until); i++ {
		m := left[i%len(left)]
		// It waits for a site that is away, so no home run makes up for the quorum.
		o := r.track(plan.Order{Site: r.number(m), Key: fmt.Sprintf("few-%d", i), Jobs: []plan.Job{{
			Name: fmt.Sprintf("few-%d", i), Count: 1, Length: time.Second, OnLoss: check.Fenced, Tries: 1, Sites: []int{3},
		}}})
		call := r.callSubmit(m, o)[0]
		wait, cancel := context.WithTimeout(ctx, time.Second)
		a, err := m.SubmitKeyed(wait, o.Key, r.specs(o)[0])
		cancel()
		if err == nil && a.ID != "" {
			r.acknowledged(o, 0, call, a)
		}
		if err == nil && a.Durability == "federation" {
			return broke(check.Majority, "%s acknowledged %s as the federation's: %d of %d voters are there", m.Name, a.ID, len(left), len(r.members))
		}
	}
	r.say("%d brokers acknowledged nothing as the federation's", len(left))
	return nil
}

// placeAll has the clients of orders whose answers did not come go on, as they do.
func (r *run) placeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agreeWithin)
	defer cancel()
	r.mu.Lock()
	orders := append([]*order(nil), r.orders...)
	r.mu.Unlock()
	for _, o := range orders {
		if len(o.ids[0]) == 0 && !r.untilAcknowledged(ctx, o) {
			return broke(check.Progress, "%s was not acknowledged within %s", o.Key, agreeWithin)
		}
	}
	return nil
}

// launchAll starts the brokers that are down, and waits for them.
func (r *run) launchAll(ctx context.Context) error {
	for _, m := range r.members {
		if err := m.launch(); err != nil {
			return err
		}
	}
	for _, m := range r.members {
		if err := m.awaitReady(ctx); err != nil {
			return broke(check.Progress, "%s is not ready again: %s", m.Name, err)
		}
	}
	r.compareStates(ctx)
	return nil
}

func killAll(list []*member) error {
	var errs []error
	for _, m := range list {
		errs = append(errs, m.end(syscall.SIGKILL))
	}
	return errors.Join(errs...)
}

// phantom has one voter of five advertise the address of another, as a name. Who
// then counts that other one twice sees a majority where three are dead.
func phantom(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	m := r.members[4]
	right, wrong := m.place, m.place
	wrong.advertise = hostName(2)
	r.say("%s advertises the address of site-2", m.Name)
	if err := m.restartAt(ctx, wrong, 0); err != nil {
		return err
	}
	m.listening(ctx)
	if err := sleep(ctx, lag); err != nil { // it has told the leader, if it can
		return err
	}
	r.say("kill three of five")
	if err := killAll(r.members[2:]); err != nil {
		return err
	}
	if err := r.fewAcknowledge(ctx, r.members[:2]...); err != nil {
		return err
	}
	m.place = right
	if err := m.configure(); err != nil {
		return err
	}
	if err := r.launchAll(ctx); err != nil {
		return err
	}
	return r.placeAll(ctx)
}

// reusedAddress gives the address of a dead voter to a living one, as networks do
// that hand out addresses. Who then takes one for both sees a majority where
// three of five are dead.
func reusedAddress(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	r.say("kill site-4 and site-5")
	if err := killAll(r.members[3:]); err != nil {
		return err
	}
	m := r.members[1]
	own := m.host
	r.say("%s moves to the machine of site-4", m.Name)
	if err := m.moveTo(ctx, r.members[3].host, hostName(4)); err != nil {
		return err
	}
	if err := m.awaitReady(ctx); err != nil {
		return broke(check.Progress, "%s is not ready where it moved to: %s", m.Name, err)
	}
	r.say("kill site-3")
	if err := killAll(r.members[2:3]); err != nil {
		return err
	}
	if err := r.fewAcknowledge(ctx, r.members[:2]...); err != nil {
		return err
	}
	if err := m.moveTo(ctx, own, ""); err != nil {
		return err
	}
	if err := r.launchAll(ctx); err != nil {
		return err
	}
	return r.placeAll(ctx)
}

// moveTo restarts the broker on another host, with its data.
func (m *member) moveTo(ctx context.Context, h *netlab.Host, advertise string) error {
	if err := m.end(syscall.SIGTERM); err != nil {
		return err
	}
	m.host, m.place.advertise = h, advertise
	m.URL = &url.URL{Scheme: "http", Host: address(h, httpPort)}
	m.HTTP = &http.Client{Timeout: answerWait, Transport: &http.Transport{DialContext: h.Dial, MaxIdleConnsPerHost: 8}}
	if err := m.configure(); err != nil {
		return err
	}
	if err := m.launch(); err != nil {
		return err
	}
	m.listening(ctx)
	return nil
}

// typo restarts a voter with a mistyped address. It is still where it was: with
// it and the leader there is a quorum of three when the third dies. Put right, it
// is at home again at once.
func typo(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	m := r.members[1]
	right, wrong := m.place, m.place
	wrong.advertise = nobody
	r.say("%s advertises an address that nobody has", m.Name)
	if err := m.restartAt(ctx, wrong, 0); err != nil {
		return err
	}
	m.listening(ctx)
	if err := sleep(ctx, lag); err != nil { // it has told the leader, if it can
		return err
	}
	r.say("kill site-3")
	if err := killAll(r.members[2:]); err != nil {
		return err
	}
	if _, err := r.submit(ctx, 1, plan.Job{Name: "meanwhile", Count: 1, Length: time.Second, Sites: []int{3}}); err != nil {
		return err
	}
	for range 2 {
		r.say("%s is restarted with its own address", m.Name)
		if err := m.restartAt(ctx, right, 0); err != nil {
			return err
		}
		if err := m.awaitReady(ctx); err != nil {
			return broke(check.Progress, "%s is not ready with its right address: %s", m.Name, err)
		}
	}
	return r.launchAll(ctx)
}

// spelled writes a voter's address in every way; each is the same broker. With
// each of them it and the leader are a quorum of three.
func spelled(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	m := r.members[1]
	for i, text := range spellings(r.number(m), m.host.Addr) {
		at := m.place
		at.advertise = text
		r.say("%s advertises %q", m.Name, text)
		if err := m.restartAt(ctx, at, 0); err != nil {
			return err
		}
		if err := m.awaitReady(ctx); err != nil {
			return broke(check.Progress, "%s is not ready as %q: %s", m.Name, text, err)
		}
		if err := killAll(r.members[2:]); err != nil {
			return err
		}
		if _, err := r.submit(ctx, 1, plan.Job{
			Name: fmt.Sprintf("spelled-%d", i+1), Count: 1, Length: 100 * time.Millisecond,
			Sites: []int{2},
		}); err != nil {
			return err
		}
		if err := r.launchAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// movedAll restarts all brokers on other peer ports at once: nobody is where the
// others know it. It does so twice, the second time back.
func movedAll(ctx context.Context, r *run) error {
	if err := r.allVoters(ctx); err != nil {
		return err
	}
	for i := range 2 {
		r.say("all brokers move")
		if err := r.move(ctx, plan.Fault{Kind: plan.MoveAll, For: time.Second}, r.members); err != nil {
			return err
		}
		if err := r.launchAll(ctx); err != nil {
			return err
		}
		if _, err := r.submit(ctx, 1, plan.Job{
			Name: fmt.Sprintf("moved-%d", i+1), Count: 1, Length: time.Second,
			Sites: []int{2},
		}); err != nil {
			return err
		}
	}
	return nil
}
