package node

import (
	"fmt"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Exposure says how much of a site's capacity the federation may use (step 4):
// max(0, ⌊(1−θ)·capacity⌋ − home use − reserve) per machine, home use being
// what was started outside the log. θ is 0 for handlers that account exactly
// and SharedThreshold for machines that others use too (the paper's 30 %).
type Exposure struct {
	// ReserveCores are whole cores kept back for the site's own use, taken
	// from the machines in the order of their names.
	ReserveCores int64
	// SharedThreshold is θ for shared machines, in percent.
	SharedThreshold int64
}

// DefaultExposure keeps nothing back and uses the paper's threshold.
func DefaultExposure() Exposure { return Exposure{SharedThreshold: 30} }

// Validate names the first value out of its range.
func (e Exposure) Validate() error {
	if e.ReserveCores < 0 {
		return fmt.Errorf("reserve is %d cores: must be 0 or more", e.ReserveCores)
	}
	if e.SharedThreshold < 0 || e.SharedThreshold > 100 {
		return fmt.Errorf("shared threshold is %d%%: must be 0 to 100", e.SharedThreshold)
	}
	return nil
}

// less subtracts, not below zero.
func less(a, b int64) int64 { return max(0, a-b) }

// Open returns what of a machine the federation may fill together with home runs.
func (e Exposure) Open(m executor.Machine) command.Resources {
	percent := int64(100)
	if m.Shared {
		percent -= e.SharedThreshold
	}
	return command.Resources{
		MilliCPU: m.MilliCPU * percent / 100, MemMiB: m.MemMiB * percent / 100,
		GPU: m.GPU * percent / 100,
	}
}

// Exposed computes what is offered of one machine and what is left of the reserve.
func (e Exposure) Exposed(m executor.Machine, home command.Resources, reserve int64) (command.Resources, int64) {
	open := e.Open(m)
	r := command.Resources{
		MilliCPU: less(open.MilliCPU, home.MilliCPU),
		MemMiB:   less(open.MemMiB, home.MemMiB),
		GPU:      less(open.GPU, home.GPU),
	}
	kept := min(reserve, r.MilliCPU)
	r.MilliCPU -= kept
	return r, reserve - kept
}
