package explain

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/sched"
)

// siteText says why one site does not run the job.
func siteText(v *fsm.WhyView, x *fsm.SiteWhy) string {
	switch x.Why {
	case fsm.HinderedFree:
		return fmt.Sprintf("has room for %s now", Plural(x.Slots, "task"))
	case fsm.HinderedTurn:
		return fmt.Sprintf("has room for %s, but %s goes first", Plural(x.Slots, "task"), x.First)
	case fsm.HinderedFull:
		if x.AtMost > 0 {
			return fmt.Sprintf("full: %s runs %s, as many as it may; %s", x.Machine, Plural(uint64(x.AtMost), "task"), nextText(v, x.First))
		}
		return fmt.Sprintf("full: %s short of %s; %s", x.Machine, x.Short, nextText(v, x.First))
	case fsm.HinderedReserved:
		return fmt.Sprintf("%s has room, but is held for %s, which found none for long", x.Machine, x.First)
	case fsm.HinderedDeclined:
		return "declined it; it is asked again after its next offer"
	case fsm.HinderedSuspect:
		if x.InDoubt {
			return "does not answer now: its offers rest; the task may run on there, and twice if another site takes it"
		}
		return "does not answer now: its offers rest"
	case fsm.HinderedShape:
		if x.Short.MilliCPU >= v.Need.MilliCPU { // of no core it lends one
			return fmt.Sprintf("keeps its machines for its own users: %s lends no core, even empty", x.Machine)
		}
		return fmt.Sprintf("too small: even empty, %s would be short of %s", x.Machine, x.Short)
	case fsm.HinderedLabels:
		return fmt.Sprintf("no machine with the labels wanted: %s lacks %s", x.Machine, x.Lacks)
	case fsm.HinderedNetwork:
		return "the job needs a network, which it does not give to others' tasks (its sandbox.network)"
	case fsm.HinderedFiles:
		return "gives no " + x.Lacks
	case fsm.HinderedKind:
		return "its machines run the other kind of task: an image is needed, or none may be named"
	case fsm.HinderedClosed:
		return "offers no machine now"
	case fsm.HinderedLost:
		return "lost: its lease ran out"
	case fsm.HinderedRule:
		return "excluded by the job's sites.only or sites.not"
	case fsm.HinderedUnknown:
		text := "no site of the federation is called so; one that joins under this name would be asked"
		if x.Near != "" {
			text += fmt.Sprintf("; is %s meant?", x.Near)
		}
		return text
	case fsm.HinderedLeft:
		return "left the federation"
	}
	return x.Why.String()
}

// nextText says who takes the next room.
func nextText(v *fsm.WhyView, first command.JobID) string {
	switch first {
	case v.Job:
		return "the next room is this job's"
	case command.JobID{}:
		return "the next room is free for it"
	}
	return fmt.Sprintf("the next room goes to %s", first)
}

