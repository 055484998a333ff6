package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cloudshare/cloudshare/api/internal/form"
	"github.com/cloudshare/cloudshare/api/internal/problem"
	"github.com/cloudshare/cloudshare/api/internal/reads"
	"github.com/cloudshare/cloudshare/api/internal/rest"
	"github.com/cloudshare/cloudshare/api/internal/source"
	"github.com/cloudshare/cloudshare/api/wire"
	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/replica"
)

const (
	// beat is how often a stream without events writes something, so that both
	// ends find out when the other one is gone.
	beat = 15 * time.Second
	// pace is the least time between two writes of a stream: what happens
	// meanwhile goes out together.
	pace = 25 * time.Millisecond
	// maxFrames is how many rendered events are shared by the streams.
	maxFrames = 4096
)

// events tells what happens.
type events struct {
	broker interface {
		source.State
		source.Feed
		Filter(ctx context.Context, f node.EventFilter) node.EventFilter
		// Whose and CancelledBy name users. Events of jobs that have some go to those alone who may see all of the job.
		Whose(id command.JobID) string
		CancelledBy(id command.JobID, state string) string
	}
	api    *rest.API
	reads  *reads.Reads
	frames frames
}

// register adds GET /v1/events.
func (e *events) register() {
	list := func(name, doc string) *huma.Param {
		explode := true
		return &huma.Param{
			Name: name, In: "query", Description: doc, Explode: &explode,
			Schema: &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}},
		}
	}
	e.api.Handle(huma.Operation{
		OperationID: "events", Method: http.MethodGet, Path: "/v1/events", Summary: "What happens, as server-sent events",
		Description: "Each event has its kind as its name, its id, and a JSON object as its data. The first one is `hello`; " +
			"`reset` says that events were missed. Events of home jobs are told by their own site's broker only, from memory.",
		Parameters: []*huma.Param{
			rest.QueryParam("from", huma.TypeString, "an event's id, or an entry's number: begin after it; default now"),
			{Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: huma.TypeString}, Description: "goes before from; browsers send it when they connect again"},
			list("kind", "only this kind (task.ended) or group (task)"), rest.QueryParam("job", huma.TypeString, "only this job"),
			rest.QueryParam("site", huma.TypeString, "only events about this site, or of its jobs"),
			list("label", "KEY=VALUE: only of jobs with this label"),
			rest.QueryParam("follow", huma.TypeBoolean, "false: end after what is held"),
		},
		Responses: e.api.Responses(http.StatusOK, wire.TypeEvents, e.api.Schema(wire.Event{}), 400, 503),
	}, e.stream)
}

// stream goes on until the client goes, takes nothing for BodyTimeout, or the
// server stops.
func (e *events) stream(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	if _, _, _, err := e.eventQuery(r); err != nil {
		return err
	}
	ctx, leave, err := e.reads.Stay(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	if err = e.awaitCurrent(ctx); err != nil {
		return err
	}
	from, filter, follow, err := e.eventQuery(r) // again: "now" is known now
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", wire.TypeEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // a proxy must pass it on as it comes
	w.WriteHeader(http.StatusOK)
	visible := e.broker.Events(from, e.broker.Filter(ctx, filter))
	st := &eventStream{of: e, out: w, flush: http.NewResponseController(w), from: visible}
	st.hello(from)
	if follow {
		st.run(ctx)
	} else {
		st.held(ctx)
	}
	return nil
}

const (
	// currentPatience is how long a stream waits, after a start of the broker, for
	// the log to be replayed: what was read before is not told again as news.
	currentPatience = 5 * time.Second
	currentLook     = 50 * time.Millisecond
)

// awaitCurrent returns nil once the replicated state is known, or why it is not.
func (e *events) awaitCurrent(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, currentPatience)
	defer cancel()
	look := time.NewTicker(currentLook)
	defer look.Stop()
	for {
		err := e.broker.Current()
		if err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return err
		}
	}
}

// eventQuery reads what a client wants.
func (e *events) eventQuery(r *http.Request) (from node.EventID, f node.EventFilter, follow bool, err error) {
	q := r.URL.Query()
	if from, err = e.eventPlace(r); err != nil {
		return from, f, false, err
	}
	if f.Kinds, err = eventKinds(q["kind"]); err != nil {
		return from, f, false, err
	}
	if f.Labels, err = rest.Labels(q["label"]); err != nil {
		return from, f, false, err
	}
	if id := q.Get("job"); id != "" {
		if f.Job, err = command.ParseJobID(id); err != nil {
			return from, f, false, problem.BadQuery("job", id, "is not SITE.NUMBER")
		}
	}
	if f.Site = q.Get("site"); f.Site != "" && !command.ValidSite(f.Site) {
		return from, f, false, problem.BadQuery("site", f.Site, "is not a site's name")
	}
	follow = true
	if q.Has("follow") {
		follow, err = rest.QueryBool(r, "follow")
	}
	return from, f, follow, err
}

