package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/check"
	"github.com/cloudshare/cloudshare/test/chaos/plan"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// changeMembers expels a site that runs a task for another, gives a second one a new key while it runs a task of the
// expelled one, takes the ban back, and lets a new site join while brokers of those that let it in are dead.
func changeMembers(ctx context.Context, r *run) error {
	foreign, victim, err := r.away(ctx, plan.Job{Name: "foreign", Length: 10 * time.Second, Stubborn: true})
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(r.members[1:r.sites-r.guests]), func(m *member) bool { return m == victim })
	turned, other := rest[0], rest[1]
	own, err := r.lentBy(ctx, victim, turned)
	if err != nil {
		return err
	}
	began := time.Now()
	if err = r.decide(ctx, "ban", victim); err != nil {
		return err
	}
	if err = r.turnKey(ctx, turned); err != nil {
		return err
	}
	if err = r.gone(ctx, victim, own); err != nil {
		return err
	}
	if err = r.moved(ctx, foreign, began, lease+margin+lag); err != nil {
		return err
	}
	if err = r.decide(ctx, "unban", victim); err != nil {
		return err
	}
	if err = r.join(ctx, r.members[len(r.members)-1], other); err != nil {
		return err
	}
	return r.siteState(ctx, r.members[0], victim, readyWait, "alive")
}

// lentBy has a site own a task that another runs, and a job that waits for its own core, whose id is returned.
func (r *run) lentBy(ctx context.Context, owner, at *member) (own string, err error) {
	lent, err := r.submit(ctx, r.number(owner), plan.Job{
		Name: "lent", Count: 1, Length: 8 * time.Second, Sites: []int{r.number(at)},
	})
	if err != nil {
		return "", err
	}
	if _, err = r.attempt(ctx, lent, 1, lag); err != nil {
		return "", err
	}
	return r.neverThere(ctx, owner)
}

// gone waits until a site is lost, and with it its job that waits.
func (r *run) gone(ctx context.Context, m *member, own string) error {
	if err := r.siteState(ctx, r.members[0], m, lag, "lost"); err != nil {
		return err
	}
	return r.withdrawn(ctx, own)
}

// decide has the first site propose something about another, and the others vote for it.
func (r *run) decide(ctx context.Context, what string, of *member) error {
	ctx, cancel := context.WithTimeout(ctx, agreeWithin)
	defer cancel()
	r.say("%s %s", what, of.Name)
	header := http.Header{"Content-Type": {"application/json"}}
	body := fmt.Appendf(nil, `{"what":%q,"site":%q}`, what, of.Name)
	answer, _, err := r.members[0].Do(ctx, http.MethodPost, "/v1/motions", header, body)
	var made motion
	if err == nil {
		err = json.Unmarshal(answer, &made)
	}
	if err == nil {
		err = r.carry(ctx, made, of)
	}
	if err != nil {
		return broke(check.Progress, "%s of %s: %s", what, of.Name, err)
	}
	return nil
}

// carry has all whose brokers run, but whom it is about, vote for a motion of the first site, until it has passed.
func (r *run) carry(ctx context.Context, x motion, of *member) error {
	for _, m := range r.members[1:] {
		if x.State == passed {
			return nil
		}
		if m == of || !m.up() {
			continue
		}
		state, err := vote(ctx, m, x.Number)
		var refused *testbed.HTTPError
		switch {
		case errors.As(err, &refused) && refused.Status == http.StatusForbidden: // it has no vote any more
		case err != nil:
			return fmt.Errorf("%s votes: %w", m.Name, err)
		default:
			x.State = state
		}
	}
	if x.State != passed {
		return fmt.Errorf("motion %d is %s", x.Number, x.State)
	}
	return nil
}

// turns is how often a key is asked for whose replacement may have been lost before it was ordered.
const turns = 3

// turnKey gives a site a new key and starts its broker again: before, the others do not know it. What it runs goes on.
// If the answer is lost, since they close its connections by that, it does what the command says.
func (r *run) turnKey(ctx context.Context, m *member) error {
	for range turns {
		r.say("%s gets another key", m.Name)
		said := m.command(ctx, "key", "rotate", "--data-dir", m.data())
		if said != nil && !strings.Contains(said.Error(), "restart the broker") {
			return broke(check.NoError, "%s", said)
		}
		if err := r.startAgain(ctx, m); err != nil {
			return err
		}
		if said == nil {
			return nil
		}
		r.say("%s", said)
		if _, err := os.Stat(filepath.Join(m.data(), "key.next")); errors.Is(err, os.ErrNotExist) {
			return nil // the members had it
		}
	}
	return broke(check.Progress, "%s did not get another key in %d tries", m.Name, turns)
}

// startAgain kills a site's broker and starts it again.
func (r *run) startAgain(ctx context.Context, m *member) error {
	if err := m.end(syscall.SIGKILL); err != nil {
		return err
	}
	if err := m.launch(); err != nil {
		return err
	}
	if err := m.awaitReady(ctx); err != nil {
		return broke(check.Progress, "%s is not ready again: %s", m.Name, err)
	}
	return nil
}

// command runs one of the operator's at a member's host.
func (m *member) command(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, agreeWithin)
	defer cancel()
	args = append(args, "--addr", m.URL.String(), "--token-file", m.TokenFile())
	cmd := exec.CommandContext(ctx, m.opts.binary, args...)
	var out bytes.Buffer
	// The network is made of namespaces of this machine.
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &out, append(cleanEnv(os.Environ()), "CLOUDSHARE_PLAIN=1")
	err := m.host.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("cloudshare %q at %s: %w: %s", args, m.Name, err, &out)
	}
	return nil
}

// join invites a site while another's broker is dead, and starts its broker as the one that has invited it dies, too:
// too few are left to decide anything. The site is in once they are back.
func (r *run) join(ctx context.Context, guest, dead *member) error {
	home := r.members[0]
	r.say("kill %s, and have %s invite %s", dead.Name, home.Name, guest.Name)
	if err := dead.end(syscall.SIGKILL); err != nil {
		return err
	}
	way, err := r.admit(ctx, guest)
	if err != nil {
		return broke(check.Progress, "the invitation of %s: %s", guest.Name, err)
	}
	r.say("kill %s, and start %s", home.Name, guest.Name)
	if err = home.end(syscall.SIGKILL); err != nil {
		return err
	}
	if err = guest.launch(way...); err != nil {
		return err
	}
	if err = sleep(ctx, electionWithin); err != nil {
		return err
	}
	if err = r.launchAll(ctx); err != nil {
		return err
	}
	r.say("%s is in", guest.Name)
	return nil
}

// admit has the first site invite another and the others agree; it returns the arguments by which that joins.
func (r *run) admit(ctx context.Context, guest *member) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, agreeWithin)
	defer cancel()
	way, err := r.invite(ctx, guest.Name)
	if err != nil {
		return nil, err
	}
	open, err := r.members[0].Motions(ctx, "open")
	if err != nil {
		return nil, err
	}
	if len(open) != 1 {
		return nil, fmt.Errorf("%d motions are open: %+v", len(open), open)
	}
	return way, r.carry(ctx, motion{Number: open[0].Number, State: open[0].State}, guest)
}
