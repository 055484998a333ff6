package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node"
)

// eventsView is the page of live events.
type eventsView struct {
	Rows       []eventRow // newest first
	Stream     string     // where more come from
	Site, Kind string
	Job        string
	Sites      []string
	Kinds      []string
	Since      node.Event // the oldest that was looked at
	Whole      bool       // nothing older is held
}

type eventRow struct {
	ID   string
	At   time.Time
	Kind string
	Tone string
	Job  string // link text, "" = none
	Site string
	Text string
}

const (
	// shownEvents is how many events the page begins with and keeps.
	shownEvents = 100
	// behind is after how many entries a page that fell behind gets the latest
	// events only.
	behind = 400
	// eventPace is the least time between two batches.
	eventPace = 250 * time.Millisecond
)

func (p *Pages) events(r *http.Request, _ func(string) string) (view, error) {
	filter, v := p.eventFilter(r)
	for _, s := range p.cfg.Source.Sites() {
		v.Sites = append(v.Sites, s.ID)
	}
	v.Kinds = eventKinds()
	entry, _ := p.cfg.Source.Moved()
	past := p.cfg.Source.Events(r.Context(), node.AfterEntry(entry), filter).Latest(node.EventID{}, shownEvents)
	v.Since, v.Whole = past.Since, past.Whole
	for _, e := range slices.Backward(past.Events) {
		v.Rows = append(v.Rows, rowOfEvent(&e))
	}
	q := url.Values{"from": {past.Place.String()}}
	for name, value := range map[string]string{"site": v.Site, "kind": v.Kind, "job": v.Job} {
		if value != "" {
			q.Set(name, value)
		}
	}
	v.Stream = "/events/stream?" + q.Encode()
	return view{template: "events", data: v}, nil
}

func (p *Pages) eventFilter(r *http.Request) (f node.EventFilter, v eventsView) {
	in := r.URL.Query()
	if site := in.Get("site"); command.ValidSite(site) {
		f.Site, v.Site = site, site
	}
	if id, err := command.ParseJobID(in.Get("job")); err == nil {
		f.Job, v.Job = id, id.String()
	}
	for _, k := range fsm.EventKinds() {
		if name := k.String(); name == in.Get("kind") {
			f.Kinds, v.Kind = map[fsm.EventKind]bool{k: true}, name
		}
	}
	return f, v
}

