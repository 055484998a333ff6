package study

import (
	"context"
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/node/sim"
)

// Withheld is what a hostile leader withholds of all others, besides ordering its own first.
type Withheld struct {
	Seconds int64
	Ends    bool // reports of ended tasks, too
	// Selective: only while that is for its good; see sim.HostileLeader.
	Selective bool
	// Variants of each entry are tried, with Lends among equals those in which its machines run more; see there.
	Variants int
	Lends    bool
}

// String names it in tables.
func (w Withheld) String() string {
	if w.Seconds == 0 {
		return "nothing"
	}
	name := "submissions"
	if w.Variants > 0 {
		name = fmt.Sprintf("best of %d", w.Variants)
	}
	if w.Lends {
		name += ", lends"
	}
	if w.Ends {
		name += ", ends"
	}
	if w.Selective {
		name += ", selective"
	}
	return name
}

// Led is what it came to in one instance that one of the sites led, and not as an honest leader would.
type Led struct {
	Log    string
	Seed   uint64
	Index  int // of the instance in its study
	Period int
	Policy string
	Withheld
	// Own and Others are of the leader's tasks and of all others', under an honest leader; OwnLed and OthersLed with
	// it.
	Own, Others, OwnLed, OthersLed Waited
}

// Waited sums up tasks of the federation; those of machines' own users are none.
type Waited struct {
	Tasks int64
	Wait  int64 // seconds
	Work  int64 // core-seconds
	// WorkWait is Σ width · run · wait. Once all tasks have run, ψ = Σ width · run · (T − start − (run − 1)/2) is a
	// constant of the work less this.
	WorkWait int64
	// Utility is ψ when the later of the two runs that are compared has ended.
	Utility float64
}

func (w *Waited) add(t *sim.Task, start, end int64) {
	work := t.Width * t.Run
	w.Tasks++
	w.Wait += start - t.Release
	w.Work += work
	w.WorkWait += work * (start - t.Release)
	w.Utility += float64(work) * (float64(end-start) - float64(t.Run-1)/2)
}

// Leaders has one site order the entries of each instance for its own good, in each of the ways, under each policy,
// and calls save for what came of it, one call at a time, in no order. The site is drawn among those that have tasks
// of the federation. It ends with the first error, or with ctx.
func (s *Study) Leaders(ctx context.Context, ways []Withheld, workers int, save func([]Led)) error {
	if err := s.Validate(); err != nil {
		return err
	}
	keys := s.keys()
	play := func(ctx context.Context, i int) ([]Led, error) { return s.led(ctx, i, keys[i], ways) }
	return each(ctx, workers, keys, nil, play, func(led []Led) error {
		save(led)
		return nil
	})
}

// led plays one instance.
func (s *Study) led(ctx context.Context, index int, k key, ways []Withheld) (all []Led, err error) {
	in, _, err := s.instance(k)
	if err != nil {
		return nil, err
	}
	leader := s.liars(index, &in.Case, 1)
	if leader == 0 {
		return nil, nil
	}
	for _, policy := range append(slices.Clone(s.Policies), s.Beyond...) {
		in.Params.Policy, in.Params.ClaimedHome, in.Leader = policy, false, nil // as it is live
		honest, err := sim.PlayContext(ctx, &in.Case)
		if err != nil {
			return nil, err
		}
		for _, way := range ways {
			l := Led{
				Log: s.Workloads[k.workload].Name, Seed: s.Setup.Seed, Index: index, Period: k.period, Policy: policy,
				Withheld: way,
			}
			in.Leader = &sim.HostileLeader{
				Site: leader.First(), Withhold: way.Seconds, Ends: way.Ends, Selective: way.Selective,
				Variants: way.Variants, Lends: way.Lends,
			}
			out, err := sim.PlayContext(ctx, &in.Case)
			if err != nil {
				return nil, fmt.Errorf("instance %d, led by %s: %s, %+v: %w", index, sim.SiteName(leader.First()), policy, way, err)
			}
			end := max(lastEnd(&in.Case, honest), lastEnd(&in.Case, out))
			l.Own, l.Others = waited(&in.Case, honest, leader, end)
			l.OwnLed, l.OthersLed = waited(&in.Case, out, leader, end)
			all = append(all, l)
		}
	}
	return all, nil
}

// lastEnd returns when a run's last task ends.
func lastEnd(c *sim.Case, out *sim.Outcome) (end int64) {
	for i := range c.Tasks {
		end = max(end, out.Start[i]+c.Tasks[i].Run)
	}
	return end
}

// waited sums up the leader's tasks and all others', with utilities at a time.
func waited(c *sim.Case, out *sim.Outcome, leader sim.Coalition, end int64) (own, others Waited) {
	for i := range c.Tasks {
		t := &c.Tasks[i]
		switch {
		case t.Background:
		case leader.Has(t.Site):
			own.add(t, out.Start[i], end)
		default:
			others.add(t, out.Start[i], end)
		}
	}
	return own, others
}
