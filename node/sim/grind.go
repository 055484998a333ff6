package sim

import (
	"bytes"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// MaxVariants bounds how many variants of an entry a leader tries.
const MaxVariants = 64

// Which machine is drawn next follows from the seed, which all know, the number of the decision, and what machines are
// free; no byte of an entry is in it, nor its time, nor the order of its commands. So a leader that wants other draws
// can only change which commands stand in the entry: it lays those of some sites aside for a moment. A grinding one
// tries variants of that on a copy of the state, and takes the best.

// grind chooses whose proposals are laid aside in the next entry.
func (p *player) grind() error {
	l := p.c.Leader
	p.aside = 0
	if l == nil || l.Variants < 2 || !p.isWorthGrinding() {
		return nil
	}
	var now bytes.Buffer
	frozen := p.state.Snapshot()
	defer frozen.Release()
	if err := frozen.Write(&now); err != nil {
		return fmt.Errorf("copy the state: %w", err)
	}
	best, tried := uint64(0), map[uint64]bool{}
	var most int64
	for v := range uint64(l.Variants) {
		aside := uint64(0) // the first one is what an honest leader orders
		if v > 0 {
			aside = fsm.Mix(p.c.Seed^p.state.Index()<<8^v) & (1<<len(p.sites) - 1) &^ (1 << l.Site)
		}
		if tried[aside] {
			continue
		}
		tried[aside] = true
		gain, err := p.tryVariant(now.Bytes(), aside)
		if err != nil {
			return err
		}
		if v == 0 || gain > most {
			best, most = aside, gain
		}
	}
	p.aside = best
	return nil
}

// isWorthGrinding reports whether the leader could lay something of somebody aside.
func (p *player) isWorthGrinding() bool {
	for i, s := range p.sites {
		for _, cmd := range s.proposed {
			if p.c.Leader.withholds(i, cmd.Body, true) {
				return true
			}
		}
	}
	return false
}

// tryVariant returns what an entry is worth to the leader that lays the proposals of some sites aside.
func (p *player) tryVariant(state []byte, aside uint64) (gain int64, err error) {
	s, err := fsm.Restore(bytes.NewReader(state))
	if err != nil {
		return 0, fmt.Errorf("copy the state: %w", err)
	}
	var events []fsm.Event
	s.Observe(&events)
	batch := command.Batch{Term: s.Term(), Elapsed: p.now * 1000}
	for _, i := range p.turns {
		for _, a := range p.sites[i].aside {
			if a.known {
				batch.Commands = append(batch.Commands, a.cmd)
			}
		}
		for _, cmd := range p.sites[i].proposed {
			if aside&(1<<i) == 0 || !p.c.Leader.withholds(i, cmd.Body, true) {
				batch.Commands = append(batch.Commands, cmd)
			}
		}
	}
	if _, err = s.Apply(&batch); err != nil {
		return 0, fmt.Errorf("try an entry: %w", err)
	}
	return p.worth(events), nil
}

// worth is what an entry's assignments are worth to the leader: each core that a task of its own gets counts for more
// than all cores that it lends or keeps.
func (p *player) worth(events []fsm.Event) (worth int64) {
	l := p.c.Leader
	name := SiteName(l.Site)
	for _, e := range events {
		if e.Kind != fsm.EventTaskAssigned {
			continue
		}
		cores := int64(max(e.Count, 1)) * e.Need.MilliCPU
		switch {
		case e.Job.Site == name:
			worth += cores << 20
		case e.Site == name && l.Lends:
			worth += cores
		case e.Site == name:
			worth -= cores
		}
	}
	return worth
}
