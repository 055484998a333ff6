package replica

import (
	"context"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

const (
	// maxEvents is how many events one Next returns at most.
	maxEvents = 256
	// maxLook bounds how many events one look in the feed passes over, so that a
	// narrow filter does not hold it.
	maxLook = 4096
	// maxKnown bounds the jobs whose labels a subscription remembers.
	maxKnown = 4096
)

// Subscription reads a broker's feed from a place on. It holds nothing at the
// broker and needs no closing. It is not safe for concurrent use.
type Subscription struct {
	replica *Replica
	labels  func(command.JobID) map[string]string
	stopped <-chan struct{} // nil = never
	current <-chan struct{} // closed once the log was replayed, nil = it was
	filter  node.EventFilter
	place   node.EventID
	match   map[command.JobID]bool // by job: its labels match
}

// Events subscribes like Broker.Events; labels gives those of a job.
func (r *Replica) Events(from node.EventID, filter node.EventFilter,
	labels func(command.JobID) map[string]string,
) *Subscription {
	return &Subscription{replica: r, labels: labels, filter: filter, place: from, match: map[command.JobID]bool{}}
}

// Until has the subscription end when its broker stops, and wait with a place that the
// log has not reached until current is closed. It returns the subscription.
func (s *Subscription) Until(stopped, current <-chan struct{}) *Subscription {
	s.stopped, s.current = stopped, current
	return s
}

// Feed returns where the replica's events go.
func (r *Replica) Feed() *Feed { return r.feed }

// Place returns where the next call of Next goes on: to be given to Events again.
func (s *Subscription) Place() node.EventID { return s.place }

// Next waits for events after the place and returns at least one, in order. An
// error is the context's, ErrStopping, or ErrEventsLost: then the place has
// moved to what is held, and the next call goes on from there.
func (s *Subscription) Next(ctx context.Context) ([]node.Event, error) {
	if err := s.replayed(ctx); err != nil {
		return nil, err
	}
	for {
		found, changed, err := s.Look()
		if err != nil {
			return nil, err
		}
		if found = s.labelled(found); len(found) > 0 {
			return s.replica.dated(found), nil
		}
		if changed == nil {
			continue // a look passed over maxLook events
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("await events: %w", context.Cause(ctx))
		case <-s.stopped:
			return nil, fmt.Errorf("await events: %w", node.ErrStopping)
		}
	}
}

// replayed waits, with a place that the log has not reached since the start of
// the broker: it may be replayed yet.
func (s *Subscription) replayed(ctx context.Context) error {
	if s.current == nil || s.place.Entry <= s.replica.Index() {
		return nil
	}
	select {
	case <-s.current: // before a context that has ended: what is held can be read
		s.current = nil
		return nil
	default:
	}
	select {
	case <-s.current:
		s.current = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("await the log's replay: %w", context.Cause(ctx))
	case <-s.stopped:
		return fmt.Errorf("await the log's replay: %w", node.ErrStopping)
	}
}

// Look copies the events that the filter selects, labels aside, and moves the place. The
// channel is closed when more events come that it may select; it is nil if the feed already holds more.
func (s *Subscription) Look() ([]node.Event, <-chan struct{}, error) {
	f := s.replica.feed
	applied := s.replica.Index()
	f.mu.RLock()
	defer f.mu.RUnlock()
	i, ok := f.seek(s.place)
	if !ok || s.place.Entry > max(applied, f.last.Entry) {
		lost := s.place
		s.place = f.floor
		if s.place.CompareLog(lost) < 0 { // ahead of this broker: from now on
			s.place = f.now()
		}
		return nil, nil, fmt.Errorf("%w: %s is not held, the feed goes on after %s", node.ErrEventsLost, lost, s.place)
	}
	if f.strange(s.place.Home) {
		lost := s.place
		s.place.Home = 0
		if _, ok = f.seek(s.place); !ok {
			s.place = f.floor
		}
		return nil, nil, fmt.Errorf("%w: home events after %s were told by another start of the broker, the feed goes on after %s",
			node.ErrEventsLost, lost, s.place)
	}
	var out []node.Event
	end := min(len(f.ring), i+maxLook)
	for ; i < end && len(out) < maxEvents; i++ {
		e := f.at(i)
		s.place = e.ID
		if s.filter.Selects(e) {
			out = append(out, *e)
		}
	}
	if i < len(f.ring) {
		return out, nil, nil
	}
	return out, f.changedFor(&s.filter), nil
}

// labelled keeps the events whose jobs have the filter's labels.
func (s *Subscription) labelled(events []node.Event) []node.Event {
	if len(s.filter.Labels) == 0 {
		return events
	}
	kept := events[:0]
	for _, e := range events {
		if s.hasLabels(e.Job) {
			kept = append(kept, e)
		}
	}
	return kept
}

func (s *Subscription) hasLabels(id command.JobID) bool {
	if yes, known := s.match[id]; known {
		return yes
	}
	if len(s.match) >= maxKnown {
		clear(s.match)
	}
	yes := true
	labels := s.labels(id)
	for k, v := range s.filter.Labels {
		have, ok := labels[k]
		yes = yes && ok && have == v
	}
	s.match[id] = yes
	return yes
}