// eventPlace returns where a stream begins.
func (e *events) eventPlace(r *http.Request) (node.EventID, error) {
	name, text := "Last-Event-ID", r.Header.Get("Last-Event-ID")
	if text == "" {
		name, text = "from", r.URL.Query().Get("from")
	}
	if text == "" {
		return e.broker.Feed().Now(), nil
	}
	id, err := node.ParseEventID(text)
	if err != nil {
		return id, problem.BadQuery(name, text, "must be an event's id or an entry's number, e.g. 120.2 or 120")
	}
	return id, nil
}

// eventKinds takes kinds and their groups.
func eventKinds(names []string) (map[fsm.EventKind]bool, error) {
	kinds := map[fsm.EventKind]bool{}
	for _, name := range names {
		known := false
		for _, k := range fsm.EventKinds() {
			kind := k.String()
			if group, _, _ := strings.Cut(kind, "."); kind == name || group == name {
				kinds[k], known = true, true
			}
		}
		if !known {
			return nil, problem.BadQuery("kind", name, "is no kind of event, e.g. task.ended, nor a group, e.g. task")
		}
	}
	return kinds, nil
}

// eventStream writes events to one client.
type eventStream struct {
	of    *events
	out   http.ResponseWriter
	flush *http.ResponseController
	from  *replica.Subscription
	err   error // of the first write that failed
}

// hello opens the stream, so that a client knows at once that it is connected.
func (e *eventStream) hello(from node.EventID) {
	b := append([]byte(nil), "retry: 2000\n"...)
	e.write(appendFrame(b, "", wire.EventHello, wire.Hello{
		Site: e.of.broker.Site(), Index: e.of.broker.Index(),
		From: from.String(),
	}))
}

// run writes what comes, as it comes.
func (e *eventStream) run(ctx context.Context) {
	rest := time.NewTimer(pace)
	defer rest.Stop()
	for e.err == nil {
		e.next(ctx)
		rest.Reset(pace)
		select {
		case <-rest.C:
		case <-ctx.Done():
			return
		}
	}
}

// held writes what there is.
func (e *eventStream) held(ctx context.Context) {
	now, cancel := context.WithCancel(ctx)
	cancel()
	for e.err == nil && ctx.Err() == nil {
		events, err := e.from.Next(now)
		if err != nil && !errors.Is(err, node.ErrEventsLost) {
			return
		}
		e.writeEvents(events, err)
	}
}

// next writes the next events, or a sign of life.
func (e *eventStream) next(ctx context.Context) {
	soon, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	events, err := e.from.Next(soon)
	switch {
	case err == nil, errors.Is(err, node.ErrEventsLost):
		e.writeEvents(events, err)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		e.write([]byte(": beat\n\n"))
	default:
		e.err = err
	}
}

// writeEvents writes events, or that some were missed.
func (e *eventStream) writeEvents(events []node.Event, err error) {
	var b []byte
	if err != nil {
		id := e.from.Place().String()
		b = appendFrame(b, id, wire.EventReset, wire.Reset{
			ID: id, Index: e.of.broker.Index(),
			Reason: problem.OneLine(err.Error()),
		})
	}
	for i := range events {
		b = append(b, e.of.frames.of(&events[i], e.of.render)...)
	}
	e.write(b)
}

func (e *eventStream) write(b []byte) {
	_, err := e.out.Write(b)
	e.err = errors.Join(err, e.flush.Flush())
}

// render returns an event's form, with whose its job is and who had that cancelled.
func (e *events) render(of *node.Event) wire.Event {
	out := form.Event(of)
	if of.Job.Num == 0 {
		return out
	}
	out.User = e.broker.Whose(of.Job)
	switch of.Kind {
	case fsm.EventJobCancelling:
		out.By = e.broker.CancelledBy(of.Job, fsm.TaskCancelled.String())
	case fsm.EventJobEnded:
		out.By = e.broker.CancelledBy(of.Job, out.Outcome)
	default:
	}
	return out
}

// frames shares rendered events between streams: a thousand of them write the
// same bytes.
type frames [maxFrames]atomic.Pointer[frame]

type frame struct {
	seq  uint64
	text []byte // never changed
}

// of renders an event, once for most streams.
func (f *frames) of(e *node.Event, render func(*node.Event) wire.Event) []byte {
	slot := &f[e.Seq%maxFrames]
	if have := slot.Load(); have != nil && have.seq == e.Seq {
		return have.text
	}
	made := &frame{e.Seq, appendFrame(nil, e.ID.String(), e.Kind.String(), render(e))}
	slot.Store(made)
	return made.text
}

// appendFrame writes one server-sent event. JSON has no line breaks in it.
func appendFrame(b []byte, id, name string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("{}")
	}
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	return append(append(b, text...), "\n\n"...)
}
