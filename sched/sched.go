// Package sched decides whose turn it is: step 5 of a job's way.
//
// A [Policy] turns one site's account into a rank at a moment of log time; the
// waiting site with the greatest rank goes first. Everything here is a pure
// function over integers: no clock, no randomness, no floats, no map order.
// It imports the standard library only.
//
// Formulas are those of "Fair non-monetary scheduling in federated clouds"
// (CrossCloud'18); the constant-size sums that replace a history are derived
// in DESIGN.md.
package sched

import (
	"errors"
	"fmt"
	"strings"
)

// Names of the policies, as users write them.
const (
	OrigDirect  = "ORIG_DIRECT"  // DirectContr with ψ
	RelDirect   = "REL_DIRECT"   // DirectContr with ψ′
	SimplDirect = "SIMPL_DIRECT" // DirectContr with ψ″, the default
	FairShare   = "FAIRSHARE"    // smallest usage / share
	RoundRobin  = "ROUND_ROBIN"  // never chosen first, else the oldest latest start
	Default     = SimplDirect
)

// Errors of New and ParseMode; both name what would be valid.
var (
	ErrUnknownPolicy = errors.New("unknown policy")
	ErrUnknownMode   = errors.New("unknown running mode")
)

// Mode says how a task that still runs counts.
type Mode uint8

const (
	// Partial counts a running task with e := min(e, now). The default.
	Partial Mode = iota
	// Completed counts a task only once it ended.
	Completed
)

var modeNames = [...]string{Partial: "partial", Completed: "completed"}

// Valid reports whether m is one of the modes.
func (m Mode) Valid() bool { return int(m) < len(modeNames) }

// String returns "partial" or "completed".
func (m Mode) String() string {
	if !m.Valid() {
		return fmt.Sprintf("mode(%d)", uint8(m))
	}
	return modeNames[m]
}

// ParseMode reads what String writes; anything else is ErrUnknownMode.
func ParseMode(s string) (Mode, error) {
	for m, name := range modeNames {
		if s == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("%w %.40q: want one of %s", ErrUnknownMode, s, strings.Join(modeNames[:], ", "))
}

// Policy is the one interface all algorithms implement.
type Policy interface {
	// Rank returns the place of the account's site at log time now (quanta
	// since genesis). Greater goes first; equal ranks are a tie.
	Rank(a *Account, now int64) Rank
}

// Names returns the names of the paper's policies in the order of its table; see
// Projected for the others.
func Names() []string {
	return []string{OrigDirect, RelDirect, SimplDirect, FairShare, RoundRobin}
}

// New returns the policy of that name. Errors: ErrUnknownPolicy, ErrUnknownMode.
func New(name string, mode Mode) (Policy, error) {
	if !mode.Valid() {
		return nil, fmt.Errorf("%w %d: want 0 (%s) or 1 (%s)", ErrUnknownMode, mode, Partial, Completed)
	}
	switch name {
	case OrigDirect, RelDirect, SimplDirect:
		return direct{utility: utilityOf(name), mode: mode}, nil
	case FairShare:
		return fairShare{mode: mode}, nil
	case RoundRobin:
		return roundRobin{}, nil
	case Alone, CE, Shapley:
		return projected{}, nil
	}
	return nil, fmt.Errorf("%w %.40q: want one of %s", ErrUnknownPolicy, name, strings.Join(append(Names(), Projected()...), ", "))
}

// Standing returns a site's contribution, utility and priority (contribution −
// utility) at log time now, exact and undoubled, in Unit(name). FAIRSHARE and
// ROUND_ROBIN have no utility of their own: theirs is that of SIMPL_DIRECT.
// Over all sites of a federation the priorities sum to zero.
//
// REQUIRES: New accepts name and mode.
func Standing(name string, mode Mode, a *Account, now int64) (contribution, utility, priority Int128) {
	u := utilityOf(name)
	contribution = u.doubled(&a.Gave, &a.GaveRun, mode, now).Half()
	utility = u.doubled(&a.Used, &a.UsedRun, mode, now).Half()
	return contribution, utility, contribution.Sub(utility)
}

// Unit names the unit of a policy's standings. A weight is milli-cores at the
// default charge rates, and a quantum is 1 ms in a live federation.
func Unit(name string) string {
	if utilityOf(name) == simpl {
		return "weight·quantum"
	}
	return "weight·quantum²"
}
