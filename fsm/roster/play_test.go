package roster

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
)

// small are bounds that random plays reach.
func small() Bounds {
	return Bounds{
		Members: 6, Invitations: 5, ByInviter: 3, Motions: 8, ByProposer: 3, Electors: 3, MostVotes: 4,
		Checks: 4, Commands: 5, MotionMs: 40,
	}
}

// play drives a roster with random commands, and a second one that is restored now and then.
type play struct {
	r, twin *Roster
	at      Moment
	used    map[signature.Key]string // invitations: who entered by them
	secrets map[string]ed25519.PrivateKey
}

var federation = [16]byte{1}

func (p *play) secret(name string) ed25519.PrivateKey {
	if p.secrets[name] == nil {
		seed := sha256.Sum256([]byte(name))
		p.secrets[name] = ed25519.NewKeyFromSeed(seed[:])
	}
	return p.secrets[name]
}

func (p *play) public(name string) signature.Key {
	return signature.Key(p.secret(name).Public().(ed25519.PublicKey))
}

func (p *play) sign(name, purpose string, parts [][]byte) signature.Signature {
	return signature.Signature(ed25519.Sign(p.secret(name), signature.Message(purpose, parts...)))
}

func newPlay() *play {
	p := &play{
		r: New(small()), twin: New(small()), at: Moment{Index: 1},
		used: map[signature.Key]string{}, secrets: map[string]ed25519.PrivateKey{},
	}
	for _, r := range []*Roster{p.r, p.twin} {
		r.Found("a", p.public("a"), p.at)
	}
	return p
}

var names = []string{"a", "b", "c", "d", "e", "f", "g", "h"}

// draw returns a random command, which often is a sensible one.
func (p *play) draw(t *rapid.T) (by string, body command.Body) {
	name := func(what string) string { return rapid.SampledFrom(names).Draw(t, what) }
	by = name("by")
	token := fmt.Sprint("token ", rapid.IntRange(0, 7).Draw(t, "token"))
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0, 1:
		return by, &command.Invite{
			Key: p.public(token), Site: name("site"), Elector: rapid.Bool().Draw(t, "elector"),
			ForMs: rapid.Int64Range(1, 60).Draw(t, "for"),
		}
	case 2:
		site, key := name("site"), name("key")
		if n := p.r.find(p.public(token)); n >= 0 && rapid.Bool().Draw(t, "as invited") {
			site = p.r.invitations[n].Site
			key = site
		}
		c := &command.Admit{Invitation: p.public(token), Site: site, Key: p.public(key)}
		c.ByInvitation = p.sign(token, command.SignedAdmission, c.Signed(federation))
		signer := rapid.SampledFrom([]string{key, key, key, "thief"}).Draw(t, "signer")
		c.ByKey = p.sign(signer, command.SignedAdmission, c.Signed(federation))
		return by, c
	case 3:
		return by, &command.Revoke{Key: p.public(token)}
	case 4:
		m, _ := p.r.Member(name("site"))
		if m.Site == "" {
			return by, &command.Vote{Motion: 99}
		}
		key := fmt.Sprint(m.Site, rapid.IntRange(0, 2).Draw(t, "key"))
		c := &command.Rekey{Site: m.Site, Generation: m.Generation, Key: p.public(key), Recovery: p.public("paper")}
		signer := rapid.SampledFrom([]string{m.Site, key, "paper"}).Draw(t, "signer")
		c.By = p.sign(signer, command.SignedKey, c.Signed(federation))
		c.ByNew = p.sign(key, command.SignedKey, c.Signed(federation))
		return by, c
	case 5:
		kinds := rapid.IntRange(int(command.MotionElector), int(command.MotionRebind))
		what := command.MotionKind(kinds.Draw(t, "motion"))
		c := &command.Motion{What: what, Site: name("site")}
		if what == command.MotionRebind {
			c.Key = p.public(fmt.Sprint("rebound ", rapid.IntRange(0, 3).Draw(t, "key")))
		}
		return by, c
	}
	back := rapid.IntRange(0, 4).Draw(t, "back")
	return by, &command.Vote{Motion: p.r.last - uint64(back), Yes: rapid.IntRange(0, 3).Draw(t, "vote") > 0}
}

// apply has a roster execute a command.
func (p *play) apply(r *Roster, by string, body command.Body) (number uint64, passed *Motion, code command.Code) {
	switch c := body.(type) {
	case *command.Invite:
		number, code = r.Invite(by, c, p.at)
	case *command.Revoke:
		code = r.Revoke(by, c.Key, p.at)
	case *command.Admit:
		code = r.Admit(c, federation, p.at)
	case *command.Rekey:
		code = r.Rekey(c, federation, p.at)
	case *command.Motion:
		number, passed, code = r.Propose(by, c, p.at)
	case *command.Vote:
		passed, code = r.Vote(by, c.Motion, c.Yes, p.at)
	}
	return number, passed, code
}

