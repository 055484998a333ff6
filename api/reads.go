package api

import (
	"context"
	"net/http"

	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/internal/transport"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
)

// reads hold back what a client does not want to read yet, and say how old the state
// is that the others are shown.
type reads struct {
	broker  shown
	waiters *transport.Places
	stop    *transport.Stop
}

// shown is what reads need of a broker.
type shown interface {
	source.State
	source.Feed
	Confirm(ctx context.Context) error
}

// stay takes a place among event streams and blocking reads until leave; its context
// also ends when the server stops.
func (v *reads) stay(ctx context.Context) (staying context.Context, leave func(), err error) {
	left, err := v.waiters.Enter()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := v.stop.Until(ctx)
	return ctx, func() { cancel(); left() }, nil
}

// answer is huma's form of a JSON answer.
type answer[T any] struct{ Body T }

// current refuses a read of the replicated state that the broker has not
// rebuilt since its start: what is not there may well be.
func current[I, O any](b interface{ Current() error }, h func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		if err := b.Current(); err != nil {
			return nil, err
		}
		return h(ctx, in)
	}
}

// read registers a plain read: it may block, or else be refused what is too old.
func read[I, O any](a *rest.API, v *reads, id, path, summary string, h func(context.Context, *I) (*O, error)) {
	before := func(w http.ResponseWriter, r *http.Request) error { return v.await(w, r, fsm.JobID{}) }
	if _, plain := any(new(I)).(*FreshQuery); plain {
		before = func(_ http.ResponseWriter, r *http.Request) error { return v.requireFresh(r) }
	}
	rest.Read(a, id, path, summary, before, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if body, ok := any(out).(interface{ freshen(wire.Freshness) }); ok && err == nil {
			body.freshen(freshness(ctx))
		}
		return out, err
	})
}

func listOf[T, W any](items []T, form func(T) W) *answer[wire.List[W]] {
	out := &answer[wire.List[W]]{}
	out.Body.Items = make([]W, 0, len(items))
	for _, item := range items {
		out.Body.Items = append(out.Body.Items, form(item))
	}
	return out
}
