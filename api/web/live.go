package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// beat is how often a stream with nothing to say says so, which finds clients
// that are gone, and brokers: a page that hears nothing for some beats says so.
const beat = 5 * time.Second

// stream is one answer of server-sent events.
type stream struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

// serveStream runs a stream until its client is gone, the server stops or run
// ends.
func (p *Pages) serveStream(w http.ResponseWriter, r *http.Request, run func(ctx context.Context, s *stream) error) {
	if p.enter(w, r) {
		defer p.streams.Add(-1)
		p.runStream(w, r, run)
	}
}

// enter counts a stream, or refuses it.
func (p *Pages) enter(w http.ResponseWriter, r *http.Request) bool {
	if p.streams.Add(1) <= int64(p.cfg.MaxStreams) {
		return true
	}
	p.streams.Add(-1)
	w.Header().Set("Retry-After", "5")
	p.Refuse(w, r, Problem{http.StatusServiceUnavailable, "Too many pages are open", "close some, or read from another broker"})
	return false
}

// runStream is serveStream for a stream that was counted.
func (p *Pages) runStream(w http.ResponseWriter, r *http.Request, run func(ctx context.Context, s *stream) error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-p.cfg.Stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	guard(w.Header())
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	s := &stream{w: w, out: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	if s.comment("here") == nil {
		_ = run(ctx, s) // the client is gone, or reconnects
	}
}

// send writes one event. Lines of data become lines of the event.
func (s *stream) send(name, id, data string) error {
	var b strings.Builder
	b.WriteString("event: " + name + "\n")
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	for line := range strings.SplitSeq(data, "\n") {
		b.WriteString("data: " + line + "\n")
	}
	b.WriteString("\n")
	return s.write(b.String())
}

// beat tells the page that the broker is there, which a comment would not.
func (s *stream) beat() error { return s.send("beat", "", "still here") }

// comment writes what clients ignore.
func (s *stream) comment(text string) error { return s.write(": " + text + "\n\n") }

func (s *stream) write(text string) error {
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("flush events: %w", err)
	}
	return nil
}

// costPerPage is what a page that asks for itself may take of a core.
const costPerPage = 5 * time.Millisecond

// pace returns how long a page waits after it got a change. It grows with the number of
// open pages, so that all of them together take one core at most.
func (p *Pages) pace() time.Duration {
	return max(p.cfg.Pace, time.Duration(p.streams.Load())*costPerPage)
}

// live tells a page that something changed, at most once per pace; the page
// then asks for itself again. What changes in between is one change.
func (p *Pages) live(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	entry, home := p.seen(r)
	stale := p.cfg.Source.Freshness().Stale()
	p.serveStream(w, r, func(ctx context.Context, s *stream) error {
		rest := time.NewTimer(0)
		defer rest.Stop()
		if err := s.beat(); err != nil { // from now on the page counts on it
			return err
		}
		for {
			err := p.await(ctx, &entry, &home, &stale)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				err = s.beat()
			} else {
				err = s.send("changed", place(entry, home), strconv.FormatUint(entry, 10))
			}
			if err != nil {
				return err
			}
			rest.Reset(p.pace())
			select {
			case <-rest.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
	return nil
}

// jobLive is live at the broker that has the job: what happens to a home job is
// heard at its owner's only.
func (p *Pages) jobLive(w http.ResponseWriter, r *http.Request, param func(string) string) error {
	id, err := command.ParseJobID(param("id"))
	if err == nil {
		_, err = p.cfg.Source.Job(r.Context(), id)
	}
	if err != nil {
		return p.refuse(w, r, err)
	}
	return p.live(w, r, param)
}

// staleLook is how often an open page looks whether the broker has contact.
const staleLook = 2 * time.Second

// await waits for a change, up to a beat, and notes it. That contact with the
// leader was lost or found is a change, and so is each beat without it: the page
// says how long.
func (p *Pages) await(ctx context.Context, entry, home *uint64, stale *bool) error {
	end := time.Now().Add(beat)
	for {
		err := p.awaitMove(ctx, *entry, *home)
		was := *stale
		*stale = p.cfg.Source.Freshness().Stale()
		over := !time.Now().Before(end)
		if err == nil || ctx.Err() == nil && (was != *stale || over && *stale) {
			*entry, *home = p.cfg.Source.Moved()
			return nil
		}
		if over || ctx.Err() != nil {
			return err
		}
	}
}

func (p *Pages) awaitMove(ctx context.Context, entry, home uint64) error {
	ctx, cancel := context.WithTimeout(ctx, staleLook)
	defer cancel()
	return p.cfg.Source.AwaitMove(ctx, entry, home)
}

// place names a change; seen reads it.
func place(entry, home uint64) string {
	return strconv.FormatUint(entry, 10) + "." + strconv.FormatUint(home, 10)
}

// seen returns the newest change that a page shows: as it says, or now.
func (p *Pages) seen(r *http.Request) (entry, home uint64) {
	e, h, _ := strings.Cut(resumed(r, "since"), ".")
	entry, err1 := strconv.ParseUint(e, 10, 64)
	home, err2 := strconv.ParseUint(h, 10, 64)
	nowEntry, nowHome := p.cfg.Source.Moved()
	if err1 != nil || err2 != nil || entry > nowEntry || home > nowHome {
		return nowEntry, nowHome // another broker's, or nonsense
	}
	return entry, home
}

// resumed returns where a browser goes on: after the last event that it saw, or from
// where the page was drawn.
func resumed(r *http.Request, name string) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	if id := r.URL.Query().Get("resume"); id != "" {
		return id
	}
	return r.URL.Query().Get(name)
}
