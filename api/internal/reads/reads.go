// Package reads has a read answered when the client wants it, and say how old the state
// is that it shows: blocking reads (?index=), and ?max_staleness=.
package reads

import (
	"context"
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm/command"
)

// Reads hold back what a client does not want to read yet, and say how old the state
// is that the others are shown.
type Reads struct {
	broker  Broker
	waiters *transport.Places
	stop    *transport.Stop
}

// New makes Reads that take places among waiters.
func New(b Broker, waiters *transport.Places, stop *transport.Stop) *Reads {
	return &Reads{b, waiters, stop}
}

// Broker is what reads need of a broker.
type Broker interface {
	source.State
	source.Feed
	Confirm(ctx context.Context) error
}

// Stay takes a place among event streams and blocking reads until leave; its context
// also ends when the server stops.
func (v *Reads) Stay(ctx context.Context) (staying context.Context, leave func(), err error) {
	left, err := v.waiters.Enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := v.stop.Until(ctx)
	return ctx, func() { cancel(); left() }, nil
}

// Answer is huma's form of a JSON answer.
type Answer[T any] struct{ Body T }

// Current refuses a read of the replicated state that the broker has not
// rebuilt since its start: what is not there may well be.
func Current[I, O any](
	b interface{ Current() error }, h func(context.Context, *I) (*O, error),
) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		if err := b.Current(); err != nil {
			return nil, err
		}
		return h(ctx, in)
	}
}

// Read registers a plain read: it may block, or else be refused what is too old.
func Read[I, O any](a *rest.API, v *Reads, id, path, summary string, h func(context.Context, *I) (*O, error)) {
	before := func(w http.ResponseWriter, r *http.Request) error { return v.Await(w, r, command.JobID{}) }
	if _, plain := any(new(I)).(*FreshQuery); plain {
		before = func(_ http.ResponseWriter, r *http.Request) error { return v.requireFresh(r) }
	}
	rest.Read(a, id, path, summary, before, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if body, ok := any(out).(interface{ freshen(wire.Freshness) }); ok && err == nil {
			body.freshen(Freshness(ctx))
		}
		return out, err
	})
}

// ListOf returns the answer that lists some items in their form.
func ListOf[T, W any](items []T, form func(T) W) *Answer[wire.List[W]] {
	out := &Answer[wire.List[W]]{}
	out.Body.Items = make([]W, 0, len(items))
	for _, item := range items {
		out.Body.Items = append(out.Body.Items, form(item))
	}
	return out
}
