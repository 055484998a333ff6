package broker

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/own"
	"github.com/cloudshare/cloudshare/node/jobspec"
)

// Job returns a job that the federation knows, or that runs at home here.
func (b *Broker) Job(ctx context.Context, id fsm.JobID) (node.Job, error) {
	for range 2 { // a job may be published between the two looks
		if j, ok := b.federationJob(id); ok {
			return j, nil
		}
		if id.Site != b.cfg.Site {
			return node.Job{}, b.elsewhere(id.Site, "owner")
		}
		var r own.Record
		found := false
		if err := b.query(ctx, func(c *core.Core) { r, _, found = c.Own().Record(id.Num) }); err != nil {
			return node.Job{}, err
		}
		if found {
			return r.View(b.cfg.Site), nil
		}
	}
	return node.Job{}, b.missingJob(id)
}

func (b *Broker) federationJob(id fsm.JobID) (j node.Job, ok bool) {
	b.cfg.Replica.View(func(s *fsm.State) {
		var v fsm.JobView
		if v, ok = s.Job(id); ok {
			j = b.jobOf(&v)
		}
	})
	return j, ok
}

// jobOf translates a view. REQUIRES: called inside Replica.View.
func (b *Broker) jobOf(v *fsm.JobView) node.Job {
	spec, err := jobspec.SpecOf(v.Spec)
	if err != nil {
		spec = jobspec.Spec{Name: "unreadable: " + err.Error()}
	}
	j := node.Job{
		ID: v.ID, Spec: spec, State: v.State.String(), Reason: v.Reason,
		Durability: node.DurableFederation, Counts: node.CountsOf(v.Counts),
		SubmittedAt: time.UnixMilli(v.Spec.CreatedMs),
	}
	if v.State == fsm.Queued {
		if d, ok := b.cfg.Replica.Feed().LastDecline(v.ID); ok {
			j.Reason += "; " + d.String()
		}
	}
	j.StartedAt = b.cfg.Replica.WallOf(v.StartedMs, j.SubmittedAt)
	j.EndedAt = b.cfg.Replica.WallOf(v.EndedMs, j.StartedAt)
	return j
}

// Sites returns all sites the federation ever knew.
func (b *Broker) Sites() []node.Site {
	voters := map[string]bool{}
	for _, v := range b.cfg.Log.Status().Voters {
		voters[v] = true
	}
	var sites []node.Site
	b.cfg.Replica.View(func(s *fsm.State) {
		for _, v := range s.Sites() {
			sites = append(sites, node.Site{SiteView: v, Voter: voters[v.ID]})
		}
	})
	return sites
}

// Status tells what the broker knows; with hash it hashes the state, which
// takes time in a large federation but holds nothing up.
func (b *Broker) Status(hash bool) node.Status {
	log := b.cfg.Log.Status()
	st := node.Status{
		Site: b.cfg.Site, Lead: log.Lead, Term: log.Term, Voters: log.Voters, Members: log.Members,
		Version: b.cfg.Version,
	}
	b.cfg.Replica.View(func(s *fsm.State) {
		st.Index = s.Index()
		st.Federation = uuid.UUID(s.Federation()).String()
	})
	if hash {
		index, sum := b.cfg.Replica.Hash()
		st.HashIndex, st.Hash = index, hex.EncodeToString(sum[:])
	}
	for _, h := range b.cfg.Handlers {
		trouble := b.core.MachineTroubles().Of(h.Name(), executor.Boottime())
		st.Handlers = append(st.Handlers, node.HandlerStatus{Name: h.Name(), Status: h.Status(), Trouble: trouble})
	}
	st.Incarnation = b.incarnation()
	st.Estimates = b.estimates.Calibration()
	st.Compared = b.compared()
	if b.cfg.Outputs != nil {
		st.Outputs = b.cfg.Outputs()
	}
	return st
}

// JobFacts returns the facts of the jobs that this broker knows, with one look
// at the state and at most one at its home jobs. A stopping broker knows fewer.
func (b *Broker) JobFacts(ctx context.Context, ids []fsm.JobID) map[fsm.JobID]node.JobFacts {
	out := make(map[fsm.JobID]node.JobFacts, len(ids))
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
	err := b.query(ctx, func(c *core.Core) {
		for _, num := range own {
			if js, ok := c.Own().Spec(num); ok {
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

func factsOf(js fsm.JobSpec) node.JobFacts {
	spec, err := jobspec.SpecOf(js)
	if err != nil {
		return node.JobFacts{SubmittedAt: time.UnixMilli(js.CreatedMs)}
	}
	return node.JobFacts{Name: spec.Name, Labels: spec.Labels, SubmittedAt: time.UnixMilli(js.CreatedMs)}
}

// Quota returns what this site uses of its quotas.
func (b *Broker) Quota() (own []fsm.Use) {
	b.cfg.Replica.View(func(s *fsm.State) {
		v, _ := s.Quotas(b.cfg.Site)
		own = v.Uses
	})
	return own
}

// Quotas returns what each site uses of its quotas, by site.
func (b *Broker) Quotas() (all []fsm.QuotaView) {
	b.cfg.Replica.View(func(s *fsm.State) { all = s.AllQuotas() })
	return all
}
