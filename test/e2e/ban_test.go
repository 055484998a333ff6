package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/test/testbed"
)

// TestBan: electors expel a site whose broker runs, with a task of another site on it. The task runs again elsewhere,
// the others go on, and the site's broker waits and says why. Whoever has the key of gossip that it had hears nobody
// any more. It comes back by itself once they let it in again.
func TestBan(t *testing.T) {
	t.Parallel()
	fed := start(t, 4, 1)
	owner, banned := fed.Sites[0], fed.Sites[3]
	known := keyOfGossip(t, banned)
	spy := listen(t, banned, known)
	hears(t, spy, 3)
	gate := newGated(t)
	spec := gate.spec(4)
	spec.Retry = &testbed.Retry{MaxAttempts: 1, OnLoss: "fenced"}
	job := submit(t, owner, spec)
	awaitRunning(t, owner, job.ID, 4)

	must(t, owner.Propose(within(t), "ban", banned.Name, fed.Sites[1], fed.Sites[2]))
	await(t, "the site is out", func() error {
		info, err := owner.Info(t.Context(), banned.Name)
		if err == nil && info.State != "lost" {
			err = fmt.Errorf("it is %s", info.State)
		}
		return err
	})
	saysItIsExpelled(t, banned)
	if _, err := owner.Invite(within(t), banned.Name); err == nil {
		t.Error("it was invited again")
	}
	gate.open(t)
	awaitEnd(t, owner, job.ID)
	for _, s := range fed.Sites[:3] {
		await(t, s.Name+" has another key of gossip", func() error {
			if now := keyOfGossip(t, s); now.Generation <= known.Generation || now.Key == known.Key {
				return fmt.Errorf("generation %d", now.Generation)
			}
			return nil
		})
	}
	hears(t, spy, 0)
	if now := keyOfGossip(t, banned); now != known {
		t.Errorf("it was told the next key, of generation %d", now.Generation)
	}
	must(t, testbed.AwaitEqualState(within(t), fed.Sites[:3]...))

	must(t, owner.Propose(within(t), "unban", banned.Name, fed.Sites[1], fed.Sites[2]))
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	must(t, testbed.Await(ctx, "it is back", func() error { return banned.Ready(ctx) }))
	awaitEnd(t, banned, submit(t, banned, testbed.Spec{Command: []string{"true"}}).ID)
	agree(t, fed)
}

// awaitVoters waits until so many vote on the log: the log's voters follow the electors once those have caught up.
func awaitVoters(t *testing.T, s *testbed.Site, n int) {
	t.Helper()
	await(t, fmt.Sprint(n, " voters"), func() error {
		st, err := s.Status(t.Context())
		if err == nil && len(st.Voters) != n {
			err = fmt.Errorf("%v vote", st.Voters)
		}
		return err
	})
}

func saysItIsExpelled(t *testing.T, s *testbed.Site) {
	t.Helper()
	await(t, "the broker of "+s.Name+" says why it waits", func() error {
		if err := s.Ready(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "expelled") && !strings.Contains(err.Error(), "banned") {
			return fmt.Errorf("/readyz: %w", err)
		}
		return nil
	})
}

// TestAwayWhileItsInviterWasBanned: a site whose broker is down while the electors expel the one that had invited it
// comes back all the same: whom it knows tells it who the members are.
func TestAwayWhileItsInviterWasBanned(t *testing.T) {
	t.Parallel()
	fed := start(t, 5, 1)
	inviter, others, away := fed.Sites[0], fed.Sites[1:4], fed.Sites[4] // the first one has invited all, and leads
	awaitVoters(t, inviter, 5)
	must(t, away.Kill())
	must(t, others[0].Propose(within(t), "ban", inviter.Name, others[1:]...))
	saysItIsExpelled(t, inviter)
	must(t, fed.Restart(within(t), away))
	awaitEnd(t, away, submit(t, away, testbed.Spec{Command: []string{"true"}, Count: 8}).ID)
	must(t, testbed.AwaitEqualState(within(t), fed.Sites[1:]...))

	must(t, away.Propose(within(t), "unban", inviter.Name, others[:2]...))
	await(t, "it is back", func() error { return inviter.Ready(t.Context()) })
	agree(t, fed)
}

// TestLeaderExpelledEarly: electors expel the leader as soon as it has let them in, when hardly anybody votes on the
// log yet. They hear that it has to wait, and the federation goes on in the end, without it.
func TestLeaderExpelledEarly(t *testing.T) {
	t.Parallel()
	fed := start(t, 4, 1)
	leader, others := fed.Sites[0], fed.Sites[1:]
	refused := 0
	await(t, "the leader is expelled", func() error {
		err := others[0].Propose(t.Context(), "ban", leader.Name, others[1:]...)
		if err != nil && !strings.Contains(err.Error(), "no quorum") {
			t.Fatal(err)
		}
		if err != nil {
			refused++
		}
		return err
	})
	t.Logf("refused %d times", refused)
	saysItIsExpelled(t, leader)
	for _, s := range others {
		awaitEnd(t, s, submit(t, s, testbed.Spec{Command: []string{"true"}, Count: 4}).ID)
	}
	must(t, testbed.AwaitEqualState(within(t), others...))
}
