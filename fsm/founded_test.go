package fsm

import (
	"crypto/ed25519"
	"crypto/sha256"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// newFounded returns a federation with a roster: the first site founds it, and admits the others, which vote.
func newFounded(t tb, sites ...string) *world {
	w := newWorld(t, params())
	w.refound(sites...)
	return w
}

// refound replaces the world's federation by one with a roster.
func (w *world) refound(sites ...string) {
	w.s, w.keys = New(), map[string]ed25519.PrivateKey{}
	w.apply(command.Command{ID: command.ID{Site: sites[0]}, Body: &command.Genesis{
		Federation: [16]byte{7}, Seed: 42, Params: params(), Founder: w.public(sites[0]),
	}})
	w.register(sites[0])
	for _, x := range sites[1:] {
		if code := w.letIn(x, sites...); code != command.OK {
			w.t.Fatalf("admit %s: %v", x, code)
		}
		w.register(x)
	}
}

// letIn invites a site by the first one, with the votes of all that are there, and has it use the invitation.
func (w *world) letIn(site string, by ...string) command.Code {
	r := w.must(by[0], w.invite(site))
	for _, v := range by[1:] {
		if w.inc[v] > 0 {
			w.do(v, &command.Vote{Motion: r.Motion, Yes: true})
		}
	}
	return w.do(by[0], w.admission(site, "invitation of "+site, site)).Code
}

func (w *world) secret(name string) ed25519.PrivateKey {
	key, ok := w.keys[name]
	if !ok {
		seed := sha256.Sum256([]byte(name))
		key = ed25519.NewKeyFromSeed(seed[:])
		w.keys[name] = key
	}
	return key
}

func (w *world) public(name string) signature.Key {
	return signature.Key(w.secret(name).Public().(ed25519.PublicKey))
}

func (w *world) sign(name, purpose string, parts [][]byte) signature.Signature {
	return signature.Signature(ed25519.Sign(w.secret(name), signature.Message(purpose, parts...)))
}

// batch returns an entry of commands, which their sites have signed if the federation has a roster.
func (w *world) batch(cmds ...command.Command) *command.Batch {
	b := &command.Batch{Term: w.term, Elapsed: w.base, Commands: cmds}
	for i := range cmds {
		if w.keys == nil {
			break
		}
		b.Bundles = append(b.Bundles, w.bundle(w.keyOf(cmds[i].ID.Site), cmds[i]))
	}
	return b
}

// batchBy returns an entry of commands of one site in one bundle, signed with the key of that name.
func (w *world) batchBy(name string, cmds ...command.Command) *command.Batch {
	return &command.Batch{
		Term: w.term, Elapsed: w.base, Commands: cmds, Bundles: []command.Bundle{w.bundle(w.secret(name), cmds...)},
	}
}

// leads has a site introduce itself as the leader of the next term.
func (w *world) leads(site string) {
	w.t.Helper()
	w.term++
	w.base = 0
	lead := command.Command{ID: command.ID{Site: site}, Body: &command.Lead{Term: w.term}}
	if r := w.apply(lead)[0]; r.Code != command.OK {
		w.t.Fatalf("%s leads: %v", site, r.Code)
	}
}

// bundle returns commands of one site as one bundle, signed with a key.
func (w *world) bundle(by ed25519.PrivateKey, cmds ...command.Command) command.Bundle {
	var encoded []byte
	for _, c := range cmds {
		encoded = command.Append(encoded, c)
	}
	sign := func(purpose string, parts ...[]byte) []byte {
		return ed25519.Sign(by, signature.Message(purpose, parts...))
	}
	return command.SignBundle([16]byte{7}, cmds[0].ID.Site, len(cmds), encoded, sign)
}

// keyOf returns the key of a site: the roster's if it has one.
func (w *world) keyOf(site string) ed25519.PrivateKey {
	if m, known := w.s.Member(site); known {
		for _, key := range w.keys {
			if signature.Key(key.Public().(ed25519.PublicKey)) == m.Key {
				return key
			}
		}
	}
	return w.secret(site)
}

// invite invites a site with the key named after it.
func (w *world) invite(site string) *command.Invite {
	return &command.Invite{Key: w.public("invitation of " + site), Site: site, Elector: true, ForMs: 3_600_000}
}

// admission uses an invitation for a site, with a key.
func (w *world) admission(site, invitation, key string) *command.Admit {
	c := &command.Admit{Invitation: w.public(invitation), Site: site, Key: w.public(key)}
	signed := c.Signed(w.s.federation)
	c.ByInvitation = w.sign(invitation, command.SignedAdmission, signed)
	c.ByKey = w.sign(key, command.SignedAdmission, signed)
	return c
}

// rekeying replaces a site's keys by those named so; by is the key that signs.
func (w *world) rekeying(site, key, recovery, by string) *command.Rekey {
	m, _ := w.s.Member(site)
	c := &command.Rekey{
		Site: site, Generation: m.Generation, Key: w.public(key), ByRecovery: w.public(by) == m.Recovery,
	}
	if recovery != "" {
		c.Recovery = w.public(recovery)
	}
	c.By = w.sign(by, command.SignedKey, c.Signed(w.s.federation))
	c.ByNew = w.sign(key, command.SignedKey, c.Signed(w.s.federation))
	return c
}

// wants has a site's command give a code.
func (w *world) wants(site string, b command.Body, code command.Code) command.Result {
	w.t.Helper()
	r := w.do(site, b)
	if r.Code != code {
		w.t.Fatalf("%T %+v of %s: %v, want %v", b, b, site, r.Code, code)
	}
	return r
}

// voters compares the sites that decide.
func (w *world) voters(want ...string) {
	w.t.Helper()
	w.check()
	got := w.s.Electors()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			w.t.Fatalf("electors %v, want %v", got, want)
		}
	}
}

