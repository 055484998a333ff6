// Package keys holds what idempotency keys stand for (architecture D5): for each the job
// that its first request became, and a hash of that request, for a day. The broker's core
// asks it before it accepts a job; what changes is written to the journal with the job.
//
// A key "k/n" is line n of "k", whether it came as such or as the n-th line of a request
// under "k": so the lines of a request share one entry, and stand in runs of consecutive
// lines that became consecutive jobs. A run is also what the journal holds.
package keys

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

const (
	// maxKeys is how many keys a broker holds; the lines of one count once.
	maxKeys = 1_000_000
	// maxKeyBytes bounds what the lines of all keys cost.
	maxKeyBytes = 256 << 20
	// Lifetime is how long a key is remembered at least, and up to Step more, by
	// the broker's running time (see Book.clock).
	Lifetime = 24 * time.Hour
	// Step is the resolution of a key's age, so that lines can share it.
	Step = time.Minute
	// maxStep is a hundred years of steps: none is later.
	maxStep = 100 * 366 * 24 * 60
	// runLines bounds a run, so that a line more is a small record to write.
	runLines = 256
	// runBytes is what a run costs besides its lines, in memory; less on disk.
	runBytes = 200
	// slotLines bounds what has to be moved to put a run in its place.
	slotLines = 4096
)

// Book is what the idempotency keys stand for.
type Book struct {
	// clock is how long brokers have run on this data, in all: what keys age by. It
	// stands still while none runs and while the machine is suspended, and neither
	// a step of the date nor a return to the federation moves it, so that a key
	// lives longer rather than shorter. Invariant: it only grows.
	clock time.Duration
	// began is what clock was when this broker had run for upAtBegin; noted is the
	// step of clock that the journal holds.
	began, upAtBegin time.Duration
	noted            uint32
	// runs by slot. Invariant: by first line, without overlaps, never none.
	runs map[runSlot][]lineRun
	// parts counts the slots besides the first, of keys that have such.
	parts map[keyHash]int
	// held is how many keys have a run.
	held int
	// due are all runs, by their age.
	due dueBook
	// stale are records of runs that were over when the broker started. These,
	// and changed ones, are named by their first lines.
	stale []Name
	// changed runs are not in the journal yet. Invariant: none between events.
	changed []Name
	// bytes is what the runs cost. Invariant: at most mostBytes, and a run.
	bytes           int
	most, mostBytes int
}

// NewBook returns a book without keys.
func NewBook() Book {
	return Book{
		runs: map[runSlot][]lineRun{}, parts: map[keyHash]int{}, due: dueBook{runs: map[uint32][]Name{}},
		most: maxKeys, mostBytes: maxKeyBytes,
	}
}

// Len returns how many keys are held; the lines of one count once.
func (k *Book) Len() int { return k.held }

// Bytes returns what the lines of all keys cost.
func (k *Book) Bytes() int { return k.bytes }

// Limit bounds how many keys the book holds, and what their lines may cost in bytes.
func (k *Book) Limit(most, mostBytes int) { k.most, k.mostBytes = most, mostBytes }

// knows reports whether any line of a key is held.
func (k *Book) knows(hash keyHash) bool {
	return k.parts[hash] > 0 || len(k.runs[runSlot{hash, 0}]) > 0
}

// at returns where the run that holds the line stands in its slot, or would.
func (k *Book) at(name Name) (i int, held bool) {
	runs := k.runs[name.slot()]
	i, exact := slices.BinarySearchFunc(runs, name.line,
		func(r lineRun, line uint32) int { return cmp.Compare(r.first, line) })
	if !exact {
		i--
	}
	if i >= 0 && runs[i].holds(name.line) {
		return i, true
	}
	return i + 1, false
}

// Find returns the job and the body that a key stands for.
func (k *Book) Find(name Name) (job uint64, body Body, held bool) {
	i, held := k.at(name)
	if !held || Over(k.runs[name.slot()][i].step, k.clock) {
		return 0, body, false
	}
	r := &k.runs[name.slot()][i]
	return r.job + uint64(name.line-r.first), r.bodies[name.line-r.first], true
}

// Full says why a key that is not held cannot be, or nil.
func (k *Book) Full(name Name) error {
	if k.held >= k.most && !k.knows(name.hash) {
		return fmt.Errorf("%w: %d: wait, or submit without a key", node.ErrKeysFull, k.most)
	}
	if k.bytes >= k.mostBytes {
		return fmt.Errorf("%w: their lines take %d bytes: wait, or submit without a key", node.ErrKeysFull, k.mostBytes)
	}
	return nil
}