// entry has both execute the same entry, and compares them.
func (p *play) entry(t *rapid.T) {
	p.at.Index++
	p.at.Ms += rapid.Int64Range(0, 30).Draw(t, "ms")
	if rapid.IntRange(0, 19).Draw(t, "recover") == 0 {
		p.at.Epoch++
		site := rapid.SampledFrom(p.r.members).Draw(t, "site").Site
		p.r.Recover(site, p.at)
		p.twin.Recover(site, p.at)
	}
	p.r.BeginEntry()
	p.twin.BeginEntry()
	for range rapid.IntRange(0, 4).Draw(t, "commands") {
		here := rapid.SampledFrom(names).Draw(t, "here")
		p.r.Here(here, p.at)
		p.twin.Here(here, p.at)
		by, body := p.draw(t)
		before := p.r.Contents()
		n, passed, code := p.apply(p.r, by, body)
		n2, passed2, code2 := p.apply(p.twin, by, body)
		if n != n2 || code != code2 || !reflect.DeepEqual(passed, passed2) {
			t.Fatalf("%T: %d %v %v, its twin %d %v %v", body, n, passed, code, n2, passed2, code2)
		}
		p.judge(t, before, body, code)
	}
	if !reflect.DeepEqual(p.r.EndEntry(p.at), p.twin.EndEntry(p.at)) {
		t.Fatal("other motions passed at the twin")
	}
	if rapid.IntRange(0, 3).Draw(t, "restore") == 0 {
		twin, err := Restore(small(), p.twin.Contents(), p.at.Index)
		if err != nil {
			t.Fatalf("restore: %v", err)
		}
		p.twin = twin
	}
	a, b := p.r.Contents(), p.twin.Contents()
	if !reflect.DeepEqual(a, b) || !slices.Equal(p.r.electors, p.twin.electors) ||
		!reflect.DeepEqual(p.r.keys, p.twin.keys) {
		t.Fatalf("forked:\n%+v\n%+v", a, b)
	}
}

// judge compares what a command did with what the roster promises.
func (p *play) judge(t *rapid.T, before Contents, body command.Body, code command.Code) {
	if len(p.r.Electors(p.at.Epoch)) == 0 {
		t.Fatalf("nobody decides after %T", body)
	}
	if len(p.r.electors) > small().MostVotes || p.r.Checks() > small().Checks {
		t.Fatalf("%d electors, %d signatures", len(p.r.electors), p.r.Checks())
	}
	keys := map[signature.Key]bool{}
	for _, m := range p.r.members {
		if keys[m.Key] || m.Banned && m.Elector {
			t.Fatalf("%+v", m)
		}
		keys[m.Key] = true
	}
	for _, m := range p.r.members[len(before.Members):] { // who is new
		n := slices.IndexFunc(p.r.invitations, func(i *Invitation) bool {
			return i.Claimant == m.Key && i.State == Admitted
		})
		if n < 0 || p.r.invitations[n].Site != m.Site || p.used[p.r.invitations[n].Key] != "" {
			t.Fatalf("%s was admitted by no invitation, or a used one", m.Site)
		}
		p.used[p.r.invitations[n].Key] = m.Site
		if motion := p.r.motion(p.r.invitations[n].Motion); motion.State != Passed {
			t.Fatalf("%s was admitted, its motion is %v", m.Site, motion.State)
		}
	}
	for _, m := range p.r.motions {
		was := slices.IndexFunc(before.Motions, func(b *Motion) bool { return b.Number == m.Number })
		if m.State != Passed || was >= 0 && before.Motions[was].State == Passed {
			continue
		}
		yes := 0
		electors := electorsOf(before, p.at.Epoch)
		for _, v := range m.Votes {
			if v.Yes && slices.Contains(electors, v.Site) {
				yes++
			}
		}
		if 2*yes <= len(electors) {
			t.Fatalf("motion %d passed with %d votes of %d", m.Number, yes, len(electors))
		}
	}
	if code != command.OK && code != command.Pending && !reflect.DeepEqual(before.Members, p.r.members) {
		t.Fatalf("%T was refused (%v) and changed a member", body, code)
	}
}

func electorsOf(c Contents, epoch uint64) (out []string) {
	for _, m := range c.Members {
		if m.Deciding(epoch) {
			out = append(out, m.Site)
		}
	}
	return out
}

// Whatever is proposed: more than half agree to what passes, each invitation lets in one site, somebody always
// decides, and a roster that is restored goes on as the one that it was copied from.
func TestRandomPlays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay()
		for range rapid.IntRange(1, 40).Draw(t, "entries") {
			p.entry(t)
		}
	})
}
