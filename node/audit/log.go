package audit

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const (
	// maxQueue is how many entries wait for the disk; who adds another one waits.
	maxQueue = 4096
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
	files  *files // the writer's
	queue  chan item
	urgent chan struct{} // has one if somebody waits, or the queue is getting full
	quit   chan struct{}
	done   chan struct{} // closed once the writer has ended
	close  sync.Once
	failed func(error)
	told   time.Time // when failed was called last; the writer's
}

// item is a line to write; a nil one only asks for a sync.
type item struct {
	line   []byte
	synced chan error // nil = nobody waits
}

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
		files: f, queue: make(chan item, maxQueue), urgent: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
		failed: o.Failed,
	}
	go l.run()
	return l, nil
}

// Append adds an entry; with durable it returns once a disk has it, or says why none has.
func (l *Log) Append(e Entry, durable bool) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode an audit entry: %w", err)
	}
	return l.add(append(line, '\n'), durable)
}

// flush returns once all that was added has been written.
func (l *Log) flush() error { return l.add(nil, true) }

func (l *Log) add(line []byte, wait bool) error {
	it := item{line: line}
	if wait {
		it.synced = make(chan error, 1)
	}
	select {
	case l.queue <- it:
	case <-l.done:
		return errClosed
	}
	if wait || len(l.queue) > maxQueue/2 {
		select {
		case l.urgent <- struct{}{}:
		default: // the writer is told already
		}
	}
	if !wait {
		return nil
	}
	select {
	case err := <-it.synced:
		return err
	case <-l.done:
		return errClosed
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
		case first := <-l.queue:
			if first.synced == nil {
				l.gather()
			}
			l.write(first)
		case <-tick.C:
			l.report(l.files.sync())
		case <-l.quit:
			for len(l.queue) > 0 {
				l.write(<-l.queue)
			}
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

// write writes an entry and all that wait with it, and syncs if somebody waits for that.
func (l *Log) write(first item) {
	batch, waiting := first.line, waiters(nil, first)
	for range len(l.queue) {
		it := <-l.queue
		batch, waiting = append(batch, it.line...), waiters(waiting, it)
	}
	err := l.files.append(batch)
	if err == nil && len(waiting) > 0 {
		err = l.files.sync()
	}
	l.report(err)
	for _, w := range waiting {
		w <- err
	}
}

func waiters(list []chan error, it item) []chan error {
	if it.synced == nil {
		return list
	}
	return append(list, it.synced)
}

// report tells of a failure, at most every tellEvery: a full disk fails each batch.
func (l *Log) report(err error) {
	if err == nil || l.failed == nil || time.Since(l.told) < tellEvery {
		return
	}
	l.told = time.Now()
	l.failed(err)
}
