package reads

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/node"
)

// Every answer says how old the state may be that it shows (wire.HeaderAge), and
// ?max_staleness= refuses an older one. The age is taken before the state is read,
// so that it is never too small.

const (
	// confirmWait bounds how long a read waits for the leader to confirm that the
	// state is current.
	confirmWait = 3 * time.Second
	// staleParam is the query parameter.
	staleParam = "max_staleness"
	staleDoc   = "refuse (503 stale) what is older than this, e.g. 5s; 0: have the leader confirm now that it is current"
)

// FreshQuery is the parameter of reads, for huma's.
type FreshQuery struct {
	MaxStaleness string `query:"max_staleness" maxLength:"20" doc:"refuse (503 stale) what is older than this, e.g. 5s; 0: have the leader confirm now that it is current"`
}

// stampKey carries a request's *stamp.
type stampKey struct{}

// stamp is how old the state may be that a request reads. It is written before
// the read, by the request's own goroutine.
type stamp struct{ node.Freshness }

// Stamp takes the broker's freshness for a request; mark tells the client of it.
func (v *Reads) Stamp(r *http.Request) (stamped *http.Request, mark func(http.Header)) {
	at := &stamp{v.broker.Freshness()}
	return r.WithContext(context.WithValue(r.Context(), stampKey{}, at)), at.setHeaders
}

// Restamp takes it again, after a wait.
func (v *Reads) Restamp(ctx context.Context) {
	if at, ok := ctx.Value(stampKey{}).(*stamp); ok {
		at.Freshness = v.broker.Freshness()
	}
}

// setHeaders says how old the state is, unless another broker has.
func (at *stamp) setHeaders(h http.Header) {
	if h.Get(headerAge) != "" {
		return
	}
	text := "unknown"
	age, known := at.Age()
	if known {
		text = strconv.FormatFloat(age.Seconds(), 'f', 3, 64)
	}
	h.Set(headerAge, text)
	if at.StaleAt(age, known) {
		h.Set(headerStale, "true")
	}
}

// headerAge and headerStale are names as net/http keeps them: others are put into that form at each use.
var headerAge, headerStale = http.CanonicalHeaderKey(wire.HeaderAge), http.CanonicalHeaderKey(wire.HeaderStale)

// Freshness returns the part of an answer that tells of a stale state.
func Freshness(ctx context.Context) (f wire.Freshness) {
	at, ok := ctx.Value(stampKey{}).(*stamp)
	if !ok || !at.Stale() {
		return f
	}
	f.Stale = true
	if age, known := at.Age(); known {
		ms := age.Milliseconds()
		f.AgeMs = &ms
		f.NoLeaderSince = form.Moment(time.Now().Add(-age).Truncate(time.Millisecond))
	}
	return f
}

// freshen adds to an answer of huma's how old it is, if it has the fields.
func (a *Answer[T]) freshen(f wire.Freshness) {
	if body, ok := any(&a.Body).(interface{ SetFreshness(wire.Freshness) }); ok {
		body.SetFreshness(f)
	}
}

// staleness reads the parameter; given is false without it.
func staleness(r *http.Request) (most time.Duration, given bool, err error) {
	if r.URL.RawQuery == "" || !r.URL.Query().Has(staleParam) {
		return 0, false, nil
	}
	text := r.URL.Query().Get(staleParam)
	most, err = time.ParseDuration(text)
	if err != nil || most < 0 {
		return 0, true, problem.BadQuery(staleParam, text, "must be a duration of 0 or more, e.g. 5s")
	}
	return most, true, nil
}

// requireFresh refuses a request whose max_staleness the broker cannot keep, after
// it has asked the leader.
func (v *Reads) requireFresh(r *http.Request) error {
	most, given, err := staleness(r)
	if err != nil || !given {
		return err
	}
	if age, known := v.broker.Freshness().Age(); known && age <= most && most > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), confirmWait)
	defer cancel()
	if err := v.broker.Confirm(ctx); err != nil {
		if r.Context().Err() != nil {
			return context.Cause(r.Context())
		}
		return tooStale(v.broker.Freshness(), most, err)
	}
	v.Restamp(r.Context())
	return nil
}

func tooStale(f node.Freshness, most time.Duration, cause error) error {
	held := "there was no contact with the leader since this broker started"
	if age, known := f.Age(); known {
		held = fmt.Sprintf("it is %.1f s old", age.Seconds())
	}
	return fmt.Errorf("%w: %s, max_staleness is %s: %w: ask without max_staleness, or another broker", node.ErrStale, held, most, cause)
}
