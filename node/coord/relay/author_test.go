package relay

import (
	"errors"
	"slices"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/identity"
)

// known is a roster of keys by site.
type known map[string]identity.Key

func (k known) Find(key identity.Public) Standing {
	for site, of := range k {
		if of.Public() == key {
			return Standing{Site: site, Elector: true}
		}
	}
	return Standing{}
}

func (k known) Key(site string) (identity.Public, bool) {
	key, ok := k[site]
	if !ok {
		return identity.Public{}, false
	}
	return key.Public(), true
}

var signers = known{"a": identity.FromSeed([32]byte{1}), "b": identity.FromSeed([32]byte{2})}

func authorOf(t *testing.T, site string) *author {
	t.Helper()
	id, err := NewIdentity(signers[site], signers)
	if err != nil {
		t.Fatal(err)
	}
	return &author{site: site, federation: testGroup, id: id, proofs: &coord.Proofs{}}
}

// sent returns what the leader makes of a frame of a site with some calls of a command each.
func sent(t *testing.T, site string, seqs ...uint64) item {
	t.Helper()
	var calls []*proposal
	for _, seq := range seqs {
		calls = append(calls, &proposal{seq: seq, cmds: [][]byte{least(site, seq)}})
	}
	f := &forwarder{by: authorOf(t, site)}
	it, err := parseCalls(appendCalls(nil, 7, calls, f.sign())[1:], site)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// An entry begins with the leader's introduction until one is ordered; calls of the leader that stand side by side are
// one bundle; forwarded ones stay as their sites signed them, in their place; and the header names all of them.
func TestEntriesAreSigned(t *testing.T) {
	s := newSequencer(&quick{}, authorOf(t, "a"), Timing{}, Hooks{}, func() {})
	own := func(seq uint64) item {
		cmd := least("a", seq)
		return item{calls: []call{{1, seq, 1}}, cmds: [][]byte{cmd}, commands: 1, bytes: len(cmd)}
	}
	forwarded := sent(t, "b", 1, 2)
	if !authorOf(t, "a").isBy(forwarded.signed) {
		t.Fatal("a frame is not signed by its site")
	}
	e := &entryCalls{items: []item{own(1), own(2), forwarded, own(3)}, commands: 5}
	for _, leads := range []bool{true, false} {
		data, header := s.encodeEntry(9, 5, e)
		b, err := command.DecodeBatch(data)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for i := range b.Bundles {
			u := &b.Bundles[i]
			got = append(got, u.Commands)
			if !u.IsBy(testGroup, signature.Key(signers[u.Site].Public())) {
				t.Errorf("bundle %d is not by %s", i, u.Site)
			}
		}
		var h Header
		if err := ParseHeader(header, &h); err != nil || h.Commands() != len(b.Commands) || h.Term != 9 {
			t.Errorf("header %+v, %v", h, err)
		}
		want, first := []int{3, 2, 1}, command.KindLead
		if !leads {
			want, first = []int{2, 2, 1}, command.KindLeave
		}
		if !slices.Equal(got, want) || b.Commands[0].Body.Kind() != first {
			t.Errorf("bundles of %d commands, want %d; the first command is of kind %d", got, want, b.Commands[0].Body.Kind())
		}
		s.ready.Store(9)
	}
}

// A frame is its site's only with the site's signature over its commands, for the federation.
func TestFramesAreVerified(t *testing.T) {
	a := authorOf(t, "a")
	for name, change := range map[string]func(*item){
		"as it was sent": func(*item) {},
		"another site's": func(it *item) { it.signed.Site = "a" },
		"a stranger's":   func(it *item) { it.signed.Site = "z" },
		"another text":   func(it *item) { it.signed.Signed = append([]byte{}, least("b", 3)...) },
		"no signature":   func(it *item) { it.signed.Signature = signature.Signature{} },
	} {
		it := sent(t, "b", 1)
		if change(&it); a.isBy(it.signed) != (name == "as it was sent") {
			t.Errorf("%s: %v", name, a.isBy(it.signed))
		}
	}
	a.federation = [16]byte{3}
	if it := sent(t, "b", 1); a.isBy(it.signed) {
		t.Error("one of another federation is taken")
	}
}

// elsewhere has another site lead, and no connection to it.
type elsewhere struct{ leaderless }

func (elsewhere) Lead() (to Peer, self bool) { return Peer{Site: "b", Addr: "nowhere"}, false }

// What only a leader says is not handed to the next one, which judges for itself: its proposer is told.
func TestJudgementsAreNotForwarded(t *testing.T) {
	c := New(t.Context(), Config{Site: "a", Backend: elsewhere{}}, testGroup, testGroup)
	_, err := c.Propose(t.Context(), command.Command{
		ID: command.ID{Site: "a", Incarnation: 1, Seq: 1}, Body: &command.Suspect{Site: "b", Incarnation: 1, On: true},
	})
	if !errors.Is(err, coord.ErrRefused) {
		t.Errorf("%v", err)
	}
}