// Nobody registers without being in the roster, and each only with its key.
func TestOnlyMembersRegister(t *testing.T) {
	w := newFounded(t, "a", "b")
	register := func(site string, want command.Code) {
		t.Helper()
		if r := w.apply(w.registration(site, nil, nil))[0]; r.Code != want {
			t.Errorf("%s registers: %v, want %v", site, r.Code, want)
		}
	}
	register("z", command.NotMember)
	unsigned := w.batch(w.registration("b", nil, nil))
	unsigned.Bundles = nil
	for _, x := range []struct {
		what string
		of   *command.Batch
	}{{"not signed", unsigned}, {"with another key", w.batchBy("somebody else", w.registration("b", nil, nil))}} {
		if r, err := w.s.Apply(x.of); err != nil || r[0].Code != command.NotSigned {
			t.Errorf("b registers, %s: %v %v", x.what, r, err)
		}
	}
	other := w.registration("b", nil, nil)
	other.Body.(*command.Register).Node = w.public("somebody else").Node()
	if r := w.apply(other)[0]; r.Code != command.NameTaken {
		t.Errorf("b registers with another directory: %v", r.Code)
	}
	w.keys["b"] = w.secret("somebody else")
	if err := w.s.Admit("b", w.public("b").Node()); err == nil {
		t.Error("another key is admitted as b")
	}
	w.voters("a", "b")
}

// An invitation lets in one site, under its name, once, in its time, with its holder's proof.
func TestInvitation(t *testing.T) {
	w := newFounded(t, "a")
	w.must("a", w.invite("b"))
	w.wants("a", w.admission("c", "invitation of b", "c"), command.InvitationOther)
	w.wants("a", w.admission("b", "invitation of z", "b"), command.UnknownInvitation)
	swapped := w.admission("b", "invitation of b", "b")
	swapped.Key = w.public("thief") // by whoever passes it on
	w.wants("a", swapped, command.BadSignature)
	forged := w.admission("b", "invitation of b", "thief")
	forged.ByInvitation = w.sign("thief", command.SignedAdmission, forged.Signed(w.s.federation))
	w.wants("a", forged, command.BadSignature)
	foreign := w.admission("b", "invitation of b", "b")
	foreign.ByInvitation = w.sign("invitation of b", command.SignedAdmission, foreign.Signed([16]byte{8}))
	w.wants("a", foreign, command.BadSignature)
	w.wants("a", w.admission("b", "invitation of b", "a"), command.KeyTaken)

	w.must("a", w.admission("b", "invitation of b", "b"))
	w.must("a", w.admission("b", "invitation of b", "b")) // its answer was lost
	w.wants("a", w.admission("b", "invitation of b", "thief"), command.InvitationUsed)
	w.wants("a", w.invite("b"), command.OK) // the same one again makes none
	w.wants("a", &command.Invite{Key: w.public("2"), Site: "b", ForMs: 1}, command.NameTaken)
	w.wants("a", &command.Revoke{Key: w.public("invitation of b")}, command.InvitationUsed)

	w.must("a", &command.Invite{Key: w.public("1"), Site: "late", ForMs: 5000})
	w.at(5000)
	w.wants("a", w.admission("late", "1", "late"), command.InvitationExpired)
	w.must("a", &command.Invite{Key: w.public("3"), Site: "gone", ForMs: 5})
	w.must("a", &command.Revoke{Key: w.public("3")})
	w.wants("a", w.admission("gone", "3", "gone"), command.InvitationRevoked)
}

