package container

import (
	"errors"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/executor/container/engine"
)

// presence is what is known of the engine: whether it answers, and what its machine has. All but silent is
// guarded by Handler.mu.
type presence struct {
	up     chan struct{} // closed as long as the engine answers
	away   error         // why it does not; nil = it does
	info   engine.Info   // of when it last did
	reach  reach         // of other sites' containers
	looked chan struct{} // closed once the engine was asked for the first time
	silent chan struct{} // capacity 1: a call was not answered
	// noOutbound is why a network that is only outbound could not be made; nil = not met.
	noOutbound error
	// unbounded is why the engine refused the latest container for its bounds of disks; nil = it did not, or one with
	// such bounds has started since.
	unbounded error
}

func newPresence(r reach) presence {
	return presence{
		reach: r,
		up:    make(chan struct{}), looked: make(chan struct{}), silent: make(chan struct{}, 1),
		away: errors.New("not asked yet"),
	}
}

// setUp notes that the engine answers.
func (p *presence) setUp(info engine.Info, r reach) {
	p.info, p.reach, p.away, p.noOutbound = info, r, nil, nil
	close(p.up)
	p.answered()
}

// setAway notes that it does not. wasUp: it did before; first: it was not asked before.
func (p *presence) setAway(err error) (wasUp, first bool) {
	wasUp, first = isClosed(p.up), !isClosed(p.looked)
	if wasUp {
		p.up = make(chan struct{})
	}
	p.away = err
	p.answered()
	return wasUp, first
}

// answered: it is known whether the engine is there.
func (p *presence) answered() {
	if !isClosed(p.looked) {
		close(p.looked)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// machine returns what was configured, as far as the engine's machine has it.
func (p *presence) machine(c *Config) executor.Machine {
	mem := p.info.MemTotal >> 20
	if c.MemMiB != 0 {
		mem = min(mem, c.MemMiB)
	}
	return executor.Machine{
		Name: machineName, Runs: executor.RunsImages, Network: p.network(c),
		Resources: executor.Resources{MilliCPU: int64(c.Cores) * 1000, MemMiB: mem},
	}
}

// limitBy returns how tasks are held now: by CPUs where the site wants them pinned, or the
// engine can do nothing else.
func (p *presence) limitBy(c *Config) limit {
	switch {
	case c.CPUs != nil:
		return byCPUs
	case p.info.CPUQuota:
		return byQuota
	case p.info.CPUSet:
		return byCPUs
	}
	return byNothing
}
