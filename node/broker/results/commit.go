package results

import (
	"fmt"

	"github.com/cloudshare/cloudshare/node/record"
)

// group is writes that one sync makes durable.
type group struct {
	writes []record.Write
	done   chan struct{}
	err    error
}

// commit makes writes durable. Those that come while a sync is under way share the next one.
func (b *Book) commit(writes []record.Write) error {
	b.syncMu.Lock()
	if b.next == nil {
		b.next = &group{done: make(chan struct{})}
	}
	g := b.next
	g.writes = append(g.writes, writes...)
	leads := !b.syncing
	b.syncing = true
	b.syncMu.Unlock()
	if leads {
		b.syncAll()
	}
	<-g.done
	return g.err
}

// syncAll syncs groups until none waits.
func (b *Book) syncAll() {
	for {
		b.syncMu.Lock()
		g := b.next
		b.next = nil
		b.syncing = g != nil
		b.syncMu.Unlock()
		if g == nil {
			return
		}
		if err := b.journal.Commit(g.writes); err != nil {
			g.err = fmt.Errorf("record results: %w", err)
		}
		close(g.done)
	}
}