// More than half of the electors admit. What was asked before they agree is done when they do.
func TestAdmissionByElectors(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	w.voters("a", "b", "c")
	r := w.must("a", w.invite("d"))
	w.wants("b", w.admission("d", "invitation of d", "d"), command.Pending)
	w.wants("b", w.admission("d", "invitation of d", "thief"), command.InvitationUsed)
	w.wants("a", &command.Vote{Motion: r.Motion, Yes: true}, command.OK) // it has already
	if _, ok := w.s.Member("d"); ok {
		t.Fatal("d is in by one vote of three")
	}
	w.must("c", &command.Vote{Motion: r.Motion, Yes: true})
	if m, ok := w.s.Member("d"); !ok || m.Key != w.public("d") {
		t.Errorf("%+v, %v", m, ok)
	}
	w.wants("b", &command.Vote{Motion: r.Motion, Yes: false}, command.MotionClosed)
	w.register("d")

	// Two invitations of one name: the one that comes later lets nobody in, and does not stay open.
	w.must("a", &command.Invite{Key: w.public("first"), Site: "twice", ForMs: 50_000})
	first := w.s.Roster().Last
	second := w.must("b", &command.Invite{Key: w.public("second"), Site: "twice", ForMs: 50_000}).Motion
	w.wants("a", w.admission("twice", "first", "t1"), command.Pending)
	w.wants("a", w.admission("twice", "second", "t2"), command.Pending)
	w.must("b", &command.Vote{Motion: first, Yes: true})
	w.must("c", &command.Vote{Motion: first, Yes: true})
	w.must("a", &command.Vote{Motion: second, Yes: true})
	w.must("c", &command.Vote{Motion: second, Yes: true})
	if m, _ := w.s.Member("twice"); m.Key != w.public("t1") {
		t.Errorf("%+v", m)
	}
	w.wants("a", w.admission("twice", "second", "t2"), command.MotionRefused)

	// A claim that the electors leave undecided ends with its time.
	w.must("a", &command.Invite{Key: w.public("slow"), Site: "slow", ForMs: 5000})
	w.wants("a", w.admission("slow", "slow", "slow"), command.Pending)
	w.at(w.base + 5000)
	w.wants("a", w.admission("slow", "slow", "slow"), command.InvitationExpired)
	w.voters("a", "b", "c", "d")

	r = w.must("b", w.invite("e"))
	w.must("a", &command.Vote{Motion: r.Motion, Yes: false})
	w.must("c", &command.Vote{Motion: r.Motion, Yes: false})
	w.wants("b", w.admission("e", "invitation of e", "e"), command.MotionRefused)
	w.wants("b", &command.Vote{Motion: 99, Yes: true}, command.UnknownMotion)
}

