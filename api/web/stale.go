package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// outdated says of a broker without contact with the leader of when its state is.
type outdated struct {
	Stale      string    // in words; "" = the state is of now
	StaleSince time.Time // when contact was lost, zero = there was none
}

func (p *Pages) outdated() (o outdated) {
	fresh := p.cfg.Source.Freshness()
	if o.Stale = fresh.Words(); o.Stale == "" {
		return o
	}
	if age, known := fresh.Age(); known {
		o.StaleSince = p.cfg.Now().Add(-age)
	}
	return o
}

// banner tells a page that is not redrawn whether the state is outdated, at
// each beat as long as it is.
type banner struct {
	pages *Pages
	shown bool
	told  time.Time // zero = nothing yet
}

// send sends the banner if it has to change, and at the begin: a page that connects
// again may show what was so before.
func (b *banner) send(s *stream) error {
	o := b.pages.outdated()
	stale := o.Stale != ""
	if !b.told.IsZero() && stale == b.shown && (!stale || time.Since(b.told) < beat) {
		return nil
	}
	var out bytes.Buffer
	if err := templates()["events"].ExecuteTemplate(&out, "stale", o); err != nil {
		return fmt.Errorf("draw the banner: %w", err)
	}
	b.shown, b.told = stale, time.Now()
	text := strings.TrimSpace(out.String())
	if text == "" {
		text = "<!-- of now -->" // an event without data is none
	}
	return s.send("stale", "", text)
}

// contact tells a page that stands still whether its broker is there, and has contact
// with the leader.
func (p *Pages) contact(w http.ResponseWriter, r *http.Request, _ func(string) string) error {
	p.serveStream(w, r, func(ctx context.Context, s *stream) error {
		look := time.NewTicker(staleLook)
		defer look.Stop()
		old, said := banner{pages: p}, time.Time{}
		for {
			if err := old.send(s); err != nil {
				return err
			}
			if time.Since(said) >= beat-staleLook { // the page counts on one in a few beats
				if err := s.beat(); err != nil {
					return err
				}
				said = time.Now()
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	return nil
}
