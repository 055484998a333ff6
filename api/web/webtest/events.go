package webtest

import (
	"context"

	"github.com/cloudshare/cloudshare/api/web"
	"github.com/cloudshare/cloudshare/node"
)

// Moved implements web.Source.
func (b *Broker) Moved() (entry, home uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moved, 0
}

// AwaitMove implements web.Source.
func (b *Broker) AwaitMove(ctx context.Context, entry, _ uint64) error {
	for {
		b.mu.Lock()
		moved, changed := b.moved, b.changed
		b.mu.Unlock()
		if moved > entry {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Events implements web.Source.
func (b *Broker) Events(_ context.Context, from node.EventID, f node.EventFilter) web.Events {
	return &reader{b, f, from}
}

type reader struct {
	broker *Broker
	filter node.EventFilter
	place  node.EventID
}

// Place implements web.Events.
func (r *reader) Place() node.EventID { return r.place }

// Next implements web.Events.
func (r *reader) Next(ctx context.Context) ([]node.Event, error) {
	for {
		if out := r.look(); len(out) > 0 {
			return out, nil
		}
		if err := r.broker.AwaitMove(ctx, r.place.Entry, 0); err != nil {
			return nil, err
		}
	}
}

// Latest implements web.Events.
func (r *reader) Latest(after node.EventID, most int) (l node.Latest) {
	all := reader{r.broker, r.filter, after}
	l.Events, l.Place, l.Whole = all.look(), all.place, true
	if len(l.Events) > most {
		l.Events, l.Whole = l.Events[len(l.Events)-most:], false
	}
	if len(l.Events) > 0 {
		l.Since = l.Events[0]
	}
	return l
}

func (r *reader) look() (out []node.Event) {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	for _, e := range r.broker.feed {
		if e.ID.Entry <= r.place.Entry {
			continue
		}
		r.place = e.ID
		if (len(r.filter.Kinds) == 0 || r.filter.Kinds[e.Kind]) &&
			(r.filter.Site == "" || r.filter.Site == e.Site || r.filter.Site == e.Job.Site) {
			out = append(out, e)
		}
	}
	r.place.Entry = max(r.place.Entry, r.broker.moved)
	return out
}