// Invitations make five electors; who comes later does not vote, but takes part in everything else.
func TestElectorsByInvitation(t *testing.T) {
	w := newFounded(t, "a", "b", "c", "d", "e", "f")
	w.voters("a", "b", "c", "d", "e")
	r := w.must("f", w.invite("g"))
	w.wants("f", &command.Vote{Motion: r.Motion, Yes: true}, command.NotElector)
	for _, v := range []string{"a", "b", "c"} {
		w.must(v, &command.Vote{Motion: r.Motion, Yes: true})
	}
	w.must("f", w.admission("g", "invitation of g", "g"))
	w.voters("a", "b", "c", "d", "e")
	for _, v := range []string{"g", "a", "b", "c"} { // g has not registered yet
		if v != "g" {
			w.must(v, &command.Motion{What: command.MotionElector, Site: "f"})
		}
	}
	w.voters("a", "b", "c", "d", "e", "f")
	w.wants("a", &command.Motion{What: command.MotionElector, Site: "f"}, command.AlreadySo)
}

// A banned site is parked at once, and does not come back until the electors say so.
func TestBan(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	w.must("b", w.offering("b", 8))
	w.submit("a", w.job("a", 3))
	w.must("b", w.invite("friend-of-b"))
	w.must("a", &command.Motion{What: command.MotionBan, Site: "b"})
	if len(w.s.Assignments("b")) != 3 {
		t.Fatal("b was expelled by one of three")
	}
	w.must("c", &command.Motion{What: command.MotionBan, Site: "b"}) // who proposes the same votes for it
	w.endsWithLease("b", 3)
	w.voters("a", "c")
	if r := w.apply(w.registration("b", nil, nil))[0]; r.Code != command.Banned {
		t.Errorf("it registers: %v", r.Code)
	}
	w.wants("a", w.admission("friend-of-b", "invitation of friend-of-b", "friend-of-b"), command.InvitationRevoked)
	w.wants("b", w.offering("b", 8), command.OldIncarnation)
	w.wants("a", w.rekeying("b", "b2", "", "b"), command.Banned)
	w.wants("a", w.admission("b", "invitation of b", "b"), command.Banned) // sent again
	w.must("a", &command.Motion{What: command.MotionUnban, Site: "b"})
	w.must("c", &command.Motion{What: command.MotionUnban, Site: "b"})
	w.register("b")
	w.voters("a", "c")
	w.check()
}

// endsWithLease checks that n tasks of others, which a site ran that was given up in the last entry, are started
// elsewhere once its lease must be over, and not before.
func (w *world) endsWithLease(site string, n int) {
	w.t.Helper()
	w.pass(w.s.params.LeaseMs + w.s.params.MarginMs - 1)
	if dying := w.s.Dying(); dying != n {
		w.t.Fatalf("%d of its tasks wait for the end of its lease, not %d", dying, n)
	}
	w.pass(1)
	if left := w.s.Assignments(site); len(left) != 0 {
		w.t.Fatalf("its tasks are still there: %+v", left)
	}
}

// Nobody is left out of deciding by being the last one who does.
func TestLastElectorStays(t *testing.T) {
	w := newFounded(t, "a", "b")
	w.wants("a", &command.Motion{What: command.MotionNoElector, Site: "b"}, command.OK)
	w.must("b", &command.Motion{What: command.MotionNoElector, Site: "b"})
	w.voters("a")
	w.wants("a", &command.Motion{What: command.MotionNoElector, Site: "a"}, command.LastElector)
	w.wants("b", &command.Motion{What: command.MotionBan, Site: "a"}, command.LastElector)
	w.wants("a", &command.Motion{What: command.MotionNoElector, Site: "b"}, command.AlreadySo)
	w.wants("a", &command.Motion{What: command.MotionBan, Site: "z"}, command.UnknownSite)
}

// What one site could do alone before is the electors' to decide.
func TestPolicyAndForgetAreMotions(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	p := w.s.params
	p.RateGPU = 77
	w.wants("a", &command.SetParams{Params: p}, command.NeedsMotion)
	w.must("a", &command.Motion{What: command.MotionPolicy, Params: &p})
	w.must("b", &command.Motion{What: command.MotionPolicy, Params: &p})
	if w.s.Params().RateGPU != 77 {
		t.Error("the policy was not set")
	}
	p.LeaseMs++
	w.wants("a", &command.Motion{What: command.MotionPolicy, Params: &p}, command.BadParams)

	w.wants("a", &command.Motion{What: command.MotionForget, Site: "c"}, command.NotOwner)
	w.submit("c", w.job("c", 2))
	w.must("c", &command.Leave{})
	w.wants("a", &command.Forget{Site: "c"}, command.NeedsMotion)
	w.must("a", &command.Motion{What: command.MotionForget, Site: "c"})
	w.must("b", &command.Motion{What: command.MotionForget, Site: "c"})
	if x := w.s.byName["c"]; !x.gone {
		t.Error("c was not forgotten")
	}
	w.check()
}

