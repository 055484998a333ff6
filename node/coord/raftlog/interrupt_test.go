package raftlog

import (
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// TestInterruptedThenOther: the recovery of c was cut off, and d was recovered in
// its place. c never makes a second federation of it, and follows d with its data.
func TestInterruptedThenOther(t *testing.T) {
	for _, step := range []string{"mark", "rewrite", "prune"} {
		t.Run(step, func(t *testing.T) {
			c, _ := lostQuorum(t)
			wants(t, Recover(patience(t), c.offline("c", step), 0), errCrash)
			c.openErr(t, "c", ErrUnfinished, func(*Config) {}, "cloudshare recover --follow HOST:PORT --yes")
			if err := Recover(patience(t), c.offline("d", ""), 0); err != nil {
				t.Fatal(err)
			}
			lead := c.open(t, "d")
			register(t, lead)
			wants(t, Recover(patience(t), c.offline("c", ""), 0), ErrEpoch, "epoch 1", "epoch 0", "--follow "+lead.Addr())
			_, err := Inspect(patience(t), c.offline("c", ""))
			wants(t, err, ErrEpoch, "--follow "+lead.Addr())
			c.openErr(t, "c", ErrUnfinished, func(*Config) {})

			for _, step := range []string{"mark", "snapshots"} {
				wants(t, Follow(patience(t), c.offline("c", step), lead.Addr()), errCrash)
			}
			if err := Follow(patience(t), c.offline("c", ""), lead.Addr()); err != nil {
				t.Fatal(err)
			}
			back := c.open(t, "c")
			register(t, back)
			if back.Lineage() != lead.Lineage() {
				t.Errorf("c has lineage %x, d %x", back.Lineage(), lead.Lineage())
			}
		})
	}
}

// TestInterruptedThenQuorum: the recovery of c was cut off, and the voters that
// were given up run again. c neither goes on over their heads nor follows them
// without the log that it voted with; once they are gone it goes on.
func TestInterruptedThenQuorum(t *testing.T) {
	c, _ := lostQuorum(t)
	wants(t, Recover(patience(t), c.offline("c", "rewrite"), 0), errCrash)
	a, b := c.open(t, "a"), c.open(t, "b")
	v, err := Inspect(patience(t), c.offline("c", ""))
	if err != nil || !v.Unfinished || len(v.Peers) != 4 || !v.Peers[0].Answers || !v.Peers[1].Answers ||
		v.Peers[3].Answers {
		t.Errorf("survey %+v, %v", v, err)
	}
	wants(t, Recover(patience(t), c.offline("c", ""), 0), ErrNoLoss, "[a b] answer", "stop them")
	wants(t, Follow(patience(t), c.offline("c", ""), a.Addr()), ErrEpoch, "epoch 0")
	closed(t, a, b)
	if err := Recover(patience(t), c.offline("c", ""), 0); err != nil {
		t.Fatal(err)
	}
	lead := c.open(t, "c")
	register(t, lead)
	if at := lead.machine.m.Index(); command.EpochOf(at) != 1 {
		t.Errorf("entry %x", at)
	}
}

// TestInterruptedFollow: d was to follow c, which was lost, too, before d had
// dropped all; it follows b, which was recovered in its place. a hears of it.
func TestInterruptedFollow(t *testing.T) {
	c, _ := lostQuorum(t)
	if err := Recover(patience(t), c.offline("c", ""), 0); err != nil {
		t.Fatal(err)
	}
	first := c.open(t, "c")
	wants(t, Follow(patience(t), c.offline("d", "log"), first.Addr()), errCrash)
	closed(t, first)
	if err := Recover(patience(t), c.offline("b", ""), 0); err != nil {
		t.Fatal(err)
	}
	second := c.open(t, "b")
	register(t, second)
	if err := Follow(patience(t), c.offline("d", ""), second.Addr()); err != nil {
		t.Fatal(err)
	}
	if d := c.open(t, "d"); d.Lineage() != second.Lineage() {
		t.Errorf("d has lineage %x", d.Lineage())
	}
	wants(t, Recover(patience(t), c.offline("a", ""), 0), ErrEpoch, "--follow "+second.Addr()) // b and d say so
}

// TestHalfMark: a mark that does not say what was before it is refused.
func TestHalfMark(t *testing.T) {
	c, _ := lostQuorum(t)
	o := c.offline("a", "")
	m, err := loadMember(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Unfinished = stepRecover
	if err := m.save(o.Dir); err != nil {
		t.Fatal(err)
	}
	wants(t, Recover(patience(t), o, 0), ErrIdentity, "member.json")
	wants(t, Follow(patience(t), o, "127.0.0.1:1"), ErrIdentity, "member.json")
}