// Add holds a key that Find does not know. REQUIRES: Write before the event ends.
func (k *Book) Add(name Name, job uint64, body Body, writes *[]record.Write) {
	slot, step := name.slot(), StepOf(k.clock)
	i, held := k.at(name)
	if held { // it is over, but was not forgotten yet
		*writes = append(*writes, record.Remove(record.BucketKeys, runKey(name.hash, k.runs[slot][i].first)))
		k.forget(slot, i)
	}
	if i > 0 && k.runs[slot][i-1].takes(name.line, job, step) {
		i--
		r := &k.runs[slot][i]
		r.bodies = append(r.bodies, body)
		k.bytes += len(body)
	} else {
		k.insert(slot, i, lineRun{job: job, first: name.line, step: step, bodies: []Body{body}})
	}
	id := Name{name.hash, k.runs[slot][i].first}
	if n := len(k.changed); n == 0 || k.changed[n-1] != id {
		k.changed = append(k.changed, id)
	}
}

// insert puts a run in its place.
func (k *Book) insert(slot runSlot, i int, r lineRun) {
	if len(k.runs[slot]) == 0 {
		if !k.knows(slot.hash) {
			k.held++
		}
		if slot.part > 0 {
			k.parts[slot.hash]++
		}
	}
	r.due = k.due.add(r.step, Name{slot.hash, r.first})
	k.runs[slot] = slices.Insert(k.runs[slot], i, r)
	k.bytes += runBytes + len(r.bodies)*len(Body{})
}

// forget takes a run out.
func (k *Book) forget(slot runSlot, i int) {
	runs := k.runs[slot]
	k.bytes -= runBytes + len(runs[i].bodies)*len(Body{})
	if moved, ok := k.due.remove(runs[i].step, runs[i].due); ok {
		j, _ := k.at(moved)
		k.runs[moved.slot()][j].due = runs[i].due
	}
	if len(runs) > 1 {
		k.runs[slot] = slices.Delete(runs, i, i+1)
		return
	}
	delete(k.runs, slot)
	if slot.part > 0 {
		if k.parts[slot.hash]--; k.parts[slot.hash] == 0 {
			delete(k.parts, slot.hash)
		}
	}
	if !k.knows(slot.hash) {
		k.held--
	}
}

// Write has the journal hold what was added.
func (k *Book) Write(writes *[]record.Write) {
	for _, run := range k.changed {
		if i, held := k.at(run); held {
			*writes = append(*writes, k.runs[run.slot()][i].put(run.hash))
		}
	}
	k.changed = k.changed[:0]
}

// Drop forgets one key: its job came to nothing. The rest of its run stays.
func (k *Book) Drop(name Name, writes *[]record.Write) {
	i, held := k.at(name)
	if !held {
		return
	}
	slot := name.slot()
	r := k.runs[slot][i]
	n := name.line - r.first
	k.forget(slot, i)
	*writes = append(*writes, record.Remove(record.BucketKeys, runKey(name.hash, r.first)))
	for _, part := range []lineRun{
		{job: r.job, first: r.first, step: r.step, bodies: slices.Clone(r.bodies[:n])},
		{job: r.job + uint64(n) + 1, first: name.line + 1, step: r.step, bodies: slices.Clone(r.bodies[n+1:])},
	} {
		if len(part.bodies) > 0 {
			k.insert(slot, i, part)
			*writes = append(*writes, part.put(name.hash))
			i++
		}
	}
}

// Recover reads the runs; the journal has those of one key in their order. up is how long
// this process has run.
func (k *Book) Recover(j record.Reader, up time.Duration) error {
	if err := k.recoverClock(j, up); err != nil {
		return err
	}
	return j.Each(record.BucketKeys, func(key, v []byte) error {
		hash, r, err := decodeRun(key, v)
		if err != nil {
			return err
		}
		if Over(r.step, k.clock) {
			k.stale = append(k.stale, Name{hash, r.first})
			return nil
		}
		name := Name{hash, r.first}
		if i, held := k.at(name); !held { // else a lazy deletion was lost
			k.insert(name.slot(), i, r)
		}
		return nil
	})
}