// A key is replaced by itself, and in its absence by the recovery key, which nothing else replaces.
func TestKeysAreReplaced(t *testing.T) {
	w := newFounded(t, "a", "b")
	w.wants("a", w.rekeying("b", "b2", "thief's", "thief"), command.BadSignature)
	replay := w.rekeying("b", "b2", "", "b")
	w.must("b", w.rekeying("b", "b", "paper", "b")) // key backup
	w.wants("a", replay, command.OldKey)
	rotation := w.rekeying("b", "b2", "paper", "b")
	w.must("b", rotation)
	w.must("a", rotation) // its answer was lost
	if w.s.byName["b"].node != w.public("b2").Node() {
		t.Error("the site's node is not that of its key")
	}
	w.wants("b", w.rekeying("b", "b3", "thief's", "b2"), command.RecoveryStands)
	stolen := w.rekeying("b", "b3", "paper", "b2") // the thief has the key, and replaces it
	w.must("b", stolen)
	w.must("a", w.rekeying("b", "b4", "paper 2", "paper"))
	if m, _ := w.s.Member("b"); m.Key != w.public("b4") || m.Recovery != w.public("paper 2") {
		t.Errorf("%+v", m)
	}
	w.wants("a", stolen, command.OldKey)
	w.wants("b", stolen, command.OldIncarnation) // whoever ran with the old key is out
	w.wants("a", w.rekeying("a", "b4", "", "a"), command.KeyTaken)
	w.wants("a", &command.Rekey{Site: "a", Key: w.public("x"), ByRecovery: true}, command.NoRecovery)
	w.keys["b"] = w.secret("b4")
	w.register("b")
}

// With both keys lost, the electors give the name to another one, whoever runs there loses it at once.
func TestRebind(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	w.must("c", w.offering("c", 4))
	w.submit("a", w.job("a", 2))
	w.must("a", &command.Motion{What: command.MotionRebind, Site: "c", Key: w.public("c2")})
	w.must("b", &command.Motion{What: command.MotionRebind, Site: "c", Key: w.public("c2")})
	w.endsWithLease("c", 2)
	if r := w.apply(w.registration("c", nil, nil))[0]; r.Code != command.NameTaken {
		t.Errorf("the former key registers: %v", r.Code)
	}
	w.keys["c"] = w.secret("c2")
	c := w.registration("c", nil, nil)
	c.Body.(*command.Register).Known = [][16]byte{{99}} // the new directory knows nothing of before
	if r := w.apply(c)[0]; r.Code != command.OK {
		t.Errorf("the new key registers: %v", r.Code)
	}
	w.check()
}

// An elector decides once its broker has registered: one that was admitted and never came keeps nobody from deciding.
func TestElectorsDecideOnceTheyAreHere(t *testing.T) {
	w := newFounded(t, "a", "b")
	for _, absent := range []string{"c", "d"} {
		if code := w.letIn(absent, "a", "b"); code != command.OK {
			t.Fatal(code)
		}
		w.voters("a", "b")
	}
	w.must("a", &command.Motion{What: command.MotionBan, Site: "d"})
	w.must("b", &command.Motion{What: command.MotionBan, Site: "d"})
	if m, _ := w.s.Member("d"); !m.Banned {
		t.Error("two of the two that are here did not expel the one that never came")
	}
	w.register("c")
	w.voters("a", "b", "c")
	w.check()
}

