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

// Names of the policies, as users write them.
const (
	OrigDirect  = "ORIG_DIRECT"  // DirectContr with ψ
	RelDirect   = "REL_DIRECT"   // DirectContr with ψ'
	SimplDirect = "SIMPL_DIRECT" // DirectContr with ψ'', the default
	FairShare   = "FAIRSHARE"    // smallest usage / share
	RoundRobin  = "ROUND_ROBIN"  // never chosen first, else the oldest latest start
	Default     = SimplDirect
)

// Mode says how a task that still runs counts.
type Mode uint8

const (
	// Partial counts a running task with e := min(e, now). The default.
	Partial Mode = iota
	// Completed counts a task only once it ended.
	Completed
)

// Policy is the one interface all algorithms implement.
type Policy interface {
	// Rank returns the place of the account's site at log time now (quanta
	// since genesis). Greater goes first; equal ranks are a tie.
	Rank(a *Account, now int64) Rank
}

// Rank is an exact fraction Num/Den, Den ≥ 0; Den = 0 ranks last.
// Ranks compare by cross multiplication (see Compare).
type Rank struct {
	Num Int128
	Den int64
}
