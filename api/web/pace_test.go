package web

import (
	"testing"
	"time"
)

// TestPace: few pages are told at once, a thousand share a core.
func TestPace(t *testing.T) {
	p := New(Config{})
	for streams, want := range map[int64]time.Duration{1: time.Second, 200: time.Second, 1000: 5 * time.Second} {
		p.streams.Store(streams)
		if got := p.pace(); got != want {
			t.Errorf("%d pages: %s, want %s", streams, got, want)
		}
	}
}
