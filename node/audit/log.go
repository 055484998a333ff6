package audit

import (
	"fmt"
	"sync"
	"time"
)

const (
	// maxBytes is how much waits for the disk; who adds more waits.
	maxBytes = 1 << 20
	// writeEvery is how long the writer lets entries come that nobody waits for: a thousand requests a second would
	// else be a thousand writes, and each would wake the writer.
	writeEvery = 50 * time.Millisecond
	// syncEvery is how often the disk has what was written, unless somebody waits for it.
	syncEvery = time.Second
	// tellEvery is how often a failure is told at most.
	tellEvery = 10 * time.Second
)

// Log is the record of one site. All methods may be called from any goroutine.
type Log struct {
	files  *files        // the writer's
	wake   chan struct{} // has one if the batch is not empty
	urgent chan struct{} // has one if somebody waits for it, or it is getting full
	quit   chan struct{}
	done   chan struct{} // closed once the writer has ended
	close  sync.Once
	failed func(error)
	told   time.Time // when failed was called last; the writer's
	spare  []byte    // the last batch's, to be used again; the writer's

	mu     sync.Mutex
	next   batch      // what the writer takes next; guarded by mu
	room   *sync.Cond // the batch was taken
	closed bool       // nothing is written any more; guarded by mu
}

// batch is what is written together.
type batch struct {
	lines   []byte
	waiting []chan error // each is told when a disk has it
}

func (b *batch) empty() bool { return len(b.lines) == 0 && len(b.waiting) == 0 }

// Options of a Log.
type Options struct {
	Dir string
	// FileBytes and Files bound what is kept; 0 = 16 MiB and 16.
	FileBytes int64
	Files     int
	// Failed is told when entries could not be written; they are lost.
	Failed func(error)
}

// Open opens or creates the record in a directory.
func Open(o Options) (*Log, error) {
	f, err := openFiles(o)
	if err != nil {
		return nil, fmt.Errorf("open the audit record: %w", err)
	}
	l := &Log{
		files: f, wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
		failed: o.Failed,
	}
	l.room = sync.NewCond(&l.mu)
	go l.run()
	return l, nil
}

// Append adds an entry; with durable it returns once a disk has it, or says why none has.
func (l *Log) Append(e Entry, durable bool) error {
	return l.add(durable, func(b []byte) []byte { return append(e.appendTo(b), '\n') })
}

// flush returns once all that was added has been written.
func (l *Log) flush() error { return l.add(true, func(b []byte) []byte { return b }) }

// add has the next batch end with what line adds. A batch is one piece of memory: a piece for each entry, handed over
// by itself, cost a submission five times as much.
func (l *Log) add(wait bool, line func([]byte) []byte) error {
	l.mu.Lock()
	for len(l.next.lines) >= maxBytes && !l.closed {
		l.room.Wait()
	}
	if l.closed {
		l.mu.Unlock()
		return errClosed
	}
	first := l.next.empty()
	l.next.lines = line(l.next.lines)
	var synced chan error
	if wait {
		synced = make(chan error, 1)
		l.next.waiting = append(l.next.waiting, synced)
	}
	urgent := wait || len(l.next.lines) > maxBytes/2
	l.mu.Unlock()
	if first {
		tell(l.wake)
	}
	if urgent {
		tell(l.urgent)
	}
	if !wait {
		return nil
	}
	return <-synced
}

// tell puts one into a channel that has room for one, unless it is told already.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Close writes what waits. It is idempotent.
func (l *Log) Close() error {
	l.close.Do(func() { close(l.quit) })
	<-l.done
	return l.files.close()
}

// run writes until Close.
func (l *Log) run() {
	defer close(l.done)
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.wake:
			l.gather()
			l.write(l.take(false))
		case <-tick.C:
			l.report(l.files.sync())
		case <-l.quit:
			l.write(l.take(true))
			l.report(l.files.sync())
			return
		}
	}
}

// gather lets more entries come, until somebody waits for them.
func (l *Log) gather() {
	enough := time.NewTimer(writeEvery)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-l.urgent:
	case <-l.quit:
	}
}

// take returns what is to be written, and lets others come.
func (l *Log) take(last bool) batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.next
	l.next, l.spare = batch{lines: l.spare[:0]}, b.lines
	l.closed = last
	l.room.Broadcast()
	return b
}

// write writes a batch, and syncs if somebody waits for that.
func (l *Log) write(b batch) {
	err := l.files.append(b.lines)
	if err == nil && len(b.waiting) > 0 {
		err = l.files.sync()
	}
	l.report(err)
	for _, w := range b.waiting {
		w <- err
	}
}

// report tells of a failure, at most every tellEvery: a full disk fails each batch.
func (l *Log) report(err error) {
	if err == nil || l.failed == nil || time.Since(l.told) < tellEvery {
		return
	}
	l.told = time.Now()
	l.failed(err)
}