// eventStream sends events as rows of the page. One that fell too far behind is
// told of the gap.
func (p *Pages) eventStream(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	filter, _ := p.eventFilter(r)
	p.serveStream(w, r, func(ctx context.Context, s *stream) error {
		if err := p.awaitCurrent(ctx, s); err != nil {
			return err
		}
		from, err := node.ParseEventID(resumed(r, "from"))
		if err != nil {
			entry, home := p.cfg.Source.Moved()
			from = node.EventID{Entry: entry, Home: home}
		}
		t := ticker{source: p.cfg.Source, filter: filter, events: p.cfg.Source.Events(ctx, from, filter)}
		old := banner{pages: p}
		pace := time.NewTicker(eventPace)
		defer pace.Stop()
		for {
			if err := errors.Join(old.send(s), t.pass(ctx, s)); err != nil {
				return err
			}
			select {
			case <-pace.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	return nil
}

// awaitCurrent waits until the log was replayed: what was told before a restart
// of the broker is no news.
func (p *Pages) awaitCurrent(ctx context.Context, s *stream) error {
	if p.cfg.Source.Current() == nil {
		return nil
	}
	look := time.NewTicker(eventPace)
	defer look.Stop()
	for p.cfg.Source.Current() != nil {
		select {
		case <-look.C:
			if err := s.comment("the log is read again"); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// ticker passes events on to one page.
type ticker struct {
	source Source
	filter node.EventFilter
	events Events
	beaten time.Time // when the page was told that the broker is there
}

// quiet returns what a page is sent when nothing happens.
func (t *ticker) quiet(s *stream) error {
	if time.Since(t.beaten) < beat {
		return nil
	}
	t.beaten = time.Now()
	return s.beat()
}

// gap is the row that stands for events that a page does not get.
const gap = `<li class="gap">more happened here than can be shown</li>`

// pass sends the next events, or a sign of life.
func (t *ticker) pass(ctx context.Context, s *stream) error {
	if entry, _ := t.source.Moved(); entry > t.events.Place().Entry+behind {
		return t.skip(ctx, s)
	}
	wait, cancel := context.WithTimeout(ctx, staleLook)
	list, err := t.events.Next(wait)
	cancel()
	switch {
	case errors.Is(err, node.ErrEventsLost):
		return s.send("event", t.events.Place().String(), gap)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return t.quiet(s)
	case err != nil:
		return err
	}
	rows, err := drawn(list[max(0, len(list)-shownEvents):])
	if err != nil {
		return err
	}
	return s.send("event", list[len(list)-1].ID.String(), rows)
}

// skip has a page that fell behind go on with the present: it is sent as many of
// the latest events as it would keep, and told if there were more.
func (t *ticker) skip(ctx context.Context, s *stream) error {
	latest := t.events.Latest(t.events.Place(), shownEvents-1)
	t.events = t.source.Events(ctx, latest.Place, t.filter)
	rows, err := drawn(latest.Events)
	if err != nil {
		return err
	}
	if !latest.Whole {
		rows += "\n" + gap
	}
	if rows == "" {
		return t.quiet(s)
	}
	return s.send("event", latest.Place.String(), rows)
}

// drawn returns rows for events.
func drawn(list []node.Event) (string, error) {
	var out bytes.Buffer
	for _, e := range slices.Backward(list) { // the page has the newest first
		if err := templates()["events"].ExecuteTemplate(&out, "event", rowOfEvent(&e)); err != nil {
			return "", fmt.Errorf("draw event: %w", err)
		}
	}
	return strings.TrimSpace(out.String()), nil
}

// rowOfEvent words an event.
func rowOfEvent(e *node.Event) eventRow {
	row := eventRow{ID: e.ID.String(), At: e.At, Kind: e.Kind.String(), Site: e.Site, Tone: toneOf(&e.Event)}
	if e.Job.Num > 0 {
		row.Job = e.Job.String()
	}
	var words []string
	switch e.Kind {
	case fsm.EventJobSubmitted, fsm.EventJobHeld, fsm.EventJobReleased, fsm.EventJobPrioritized:
		words = append(words, count(e.Count)+" tasks")
	case fsm.EventJobEnded:
	default:
		if e.Job.Num > 0 {
			words = append(words, taskWords(&e.Event))
		}
	}
	if e.Kind == fsm.EventSiteOffered {
		words = append(words, coresWords(e.Need.MilliCPU))
	}
	if e.End != fsm.NoEnding {
		words = append(words, e.End.String())
	}
	if e.RunMs > 0 {
		words = append(words, "ran "+took(time.Duration(e.RunMs)*time.Millisecond))
	}
	if e.Reason != "" {
		words = append(words, short(160, e.Reason))
	}
	row.Text = strings.Join(words, " · ")
	return row
}

func taskWords(e *fsm.Event) string {
	text := fmt.Sprintf("task %d", e.Task)
	if e.Count > 1 {
		text = fmt.Sprintf("tasks %d to %d", e.Task, e.Task+e.Count-1)
	}
	if e.Attempt > 1 {
		text += fmt.Sprintf(" attempt %d", e.Attempt)
	}
	return text
}

func toneOf(e *fsm.Event) string {
	switch e.Kind {
	case fsm.EventSiteLost, fsm.EventSiteForgotten:
		return "bad"
	case fsm.EventSiteSuspected, fsm.EventTaskRequeued, fsm.EventTaskWithdrawn, fsm.EventTaskDying, fsm.EventSiteLeft:
		return "warn"
	case fsm.EventTaskStarted, fsm.EventTaskAssigned, fsm.EventTaskDelivering:
		return "busy"
	case fsm.EventTaskHeld:
		if e.End != fsm.NoEnding {
			return "warn"
		}
		return "plain"
	case fsm.EventSiteReturned, fsm.EventSiteTrusted, fsm.EventTaskResumed:
		return "good"
	case fsm.EventTaskEnded, fsm.EventJobEnded:
		return tone(e.End.String())
	default:
		return "plain"
	}
}
