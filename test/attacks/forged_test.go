//go:build attacks

package attacks

import (
	"slices"
	"strconv"
	"testing"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/enroll"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/identity"
	"github.com/cloudshare/cloudshare/node/invitation"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// running has a task of a site run at another one until the test ends, and returns its attempt: one that the state
// knows, as it does none at its own site.
func running(t *testing.T, s *testbed.Site) command.AttemptRef {
	t.Helper()
	i := slices.Index(shared.Sites, s)
	at := shared.Sites[(i+1)%len(shared.Sites)]
	return begun(t, s, testbed.Spec{
		Command: []string{"/bin/sleep", "600"}, Sites: &testbed.Where{Only: []string{at.Name}},
	})
}

// begun has a task run until the test ends, and returns its attempt.
func begun(t *testing.T, s *testbed.Site, spec testbed.Spec) command.AttemptRef {
	t.Helper()
	a, err := s.Submit(within(t), spec)
	must(t, err)
	t.Cleanup(func() { cancel(t, s, a.ID) })
	await(t, "a running task", func() error {
		job, err := s.Job(t.Context(), a.ID)
		if err == nil && job.Counts["running"] == 1 {
			return nil
		}
		return errNotYet
	})
	return attemptOf(t, s, a.ID)
}

// attemptOf returns the attempt of a job's first task that is under way, or was the last.
func attemptOf(t *testing.T, s *testbed.Site, id string) (ref command.AttemptRef) {
	t.Helper()
	tasks, err := s.Tasks(within(t), id)
	must(t, err)
	token, err := tasks[0].Token.Int64()
	must(t, err)
	ref.Job, err = command.ParseJobID(id)
	must(t, err)
	ref.Attempt, ref.Token = uint32(tasks[0].Attempt), uint64(token)
	return ref
}

// forgeries are commands of each kind, in whosever name they are sent: valid ones, so that nothing but their author is
// wrong with them.
func forgeries(t *testing.T, victim *testbed.Site) map[command.Kind]command.Body {
	t.Helper()
	ref := running(t, victim)
	info, err := shared.Sites[0].Info(within(t), victim.Name)
	must(t, err)
	st, err := victim.Status(within(t))
	must(t, err)
	key := identity.Generate()
	v := &invitation.Invitation{Site: "forged", Federation: keyOf(t, victim).Group, Seed: [32]byte{1}}
	params := command.DefaultParams()
	params.DepartureMs++
	bodies := map[command.Kind]command.Body{}
	for _, b := range []command.Body{
		&command.Genesis{Federation: [16]byte{1}, Params: params, Founder: signature.Key(key.Public())},
		&command.Register{Node: key.Public().Node(), Boot: [16]byte{1}, MaxVersion: fsm.Version},
		&command.Submit{Jobs: []command.JobSpec{{
			Num: 1 << 40, Count: 1, Need: command.Resources{MilliCPU: 1000}, MaxAttempts: 1,
		}}},
		&command.Offer{Version: 1 << 40},
		&command.Started{Attempts: []command.StartedAttempt{{AttemptRef: ref}}},
		&command.Complete{Attempts: []command.Ended{{AttemptRef: ref, Ran: true, RunMs: 1}}},
		&command.Decline{Attempts: []command.AttemptRef{ref}, Reason: "forged"},
		&command.Cancel{Job: ref.Job, Task: -1},
		&command.Usage{Batch: 1, Rows: []command.UsageRow{{Job: 1, Need: command.Resources{MilliCPU: 1000}, RunMs: 1}}},
		&command.SiteLost{Site: victim.Name, Incarnation: info.Incarnation, Term: st.Term},
		&command.Forget{Site: victim.Name},
		&command.SetParams{Params: params},
		&command.Suspect{Site: victim.Name, Incarnation: info.Incarnation, On: true},
		&command.Addresses{HTTP: "127.0.0.1:1", Peer: "127.0.0.1:1", Gossip: "127.0.0.1:1"},
		&command.Leave{},
		&command.Bound{Attempts: []command.BoundAttempt{{AttemptRef: ref, BoundMs: 1}}},
		&command.Raise{Version: fsm.Version + 1},
		&command.Recover{Epoch: 7},
		&command.Close{Why: command.ClosedTrouble},
		&command.Invite{Key: signature.Key(key.Public()), Site: "forged", ForMs: 60_000},
		&command.Revoke{Key: signature.Key(key.Public())},
		enroll.Admission(v, key),
		&command.Rekey{Site: victim.Name, Key: signature.Key(key.Public())},
		&command.Motion{What: command.MotionBan, Site: victim.Name},
		&command.Vote{Motion: 1, Yes: true},
		&command.Renice{Jobs: []command.Nice{{Num: ref.Job.Num, Nice: command.MaxNice}}},
		&command.GossipKey{Term: st.Term, Generation: 2, Key: [32]byte{7}},
		&command.Lead{Term: st.Term},
		&command.Deliver{Attempts: []command.Delivered{{AttemptRef: ref, Outcome: command.DeliveryLost}}},
		&command.Ahead{IdleMs: 1000},
		&command.HandBack{Attempts: []command.AttemptRef{ref}},
		&command.Release{Jobs: []command.JobGates{{Num: ref.Job.Num, Runs: []command.GateRun{{
			To: 1, Attempt: command.AnyAttempt, Do: command.GateCancel, Reason: "forged",
		}}}}},
		&command.Prioritize{Jobs: []command.Priority{{Num: ref.Job.Num, Priority: -command.MaxPriority}}},
		&command.Orphans{Attempts: []command.Ended{{AttemptRef: ref, Outcome: command.Orphaned, RunMs: 1}}},
	} {
		c := command.Command{ID: command.ID{Site: victim.Name, Incarnation: 1, Seq: 1}, Body: b}
		if c.Validate() != nil {
			t.Fatalf("%T: %v", b, c.Validate())
		}
		bodies[b.Kind()] = b
	}
	for k := command.KindGenesis; k <= command.LastKind; k++ {
		if bodies[k] == nil {
			t.Errorf("no forgery of kind %d", k)
		}
	}
	return bodies
}

// TestForgedInAnothersName: the leader orders nothing that a member says in another's name, of whatever kind.
func TestForgedInAnothersName(t *testing.T) {
	attacked(t)
	who := mallory(t)
	for _, victim := range shared.Sites {
		info, err := shared.Sites[0].Info(within(t), victim.Name)
		must(t, err)
		for kind, body := range forgeries(t, victim) {
			id := command.ID{Site: victim.Name, Incarnation: info.Incarnation, Seq: 1 << 30}
			if kind == command.KindRegister {
				id.Incarnation, id.Seq = 0, 0
			}
			outcome, err := who.order(t, command.Command{ID: id, Ack: id.Seq - min(1, id.Seq), Body: body})
			if err != nil || outcome != rejected {
				t.Errorf("%T of %s: %d, %v", body, victim.Name, outcome, err)
			}
		}
	}
	if outcome, err := who.order(t, who.own(&command.Offer{Version: 1})); err != nil || outcome != relay.Ordered {
		t.Errorf("its own offer: %d, %v", outcome, err) // so the others were rejected for their names
	}
}

// TestForgedSignatures: what a member has not signed for this federation, as it stands, has no effect, though its
// connection is proven. The first such call may be ordered, since the leader verifies while it is written; then the
// leader verifies first.
func TestForgedSignatures(t *testing.T) {
	attacked(t)
	who := mallory(t)
	offer := who.own(&command.Offer{Version: 1})
	who.seq--
	encoded, other := command.Append(nil, offer), command.Append(nil, who.own(&command.Leave{}))
	who.seq--
	stranger := identity.Generate()
	ordered := 0
	for name, by := range map[string]signature.Signature{
		"no signature":           {},
		"by a stranger":          command.Sign(who.Group, encoded, stranger.Sign),
		"of other commands":      who.Sign(other),
		"for another federation": command.Sign([16]byte{1}, encoded, who.Key.Sign),
		"for another purpose":    signature.Signature(who.Key.Sign(command.SignedKey, who.Group[:], encoded)),
	} {
		who.calls++
		conn := who.call(t)
		outcome, _, err := conn.OrderSigned(who.calls, by, encoded)
		if outcome == relay.Ordered {
			ordered++
		}
		if err != nil || outcome != rejected && ordered != 1 {
			t.Errorf("%s: %d, %v; %d were ordered", name, outcome, err, ordered)
		}
		_ = conn.Close()
	}
	if outcome, err := who.order(t, who.own(&command.Offer{Version: 1})); err != nil || outcome != relay.Ordered {
		t.Errorf("signed as it should be: %d, %v", outcome, err)
	}
}

// TestForgedBesideOwn: a call is refused as a whole if one command of it is another's.
func TestForgedBesideOwn(t *testing.T) {
	attacked(t)
	who := mallory(t)
	forged := command.Command{ID: command.ID{Site: "site-1", Incarnation: 1, Seq: 1}, Body: &command.Leave{}}
	if outcome, err := who.order(t, who.own(&command.Offer{Version: 1}), forged); err != nil || outcome != rejected {
		t.Errorf("%d, %v", outcome, err)
	}
	who.seq-- // it was not ordered
}

// TestOwnWordsAboutOthers: what a member says in its own name about others has no force, where the leader alone, a
// motion or the other one itself says it.
func TestOwnWordsAboutOthers(t *testing.T) {
	attacked(t)
	who, victim := mallory(t), shared.Sites[1]
	leaders := map[command.Kind]bool{
		command.KindSiteLost: true, command.KindSuspect: true, command.KindRaise: true, command.KindRecover: true,
		command.KindGossipKey: true,
	}
	all := forgeries(t, victim)
	for kind, body := range all {
		switch kind {
		case command.KindInvite, command.KindMotion, command.KindLeave, command.KindClose, command.KindAddresses,
			command.KindSubmit, command.KindOffer, command.KindUsage, command.KindRenice,
			command.KindRelease, command.KindPrioritize:
			continue // they are about itself, or the electors decide
		case command.KindRegister: // with another's data
			outcome, err := who.order(t, command.Command{ID: command.ID{Site: who.Site}, Body: body})
			if err != nil {
				t.Errorf("%T: %d, %v", body, outcome, err)
			}
			continue
		default:
		}
		outcome, err := who.order(t, who.own(body))
		if err != nil || leaders[kind] && outcome != rejected {
			t.Errorf("%T: %d, %v", body, outcome, err)
		}
		if outcome == rejected || outcome == relay.Refused {
			who.seq--
		}
	}
	ref := all[command.KindDecline].(*command.Decline).Attempts[0]
	if job, err := victim.Job(within(t), ref.Job.String()); err != nil || job.Counts["running"] != 1 {
		t.Errorf("the victim's task: %v, %v", job.Counts, err)
	}
	tasks, err := victim.Tasks(within(t), ref.Job.String())
	token := strconv.FormatUint(ref.Token, 10)
	if err != nil || tasks[0].Attempt != int(ref.Attempt) || tasks[0].Token.String() != token {
		t.Errorf("the victim's attempt %v has become %+v, %v", ref, tasks, err)
	}
	if info, err := shared.Sites[0].Info(within(t), who.Site); err != nil || info.Incarnation != who.incarnation {
		t.Errorf("with another's data it has registered: %+v, %v", info, err)
	}
}

// TestMotionsOfOneMember: what a member proposes stays a proposal, and its vote does not count without a vote.
func TestMotionsOfOneMember(t *testing.T) {
	attacked(t)
	who := mallory(t)
	params := command.DefaultParams()
	params.DepartureMs++
	rebound := signature.Key(identity.Generate().Public())
	for _, m := range []command.Motion{
		{What: command.MotionBan, Site: "site-1"},
		{What: command.MotionNoElector, Site: "site-2"},
		{What: command.MotionElector, Site: who.Site},
		{What: command.MotionRebind, Site: "site-3", Key: rebound},
		{What: command.MotionForget, Site: "site-1"},
		{What: command.MotionPolicy, Params: &params},
	} {
		_, err := who.order(t, who.own(&m))
		must(t, err)
	}
	open, err := shared.Sites[0].Motions(within(t), "open")
	must(t, err)
	for _, m := range open {
		if _, err := who.order(t, who.own(&command.Vote{Motion: m.Number, Yes: true})); err != nil {
			t.Error(err)
		}
	}
	still, err := shared.Sites[0].Motions(within(t), "open")
	if err != nil || len(still) != len(open) || len(open) < 5 {
		t.Errorf("%d motions were open, %d are, %v", len(open), len(still), err)
	}
	for _, s := range shared.Sites[:2] { // the electors say no: they are not open for later tests
		for _, m := range still {
			_, _, _ = s.Do(within(t), "PUT", votePath(m), jsonBody, []byte(`{"yes":false}`)) // it may be decided by now
		}
	}
}

// TestRemovesOfOthers: a member has nobody taken out of the group but itself, and an elector neither.
func TestRemovesOfOthers(t *testing.T) {
	attacked(t)
	for _, who := range []*hostile{mallory(t), {Intruder: keyOf(t, notLeading(t))}} {
		for _, s := range shared.Sites {
			if s.Name == who.Site {
				continue
			}
			conn := who.call(t)
			if err := conn.Remove(s.Name); !isRefused(err) {
				t.Errorf("%s removes %s: %v", who.Site, s.Name, err)
			}
			_ = conn.Close()
		}
	}
	st, err := shared.Sites[0].Status(within(t))
	if err != nil || len(st.Voters) != 3 {
		t.Errorf("voters %v, %v", st.Voters, err)
	}
}
