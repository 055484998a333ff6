package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/test/chaos/linear"
	"github.com/cloudshare/cloudshare/test/testbed"
)

// How often each broker's policy is read and set, how long such a
// client waits for an answer, and the first value that is set: above those of the product and the
// scenarios, so that no value is set twice.
const (
	readEvery   = 250 * time.Millisecond
	setEvery    = 600 * time.Millisecond
	readWait    = 2 * time.Second
	setWait     = 6 * time.Second
	firstPolicy = 1_000_000
)

// policy is the parameter that clients and scenarios set and read. It decides
// nothing for tasks of one core.
type policy struct {
	ReserveAfterMs int64 `json:"reserve_after_ms"`
}

// every does something until ctx ends.
func every(ctx context.Context, d time.Duration, what func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			what()
		}
	}
}

// setPolicies has a client at every broker set policies, each another one, until
// ctx ends.
func (r *run) setPolicies(ctx context.Context) {
	for _, m := range r.honest() {
		r.watched.Go(func() {
			every(ctx, setEvery, func() {
				wait, cancel := context.WithTimeout(ctx, setWait)
				defer cancel()
				_ = r.setPolicy(wait, m, policy{firstPolicy + r.policies.Add(1)}) // its outcome is in the history
			})
		})
	}
}

// setPolicy sets the policy at a broker, and has other sites agree. Any error leaves the outcome unknown.
func (r *run) setPolicy(ctx context.Context, m *member, p policy) error {
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	op := r.history.Call(linear.Op{Kind: linear.SetPolicy, At: m.Name, Value: p.ReserveAfterMs})
	least := r.indexes.At(m.Name)
	answer, header, err := m.Do(ctx, http.MethodPut, "/v1/policy", http.Header{"Content-Type": {"application/json"}}, body)
	if err == nil {
		err = r.pass(ctx, m, answer)
	}
	if err != nil {
		return err
	}
	op.Return(func(*linear.Op) {})
	return r.seeIndex(m, least, header)
}

// confirmed asks for what the leader confirms to be current.
const confirmed = "max_staleness=0"

// policy reads it at a broker; sure: as of now.
func (r *run) policy(ctx context.Context, m *member, sure bool) (policy, error) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	call := r.history.Now()
	path := "/v1/policy"
	if sure {
		path += "?" + confirmed
	}
	p, err := read[policy](ctx, r, m, path)
	if err == nil {
		r.history.Saw(call, linear.Op{Kind: linear.GetPolicy, At: m.Name, Value: p.ReserveAfterMs, Current: sure})
	}
	return p, err
}

// read gets a part of the federation's state from a broker.
func read[T any](ctx context.Context, r *run, m *member, path string) (T, error) {
	var v T
	least := r.indexes.At(m.Name)
	data, header, err := m.Do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return v, err
	}
	if err := r.seeIndex(m, least, header); err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("decode %s of %s: %w", path, m.Name, err)
	}
	return v, nil
}

func (r *run) seeIndex(m *member, least uint64, header http.Header) error {
	index, err := strconv.ParseUint(header.Get("X-CloudShare-Index"), 10, 64)
	if err != nil {
		return fmt.Errorf("the index of an answer of %s: %w", m.Name, err)
	}
	r.blame(r.indexes.See(m.Name, least, index)...)
	return nil
}

// seen remembers what a broker's list said of jobs whose clients had their ids
// when it was asked, or that it shows.
func (r *run) seen(m *member, call time.Duration, asked map[string]linear.Op, list []testbed.Job, sure bool) {
	names := r.names()
	for _, j := range list {
		if j.Site != m.Name { // another site's broker does not tell it
			if j.Name = names[j.ID]; j.Name == "" {
				continue
			}
		}
		o, ok := asked[j.Name]
		if !ok {
			o = linear.Op{Job: j.Name, Owner: j.Site}
		}
		switch {
		case o.Phase != linear.Absent:
			o.Phase = linear.Double
		case isLive(j), j.Counts["stopping"] > 0 && !r.toldToCancel(j.Name): // its site was expelled: it is requeued
			o.Phase = linear.Live
		default:
			o.Phase = linear.Over
		}
		o.ID = j.ID
		asked[j.Name] = o
	}
	for _, o := range asked {
		o.Kind, o.At, o.Current = linear.Look, m.Name, sure
		r.history.Saw(call, o)
	}
}

// isLive reports whether a task of a job may start or go on. One that is being
// stopped does neither.
func isLive(j testbed.Job) bool {
	return j.Counts["queued"]+j.Counts["assigned"]+j.Counts["running"]+j.Counts["withdrawn"]+j.Counts["held"] > 0
}

// toldToCancel reports whether a client wants a job, by its name, to be cancelled.
func (r *run) toldToCancel(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.orders, func(o *order) bool { return o.cancel && o.Jobs[o.CancelJob].Name == name })
}

// asking returns the jobs that their clients know, by name.
func (r *run) asking() map[string]linear.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]linear.Op{}
	for _, o := range r.orders {
		for i, j := range o.Jobs {
			if len(o.ids[i]) > 0 {
				out[j.Name] = linear.Op{Job: j.Name, Owner: r.members[o.Site-1].Name}
			}
		}
	}
	return out
}

// names returns the names of the jobs whose ids their clients have, by id.
func (r *run) names() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]string{}
	for _, o := range r.orders {
		for i, j := range o.Jobs {
			for _, id := range o.ids[i] {
				out[id] = j.Name
			}
		}
	}
	return out
}

// searchWithin bounds the search for an order of one object's operations.
const searchWithin = time.Minute

// linearizable judges all that clients were told.
func (r *run) linearizable() error {
	began := time.Now()
	hostile := func(o linear.Op) bool { return !r.honesty().Is(o.At) || !r.honesty().Is(o.Owner) }
	history := slices.DeleteFunc(r.history.All(), hostile)
	found, err := linear.Check(history, searchWithin, r.dir)
	r.blame(found...)
	r.say("%d operations checked for an order within %s", len(history), time.Since(began).Round(time.Millisecond))
	return err
}

// lastReads returns of brokers that agree on a state that nobody changes any more: no
// answer may be older.
func (r *run) lastReads(ctx context.Context) error {
	for _, m := range r.honest() {
		if _, err := r.policy(ctx, m, true); err != nil {
			return fmt.Errorf("read the policy: %w", err)
		}
		asked, call := r.asking(), r.history.Now()
		list, err := m.jobs(ctx, confirmed)
		if err != nil {
			return fmt.Errorf("list jobs: %w", err)
		}
		r.seen(m, call, asked, list, true)
	}
	return nil
}
