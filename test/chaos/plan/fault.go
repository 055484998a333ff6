package plan

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind of a fault.
type Kind string

// The kinds. After For, a fault is taken back: what was killed is started,
// what was stopped goes on, what was cut is healed.
const (
	Kill      Kind = "kill"       // kill -9 of the broker; its tasks go on
	KillAll   Kind = "kill-all"   // of all brokers at once
	Crash     Kind = "crash"      // kill -9 of everything at the site
	Power     Kind = "power"      // Crash, and what was not synced is lost
	Stop      Kind = "stop"       // SIGSTOP of the broker
	Restart   Kind = "restart"    // TERM, then start
	Cut       Kind = "cut"        // nothing in, nothing out
	CutOut    Kind = "cut-out"    // nothing out
	CutIn     Kind = "cut-in"     // nothing in
	CutGossip Kind = "cut-gossip" // the gossip port, both ways
	CutPeer   Kind = "cut-peer"   // the peer port (the log), both ways

	// Restarts that tell others an address, which is put right after For.
	WrongAddress Kind = "wrong-address" // that nobody has
	OtherAddress Kind = "other-address" // that is another site's

	// Restarts after For at an address that stays, until the next of them.
	Move     Kind = "move"     // on other ports
	MoveAll  Kind = "move-all" // all brokers at once, on other peer ports
	Spelling Kind = "spelling" // the same address, written differently

	SlowDisk Kind = "slow-disk" // each sync takes longer

	// Hostile has the run's hostile site, whoever else is under a fault, say what no member says, and as the leader do
	// what none does.
	Hostile Kind = "hostile"
)

// Role tells who is meant when the fault comes.
type Role string

// The roles.
const (
	Lead      Role = "lead"
	Follower  Role = "follower"
	Executing Role = "executing" // runs most for others, preferably no leader
	Some      Role = "some"      // the site with the fault's number
	Everyone  Role = "everyone"
)

// Fault hits one site, or all.
type Fault struct {
	At, For time.Duration
	Kind    Kind
	Role    Role
	Number  int // of a site, from 1: decides between several of a role
}

// String returns one line, without the time.
func (f Fault) String() string {
	return fmt.Sprintf("%s %s (%d) for %s", f.Kind, f.Role, f.Number, seconds(f.For))
}

// drawn says how long faults of a kind last and how often they come.
var drawn = []struct {
	kind      Kind
	weight    int
	low, high time.Duration
}{
	{Kill, 14, 300 * time.Millisecond, 5 * time.Second},
	{Kill, 8, 8 * time.Second, 14 * time.Second}, // longer than lease and margin
	{KillAll, 4, 300 * time.Millisecond, 4 * time.Second},
	{Crash, 8, time.Second, 12 * time.Second},
	{Power, 8, time.Second, 10 * time.Second},
	{Stop, 10, 500 * time.Millisecond, 4 * time.Second}, // shorter than the lease
	{Stop, 10, 8 * time.Second, 14 * time.Second},
	{Restart, 8, 100 * time.Millisecond, 2 * time.Second},
	{Cut, 8, time.Second, 5 * time.Second},
	{Cut, 10, 8 * time.Second, 14 * time.Second},
	{CutOut, 8, 2 * time.Second, 12 * time.Second},
	{CutIn, 8, 2 * time.Second, 12 * time.Second},
	{CutGossip, 6, 3 * time.Second, 12 * time.Second},
	{CutPeer, 6, 3 * time.Second, 12 * time.Second},
	{WrongAddress, 5, time.Second, 10 * time.Second},
	{OtherAddress, 5, time.Second, 10 * time.Second},
	{Move, 5, 100 * time.Millisecond, 5 * time.Second},
	{MoveAll, 3, 100 * time.Millisecond, 3 * time.Second},
	{Spelling, 5, 100 * time.Millisecond, 2 * time.Second},
	{SlowDisk, 8, 3 * time.Second, 12 * time.Second},
	{Hostile, 60, 4 * time.Second, 12 * time.Second},
}

// faults draws one after the other; with five sites often a second one while
// the first lasts, and with any number a restart in its middle.
func faults(r *rand.Rand, size Size) []Fault {
	var out []Fault
	for at := between(r, 2*time.Second, 5*time.Second); at < size.Length-time.Second; {
		f := fault(r, at, size)
		out = append(out, f)
		second := pick(r, 55, 45)
		if second == 1 && f.Role != Everyone {
			g := fault(r, at+between(r, 0, f.For), size)
			if size.Sites < 5 || g.Role == Everyone {
				g.Kind, g.Role, g.For = Restart, Some, between(r, 100*time.Millisecond, time.Second)
			}
			out = append(out, g)
			at = max(at, g.At+g.For-f.For)
		}
		at += f.For + between(r, 500*time.Millisecond, 6*time.Second)
	}
	return out
}

func fault(r *rand.Rand, at time.Duration, size Size) Fault {
	weights := make([]int, len(drawn))
	for i, d := range drawn {
		weights[i] = d.weight
		if d.kind == Power && !size.Disks || d.kind == SlowDisk && !size.Slow || d.kind == Hostile && !size.Hostile {
			weights[i] = 0
		}
	}
	d := drawn[pick(r, weights...)]
	f := Fault{At: at, Kind: d.kind, For: between(r, d.low, d.high), Number: 1 + r.IntN(size.Sites)}
	f.Role = []Role{Lead, Follower, Executing, Some}[pick(r, 30, 20, 30, 20)]
	if f.Kind == KillAll || f.Kind == MoveAll {
		f.Role = Everyone
	}
	return f
}
