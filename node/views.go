package node

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"github.com/cloudshare/cloudshare/executor"
	"github.com/cloudshare/cloudshare/fsm"
)

// Job returns a job that the federation knows, or that runs at home here.
func (b *Broker) Job(ctx context.Context, id fsm.JobID) (Job, error) {
	for range 2 { // a job may be published between the two looks
		if j, ok := b.federationJob(id); ok {
			return j, nil
		}
		if id.Site != b.cfg.Site {
			return Job{}, b.elsewhere(id.Site, "owner")
		}
		var r ownRecord
		found := false
		if err := b.ask(ctx, func(c *core) { r, _, found = c.ownRecord(id.Num) }); err != nil {
			return Job{}, err
		}
		if found {
			return r.view(b.cfg.Site), nil
		}
	}
	return Job{}, b.missingJob(id)
}

func (b *Broker) federationJob(id fsm.JobID) (j Job, ok bool) {
	b.cfg.Replica.View(func(s *fsm.State) {
		var v fsm.JobView
		if v, ok = s.Job(id); ok {
			j = b.jobOf(&v)
		}
	})
	return j, ok
}

// jobOf translates a view. REQUIRES: called inside Replica.View.
func (b *Broker) jobOf(v *fsm.JobView) Job {
	spec, err := SpecOf(v.Spec)
	if err != nil {
		spec = Spec{Name: "unreadable: " + err.Error()}
	}
	j := Job{
		ID: v.ID, Spec: spec, State: v.State.String(), Reason: v.Reason,
		Durability: DurableFederation, Counts: countsOf(v.Counts),
		SubmittedAt: time.UnixMilli(v.Spec.CreatedMs),
	}
	if v.State == fsm.Queued {
		if d, ok := b.cfg.Replica.feed.lastDecline(v.ID); ok {
			j.Reason += "; " + d.String()
		}
	}
	j.StartedAt = b.cfg.Replica.wallOf(v.StartedMs, j.SubmittedAt)
	j.EndedAt = b.cfg.Replica.wallOf(v.EndedMs, j.StartedAt)
	return j
}

func countsOf(c fsm.Counts) map[string]uint32 {
	m := make(map[string]uint32, len(c))
	for state, n := range c {
		m[fsm.TaskState(state).String()] = n
	}
	return m
}

// ran is the length of a run between two moments in ms, negative if one is missing.
func ran(started, ended int64) time.Duration {
	if started < 0 || ended < 0 {
		return -1
	}
	return time.Duration(ended-started) * time.Millisecond
}

// codes are an ended task's exit code, or the signal that ended it.
func codes(state fsm.TaskState, exit, signal int32) (exitCode, sig *int) {
	if state != fsm.TaskSucceeded && state != fsm.TaskFailed {
		return nil, nil
	}
	if signal != 0 {
		s := int(signal)
		return nil, &s
	}
	e := int(exit)
	return &e, nil
}

// Sites returns all sites the federation ever knew.
func (b *Broker) Sites() []Site {
	voters := map[string]bool{}
	for _, v := range b.cfg.Log.Status().Voters {
		voters[v] = true
	}
	var sites []Site
	b.cfg.Replica.View(func(s *fsm.State) {
		for _, v := range s.Sites() {
			sites = append(sites, Site{SiteView: v, Voter: voters[v.ID]})
		}
	})
	return sites
}

// Status tells what the broker knows; with hash it hashes the state, which
// takes time in a large federation but holds nothing up.
func (b *Broker) Status(hash bool) Status {
	log := b.cfg.Log.Status()
	st := Status{
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
		trouble := b.core.troubles.of(h.Name(), executor.Boottime())
		st.Handlers = append(st.Handlers, HandlerStatus{Name: h.Name(), Status: h.Status(), Trouble: trouble})
	}
	st.Incarnation = b.incarnation()
	st.Estimates = b.estimates.Calibration()
	st.Compared = b.compared()
	if b.cfg.Outputs != nil {
		st.Outputs = b.cfg.Outputs()
	}
	return st
}
