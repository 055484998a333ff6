package broker

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cloudshare/cloudshare/node/record"
)

// A disk that hangs gives no error: a sync that never returns would keep the
// broker alive, answering reads, acknowledging and starting nothing. So writes of
// the journal are watched from outside, as raft watches its store. A leader with
// such a journal orders on, for raft's store is another file; once the broker
// fails, the leader is handed over with the rest.
const (
	// journalStall is for how long a write is under way when the broker stops
	// calling itself live and ready.
	journalStall = 3 * time.Second
	// journalHang is when it fails. The greatest requests on a slow disk take
	// seconds and must not be taken for a hang.
	journalHang = 30 * time.Second
	// stallEvery is how often that is looked at.
	stallEvery = 500 * time.Millisecond
)

// journalWatch judges the writes of the journal from outside.
type journalWatch struct {
	*process
	journal *record.Journal
	stall   atomic.Pointer[error] // as the last look found it
}

// run looks at the journal's writes until the broker stops.
func (x *journalWatch) run() {
	tick := time.NewTicker(stallEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			x.look(time.Now())
		case <-x.ctx.Done():
			return
		}
	}
}

// look judges a write that is under way.
func (x *journalWatch) look(now time.Time) {
	if err := x.journal.Stalled(now, journalHang); err != nil {
		x.fail(err)
		return
	}
	err := x.journal.Stalled(now, journalStall)
	var last error
	if was := x.stall.Swap(&err); was != nil {
		last = *was
	}
	switch {
	case err != nil && last == nil:
		x.log.Warn().Err(err).Msg("the journal hangs: nothing is acknowledged or started")
	case err == nil && last != nil:
		x.log.Info().Msg("the journal writes again")
	}
}

// stalled returns what the last look at the journal found, or nil.
func (x *journalWatch) stalled() error {
	if err := x.stall.Load(); err != nil {
		return *err
	}
	return nil
}

// join waits for the broker's goroutines, but for one that hangs in the journal:
// then only the end of the process frees the data directory.
func (b *Broker) join() error {
	done := make(chan struct{})
	go func() {
		b.wg.Wait()
		close(done)
	}()
	tick := time.NewTicker(stallEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
			b.journal.look(time.Now())
			if err := b.Err(); errors.Is(err, record.ErrJournalStalled) && b.cfg.Journal.Pending() > 0 {
				return fmt.Errorf("stop broker: %w; end the process", err)
			}
		}
	}
}
