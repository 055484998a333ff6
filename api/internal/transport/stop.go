package transport

import (
	"context"
	"sync"
)

// Stop ends what would never end by itself once the server stops.
type Stop struct {
	begun chan struct{} // closed when Shutdown begins
	once  sync.Once
}

func newStop() *Stop { return &Stop{begun: make(chan struct{})} }

func (s *Stop) begin() { s.once.Do(func() { close(s.begun) }) }

// Begun is closed when the server begins to stop.
func (s *Stop) Begun() <-chan struct{} { return s.begun }

// Until returns a context that ends with ctx, or when the server stops.
func (s *Stop) Until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.begun:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
