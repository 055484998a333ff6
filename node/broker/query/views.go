package query

import (
	"context"
	"errors"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/core"
	"github.com/cloudshare/cloudshare/node/core/own"
	"github.com/cloudshare/cloudshare/node/jobspec"
	"github.com/cloudshare/cloudshare/node/seal"
)

// Job returns a job that the federation knows, or that runs at home here.
func (rd *Reader) Job(ctx context.Context, id command.JobID) (node.Job, error) {
	for range 2 { // a job may be published between the two looks
		if j, ok := rd.federationJob(id); ok {
			return j, nil
		}
		if id.Site != rd.site {
			return node.Job{}, rd.Elsewhere(id.Site, "owner")
		}
		var r own.Record
		found := false
		if err := rd.query(ctx, func(c *core.Core) { r, _, found = c.Own().Record(id.Num) }); err != nil {
			return node.Job{}, err
		}
		if found {
			return r.View(rd.site, rd.sealer), nil
		}
	}
	return node.Job{}, rd.missingJob(id)
}

func (rd *Reader) federationJob(id command.JobID) (j node.Job, ok bool) {
	rd.replica.View(func(s *fsm.State) {
		var v fsm.JobView
		if v, ok = s.Job(id); ok {
			j = rd.jobOf(&v)
		}
	})
	return j, ok
}

// jobOf translates a view. REQUIRES: called inside Replica.View.
func (rd *Reader) jobOf(v *fsm.JobView) node.Job {
	spec, sealed := rd.specOf(&v.Spec, v.ID.Site)
	j := node.Job{
		ID: v.ID, Spec: spec, Sealed: sealed, State: v.State.String(), Reason: v.Reason,
		Durability: node.DurableFederation, Counts: node.CountsOf(v.Counts, 0),
		SubmittedAt: time.UnixMilli(v.Spec.CreatedMs),
	}
	if v.State == fsm.Queued && v.Counts[fsm.Queued] > 0 {
		if d, ok := rd.replica.Feed().LastDecline(v.ID); ok {
			j.Reason += "; " + d.String()
		}
	}
	j.StartedAt = rd.replica.WallOf(v.StartedMs, j.SubmittedAt)
	j.EndedAt = rd.replica.WallOf(v.EndedMs, j.StartedAt)
	return j
}

// Sites returns all sites the federation ever knew.
func (rd *Reader) Sites() []node.Site {
	voters := map[string]bool{}
	for _, v := range rd.log.Status().Voters {
		voters[v] = true
	}
	var sites []node.Site
	rd.replica.View(func(s *fsm.State) {
		for _, v := range s.Sites() {
			sites = append(sites, node.Site{SiteView: v, Voter: voters[v.ID]})
		}
	})
	return sites
}

// JobFacts returns the facts of the jobs that this broker knows, with one look
// at the state and at most one at its home jobs. A stopping broker knows fewer.
func (rd *Reader) JobFacts(ctx context.Context, ids []command.JobID) map[command.JobID]node.JobFacts {
	out := make(map[command.JobID]node.JobFacts, len(ids))
	var own []uint64
	rd.replica.View(func(s *fsm.State) {
		for _, id := range ids {
			if v, ok := s.Job(id); ok {
				out[id] = rd.factsOf(&v.Spec, id.Site)
			} else if id.Site == rd.site {
				own = append(own, id.Num)
			}
		}
	})
	if len(own) == 0 {
		return out
	}
	specs := make([]command.JobSpec, 0, len(own)) // the loop's until query returns
	err := rd.query(ctx, func(c *core.Core) {
		for _, num := range own {
			if js, ok := c.Own().Spec(num); ok {
				specs = append(specs, js)
			}
		}
	})
	if err == nil {
		for i := range specs {
			out[command.JobID{Site: rd.site, Num: specs[i].Num}] = rd.factsOf(&specs[i], rd.site)
		}
	}
	return out
}

// specOf returns what this broker can read of a job; sealed: it cannot read all of it, because it is another site's, or
// was sealed with a secret that is lost.
func (rd *Reader) specOf(js *command.JobSpec, owner string) (spec jobspec.Spec, sealed bool) {
	var by jobspec.Opener = rd.sealer
	if owner != rd.site {
		by, sealed = seal.Outsider{}, true
	}
	spec, err := jobspec.SpecOf(*js, by)
	if errors.Is(err, seal.ErrOtherSecret) {
		sealed = true
		spec, err = jobspec.SpecOf(*js, seal.Outsider{})
	}
	if err != nil {
		spec = jobspec.Spec{Name: "unreadable: " + err.Error()}
	}
	return spec, sealed
}

func (rd *Reader) factsOf(js *command.JobSpec, owner string) node.JobFacts {
	spec, _ := rd.specOf(js, owner)
	return node.JobFacts{Name: spec.Name, Labels: spec.Labels, SubmittedAt: time.UnixMilli(js.CreatedMs)}
}

// Quota returns what this site uses of its quotas.
func (rd *Reader) Quota() (own []fsm.Use) {
	rd.replica.View(func(s *fsm.State) {
		v, _ := s.Quotas(rd.site)
		own = v.Uses
	})
	return own
}

// Quotas returns what each site uses of its quotas, by site.
func (rd *Reader) Quotas() (all []fsm.QuotaView) {
	rd.replica.View(func(s *fsm.State) { all = s.AllQuotas() })
	return all
}