// Plural counts things in words: "1 task", "2 tasks".
func Plural(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// turnText says which site goes first, and by how much, in plain units.
func turnText(v *fsm.WhyView) string {
	text := turnOf(v)
	if v.Policy != v.Params.Policy && v.Policy != "" {
		text += fmt.Sprintf(" (by %s: there are too many sites for %s)", v.Policy, v.Params.Policy)
	}
	return text
}

func turnOf(v *fsm.WhyView) string {
	first := &v.Turns[0]
	var me *fsm.TurnView
	for i := range v.Turns {
		if v.Turns[i].Site == v.Job.Site {
			me = &v.Turns[i]
		}
	}
	switch {
	case me == first && len(v.Turns) == 1:
		return fmt.Sprintf("no other site has tasks that want the same machines; %s goes first", me.Site)
	case me == first:
		return fmt.Sprintf("%s goes first: %s; next is %s, %s", me.Site, ground(v, me, "you"), v.Turns[1].Site, ground(v, &v.Turns[1], "it"))
	case first.Tied:
		return fmt.Sprintf("%s goes first: you stand equal, and its tasks wait longer", first.Site)
	}
	return fmt.Sprintf("%s goes first: %s; %s", first.Site, ground(v, first, "it"), ground(v, me, "you"))
}

// ground returns what the policy goes by, for one site; who is "it" or "you".
func ground(v *fsm.WhyView, t *fsm.TurnView, who string) string {
	whose := map[string]string{"it": "its", "you": "your"}[who]
	switch v.Params.Policy {
	case sched.Alone, sched.CE, sched.Shapley:
		return longer(v, t, whose)
	case sched.RoundRobin:
		if !t.Chosen {
			return "none of " + whose + " tasks was ever chosen"
		}
		return fmt.Sprintf("%s last task was chosen %s ago", whose, Plural(t.StartsAgo, "start"))
	case sched.FairShare:
		if t.Share <= 0 {
			return map[string]string{"it": "it contributes", "you": "you contribute"}[who] + " no machine now"
		}
		per, unit := amount(&v.Params, t.Usage, 1)
		used, _ := quantity(per*1000/float64(t.Share), unit, 1)
		return fmt.Sprintf("%s used %s for each core contributed", who, used)
	case sched.OrigDirect:
		text, times := balance(v, t, who, 2)
		return text + ", each counted by its age in " + times
	case sched.RelDirect:
		text, _ := balance(v, t, who, 2)
		return text + ", each counted by how promptly it was served"
	}
	text, _ := balance(v, t, who, 1)
	return text
}

// endless core-hours beyond a fair share are no wait: some coalition without this
// site has no core at all, and its wait counts as without end. The least that a
// site's share may have of that is 1/5544, by SHAPLEY of 12: 7·10⁹ core-hours.
const endless = 1e9

// longer says what a site's tasks wait beyond their fair share.
func longer(v *fsm.WhyView, t *fsm.TurnView, whose string) string {
	if t.Endless {
		return whose + " site has no core, and alone " + whose + " jobs would wait forever"
	}
	n, than := waited(v, t.Excess), "than their fair share of all waiting"
	if n > endless {
		return "without " + whose + " site's cores other sites' jobs would wait forever"
	}
	as := "as long as their fair share of all waiting"
	if v.Policy == sched.Alone {
		lends := map[string]string{"its": "it lends", "your": "you lend"}[whose]
		than, as = "than they would alone on the cores "+lends, "as long as they would alone on the cores "+lends
	}
	by, _ := quantity(math.Abs(n), "core-hours", 1)
	how := by + " longer " + than
	switch {
	case n == 0:
		how = as
	case n < 0:
		how = by + " less " + than
	}
	return fmt.Sprintf("in the federation %s jobs wait %s", whose, how)
}

// waited turns a decimal number of cores·quanta into core-hours.
func waited(v *fsm.WhyView, sum string) float64 {
	f, ok := new(big.Float).SetString(sum)
	if !ok {
		return 0
	}
	n, _ := f.Float64()
	return n * float64(v.Params.QuantumMs) / 3_600_000
}

// balance says what a site lent less what it used, and in which unit of time; power
// 2 is that of a unit times time.
func balance(v *fsm.WhyView, t *fsm.TurnView, who string, power int) (text, times string) {
	n, unit := amount(&v.Params, t.Priority, power)
	by, times := quantity(math.Abs(n), unit, power)
	switch {
	case n > 0:
		return fmt.Sprintf("%s lent %s more than %s used", who, by, who), times
	case n < 0:
		return fmt.Sprintf("%s used %s more than %s lent", who, by, who), times
	}
	return fmt.Sprintf("%s lent as much as %s used", who, who), times
}

// quantity words an amount ≥ 0 of hours to a power: what is small in minutes or
// seconds, so that it reads without an exponent.
func quantity(n float64, unit string, power int) (text, times string) {
	times = "hours"
	for _, smaller := range []string{"minutes", "seconds"} {
		if n > 0 && n < 0.1 {
			n, times = n*math.Pow(60, float64(power)), smaller
		}
	}
	return figure(n) + " " + strings.Replace(unit, "hours", times, 1), times
}

// amount turns a decimal sum of weight·quantum^power into hours: core-hours if
// cores alone are charged for.
func amount(p *command.Params, sum string, power int) (n float64, unit string) {
	f, ok := new(big.Float).SetString(sum)
	if !ok {
		return 0, "units"
	}
	n, _ = f.Float64()
	n *= math.Pow(float64(p.QuantumMs)/3_600_000, float64(power))
	switch {
	case p.RateCPU == 0:
		return n, "charged units·hours"
	case p.RateMem != 0 || p.RateGPU != 0:
		return n / 1000 / float64(p.RateCPU), "core-hours' worth"
	}
	return n / 1000 / float64(p.RateCPU), "core-hours"
}

// figure has three digits that count, and no exponent.
func figure(n float64) string {
	switch {
	case n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n > 0 && n < 0.001:
		return "under 0.001"
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

// ableSites counts the sites that can run the job now, or once they have room
// and it is its turn, and the tasks that they have room for.
func ableSites(v *fsm.WhyView) (able int, free uint64) {
	for i := range v.Sites {
		switch x := &v.Sites[i]; x.Why {
		case fsm.HinderedFree:
			able, free = able+1, free+x.Slots
		case fsm.HinderedTurn, fsm.HinderedFull, fsm.HinderedReserved:
			able++
		default:
		}
	}
	return able, free
}

// summaryOf returns the whole answer in a line.
func summaryOf(v *fsm.WhyView, e node.Estimate) string {
	able, free := ableSites(v)
	ahead := v.Ahead.Own + v.Ahead.Others
	switch {
	case able == 0 && v.Unfit != "":
		return "no site can run it now: " + v.Unfit
	case able == 0:
		return "no site can run it now; the reasons are given by site"
	case free > 0:
		return fmt.Sprintf("%s of %d would start at once", Plural(min(free, uint64(v.Waiting)), "task"), v.Waiting)
	case ahead == 0:
		return "it is next: it waits for a machine to become free" + whenText(e)
	}
	about := ""
	if !v.Ahead.Exact {
		about = "about "
	}
	return fmt.Sprintf("%s%s with %s go first as things stand, %d of its own site%s",
		about, Plural(ahead, "task"), command.Resources{MilliCPU: v.Ahead.MilliCPU}, v.Ahead.Own, whenText(e))
}

// staleSummary is summaryOf for facts of some time ago: it says nothing of now.
func staleSummary(v *fsm.WhyView) string {
	switch able, free := ableSites(v); {
	case able == 0 && v.Unfit != "":
		return "no site could run it: " + v.Unfit
	case able == 0:
		return "no site could run it; the reasons are given by site"
	case free > 0:
		return fmt.Sprintf("there was room for %s of %d", Plural(min(free, uint64(v.Waiting)), "task"), v.Waiting)
	}
	return fmt.Sprintf("%s stood before it, %d of its own site", Plural(v.Ahead.Own+v.Ahead.Others, "task"), v.Ahead.Own)
}

// whenText words an estimate.
func whenText(e node.Estimate) string {
	if e.Unknown != "" {
		return "; when is not known: " + e.Unknown
	}
	return fmt.Sprintf("; starts within %s with even odds, mostly within %s, from the last %d waits", rounded(e.P50), rounded(e.P90), e.Waits)
}

// rounded returns a duration in one unit: more would promise too much.
func rounded(d time.Duration) string {
	for _, u := range []struct {
		until, unit time.Duration
		name        string
	}{
		{90 * time.Second, time.Second, "s"}, {90 * time.Minute, time.Minute, "min"}, {36 * time.Hour, time.Hour, "h"},
	} {
		if d < u.until {
			return fmt.Sprintf("%d %s", max(1, int(math.Ceil(float64(d)/float64(u.unit)))), u.name)
		}
	}
	return fmt.Sprintf("%d days", int(math.Ceil(d.Hours()/24)))
}
