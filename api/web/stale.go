package web

import (
	"bytes"
	"fmt"
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

// banner tells a page that is not drawn anew whether the state is outdated, at
// each beat as long as it is.
type banner struct {
	pages *Pages
	shown bool
	told  time.Time
}

// send sends the banner if it has to change.
func (b *banner) send(s *stream) error {
	o := b.pages.outdated()
	stale := o.Stale != ""
	if stale == b.shown && (!stale || time.Since(b.told) < beat) {
		return nil
	}
	var out bytes.Buffer
	if err := templates["events"].ExecuteTemplate(&out, "stale", o); err != nil {
		return fmt.Errorf("draw the banner: %w", err)
	}
	b.shown, b.told = stale, time.Now()
	text := strings.TrimSpace(out.String())
	if text == "" {
		text = "<!-- of now -->" // an event without data is none
	}
	return s.send("stale", "", text)
}
