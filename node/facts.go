package node

import (
	"context"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
)

// JobFacts is what never changes of a job, for those who keep records.
type JobFacts struct {
	Name        string
	Labels      map[string]string
	SubmittedAt time.Time
}

// JobFacts returns the facts of the jobs that this broker knows, with one look
// at the state and at most one at its home jobs. A stopping broker knows fewer.
func (b *Broker) JobFacts(ctx context.Context, ids []fsm.JobID) map[fsm.JobID]JobFacts {
	out := make(map[fsm.JobID]JobFacts, len(ids))
	var own []uint64
	b.cfg.Replica.View(func(s *fsm.State) {
		for _, id := range ids {
			if v, ok := s.Job(id); ok {
				out[id] = factsOf(v.Spec)
			} else if id.Site == b.cfg.Site {
				own = append(own, id.Num)
			}
		}
	})
	if len(own) == 0 {
		return out
	}
	specs := make([]fsm.JobSpec, 0, len(own)) // the loop's until ask returns
	err := b.ask(ctx, func(c *core) {
		for _, num := range own {
			if js, ok := c.ownSpec(num); ok {
				specs = append(specs, js)
			}
		}
	})
	if err == nil {
		for i := range specs {
			out[fsm.JobID{Site: b.cfg.Site, Num: specs[i].Num}] = factsOf(specs[i])
		}
	}
	return out
}

func factsOf(js fsm.JobSpec) JobFacts {
	spec, err := SpecOf(js)
	if err != nil {
		return JobFacts{SubmittedAt: time.UnixMilli(js.CreatedMs)}
	}
	return JobFacts{spec.Name, spec.Labels, time.UnixMilli(js.CreatedMs)}
}
