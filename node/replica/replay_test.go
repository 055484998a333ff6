package replica

import (
	"context"
	"errors"
	"testing"

	"github.com/cloudshare/cloudshare/node"
)

// Found by review: after a restart of the broker a follower was told that its
// events were lost, and then had the whole log told again.
func TestReadersGoOnOverAReplay(t *testing.T) {
	b, f := feedOf(t)
	b.current = make(chan struct{})
	reader := b.Events(node.EventID{Entry: 5, N: 1}, node.EventFilter{})
	ahead := b.Events(node.EventID{Entry: 50, N: 1}, node.EventFilter{})
	none := func(s *Subscription) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if events, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v, %v while the log is replayed", events, err)
		}
	}
	none(reader) // nothing of the log is known yet
	applied(t, b, 4)
	f.add(entry(4, 1))
	none(reader) // half of it
	applied(t, b, 2)
	f.add(entry(5, 2))
	f.add(entry(6, 1))
	if got := drainEvents(t, reader); got != "5.2 6.1" {
		t.Errorf("goes on with %q", got)
	}
	none(ahead)
	close(b.current)
	if got := drainEvents(t, ahead); got != "lost" || ahead.Place() != f.Now() {
		t.Errorf("ahead of a log that was replayed: %q, goes on after %s", got, ahead.Place())
	}
}

// A snapshot that is newer than a reader's place stands for what is lost.
func TestReadersGoOnAfterASnapshot(t *testing.T) {
	b, f := feedOf(t)
	b.current = make(chan struct{})
	reader := b.Events(node.EventID{Entry: 5, N: 1}, node.EventFilter{})
	applied(t, b, 7)
	f.reset(7)
	close(b.current)
	if got := drainEvents(t, reader); got != "lost" || reader.Place() != node.AfterEntry(7) {
		t.Errorf("%q, goes on after %s", got, reader.Place())
	}
}