// After a recovery the site that went on decides, with those that come back.
func TestElectorsAfterRecovery(t *testing.T) {
	w := newFounded(t, "a", "b", "c", "d", "e", "f")
	open := w.must("a", &command.Motion{What: command.MotionBan, Site: "c"})
	begin := command.Command{ID: command.ID{Site: "f"}, Body: &command.Recover{Epoch: 1}}
	if r := w.apply(begin)[0]; r.Code != command.OutOfRange {
		t.Errorf("a Recover that was ordered: %v", r.Code)
	}
	w.voters("a", "b", "c", "d", "e")
	if r, err := w.s.Apply(&command.Batch{Commands: []command.Command{begin}}); err != nil || r[0].Code != command.OK {
		t.Fatal(r, err)
	}
	w.voters("f")
	if m := w.s.Roster().Motions[open.Motion-1]; m.State != 0 {
		t.Errorf("a motion without f's vote is %v", m.State)
	}
	w.register("f")
	w.register("b")
	w.voters("b", "f")
	w.must("f", &command.Motion{What: command.MotionNoElector, Site: "a"}) // it never comes back
	w.must("b", &command.Motion{What: command.MotionNoElector, Site: "a"})
	w.register("a")
	w.voters("b", "f")
}

// The leader of the term makes the keys of gossip, one after the other.
func TestGossipKey(t *testing.T) {
	w := newFounded(t, "a", "b")
	next := func(term, generation uint64) *command.GossipKey {
		return &command.GossipKey{Term: term, Generation: generation, Key: [32]byte{byte(generation)}}
	}
	w.wants("a", next(w.term+1, 1), command.OldTerm)
	w.wants("a", next(w.term, 2), command.OldKey)
	w.must("a", next(w.term, 1))
	w.wants("b", next(w.term, 2), command.NotLeader)
	w.leads("b")
	w.must("b", next(w.term, 1))
	w.wants("b", &command.GossipKey{Term: w.term, Generation: 1, Key: [32]byte{9}}, command.OldKey)
	w.must("b", next(w.term, 2))
	if g := w.s.Roster().Gossip; g.Generation != 2 || g.Key[0] != 2 {
		t.Errorf("%+v", g)
	}
	w.check()
}

// Gossip is due another key when there is none, and when somebody was expelled who has it.
func TestGossipKeyIsDue(t *testing.T) {
	w := newFounded(t, "a", "b", "c")
	due := func(want uint64, why string) {
		t.Helper()
		w.check()
		if got := w.s.NextGossip(); got != want {
			t.Fatalf("%s: generation %d is due, want %d", why, got, want)
		}
	}
	set := func(generation uint64) {
		t.Helper()
		w.must("a", &command.GossipKey{Term: w.term, Generation: generation, Key: [32]byte{byte(generation)}})
	}
	due(1, "there is none")
	set(1)
	due(0, "it is new")
	w.must("a", &command.Motion{What: command.MotionNoElector, Site: "c"})
	w.must("b", &command.Motion{What: command.MotionNoElector, Site: "c"})
	due(0, "c lost its vote")
	w.must("a", &command.Motion{What: command.MotionBan, Site: "c"})
	due(0, "no majority has banned c")
	w.must("b", &command.Motion{What: command.MotionBan, Site: "c"})
	due(2, "c was banned")
	set(2)
	due(0, "c never had this one")
	rebind := &command.Motion{What: command.MotionRebind, Site: "b", Key: signature.Key{7}}
	w.must("a", rebind)
	w.must("b", rebind)
	due(3, "b's former key may be somebody else's")
	set(3)
	w.must("a", w.rekeying("a", "a", "recovery of a", "a"))
	due(0, "a has a recovery key")
	w.must("a", w.rekeying("a", "a2", "recovery of a", "recovery of a"))
	due(4, "a's lost key may be somebody else's")
}

// However many commands of the roster an entry has, and however bad their signatures are, it ends.
func TestEntryFullOfSignatures(t *testing.T) {
	w := newFounded(t, "a")
	w.must("a", w.invite("b"))
	bad := w.admission("b", "invitation of b", "b")
	bad.ByKey[0]++
	var cmds []command.Command
	for range 200 {
		cmds = append(cmds, w.cmd("a", bad))
	}
	busy := 0
	for _, r := range w.apply(cmds...) {
		if r.Code == command.Busy {
			busy++
		}
	}
	if most := w.s.bounds.roster.Checks; w.s.roster.Checks() != most || busy != 200-most/2 {
		t.Errorf("%d signatures were checked, %d commands refused", w.s.roster.Checks(), busy)
	}
	w.must("a", w.admission("b", "invitation of b", "b")) // in the next entry
}
