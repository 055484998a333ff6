package estimate

import (
	"math"
	"math/big"
	"slices"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/sched"
)

// use is what happened on a site's machines in some time.
type use struct {
	freed int64   // milli-cores of attempts that ended
	ends  int     // attempts
	held  float64 // milli-cores in use times milliseconds
}

func (u *use) plus(o use) {
	u.freed += o.freed
	u.ends += o.ends
	u.held += o.held
}

// series is use by time, the latest len(slots) intervals of width ms.
type series struct {
	width int64
	slots []use
	last  int64 // number of the newest interval
}

func (s *series) add(ms int64, u use) {
	s.slot(ms).plus(u)
}

// slot moves the series on to a moment, if it is later, and returns its interval.
func (s *series) slot(ms int64) *use {
	n := ms / s.width
	for k := max(s.last+1, n-int64(len(s.slots))+1); k <= n; k++ {
		s.slots[k%int64(len(s.slots))] = use{}
	}
	s.last = max(s.last, n)
	return &s.slots[n%int64(len(s.slots))]
}

// flow is a site's use: the last ten minutes finely, the last twelve hours
// coarsely. Log times.
type flow struct{ fine, coarse series }

func newFlow() *flow {
	return &flow{
		fine:   series{width: 10_000, slots: make([]use, 60)},
		coarse: series{width: 600_000, slots: make([]use, 72)},
	}
}

func (f *flow) add(ms int64, u use) {
	f.fine.add(ms, u)
	f.coarse.add(ms, u)
}

// enoughEnds are as many as a rate is made of, if they are there.
const enoughEnds = 30

// recent sums the flows back to where there were enough ends: over minutes where
// much ends, over hours where little does.
func recent(flows []*flow, now int64) use {
	if u := back(flows, now, func(f *flow) *series { return &f.fine }); u.ends >= enoughEnds {
		return u
	}
	return back(flows, now, func(f *flow) *series { return &f.coarse })
}

func back(flows []*flow, now int64, of func(*flow) *series) (sum use) {
	for i := 0; len(flows) > 0 && i < len(of(flows[0]).slots) && sum.ends < enoughEnds; i++ {
		for _, f := range flows {
			s := of(f)
			if n := now/s.width - int64(i); n >= 0 && n <= s.last && n > s.last-int64(len(s.slots)) {
				sum.plus(s.slots[n%int64(len(s.slots))])
			}
		}
	}
	return sum
}

// aheadOf returns how many milli-cores of tasks will start before the job's next one.
// While its site's earlier tasks start, each other site starts as many, plus the
// leader that it has now. held is the mean time for which a core is held, in ms.
func aheadOf(v *fsm.WhyView, inUse, held float64) float64 {
	me := slices.IndexFunc(v.Claims, func(c fsm.Claim) bool { return c.Site == v.Job.Site })
	own := float64(v.Ahead.MilliCPU)
	for _, c := range v.Claims[:me] {
		own -= float64(c.MilliCPU)
	}
	ahead := own
	for i := range v.Claims {
		if c := &v.Claims[i]; i != me {
			ahead += min(max(own+leadOf(v, &v.Claims[me], c, inUse, held), 0), float64(c.MilliCPU))
		}
	}
	return ahead
}

// leadOf returns how many milli-cores of tasks another site starts before its turn is
// equal to ours; negative if ours is the leader.
func leadOf(v *fsm.WhyView, me, other *fsm.Claim, inUse, held float64) float64 {
	p := &v.Params
	if sched.IsProjected(p.Policy) {
		return unitsAhead(v, me, other)
	}
	if p.RateCPU == 0 || held <= 0 {
		return 0
	}
	quanta := float64(p.QuantumMs) / float64(p.RateCPU) // of a weight·quantum, in milli-core ms
	gap := float(other.Rank.Num) - float(me.Rank.Num)
	switch p.Policy {
	case sched.RoundRobin:
		return math.Copysign(float64(v.Need.MilliCPU), gap)
	case sched.FairShare:
		switch {
		case me.Share <= 0 || other.Share <= 0:
			return float64(min(max(other.Share, 0), 1)-min(max(me.Share, 0), 1)) * math.MaxInt32
		}
		gap = (float(other.Rank.Num)/float64(other.Share) - float(me.Rank.Num)/float64(me.Share)) * float64(other.Share)
		return gap * quanta / held
	case sched.RelDirect: // a core-millisecond of now weighs about as much as the federation is old
		return gap / 2 * quanta / held * float64(p.QuantumMs) / max(float64(v.TimeMs), 1)
	case sched.OrigDirect: // it weighs by its age: ψ of running work grows with the square
		return math.Copysign(math.Sqrt(math.Abs(gap)*quanta*float64(p.QuantumMs)*inUse), gap) / held
	}
	return gap / 2 * quanta / held
}

// unitsAhead is leadOf under the policies by projected waits: each start takes the
// same off its site's rank.
func unitsAhead(v *fsm.WhyView, me, other *fsm.Claim) float64 {
	gap := other.Rank.Num.Sub(me.Rank.Num)
	if v.PerUnit.Sign() <= 0 {
		return float64(gap.Sign()) * math.MaxInt32
	}
	return float(gap) / float(v.PerUnit) * 1000
}

func float(x sched.Int128) float64 {
	n, _ := new(big.Float).SetInt(bigOf(x)).Float64()
	return n
}

func bigOf(x sched.Int128) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(x.Hi), 64)
	return n.Add(n, new(big.Int).SetUint64(x.Lo))
}
