package core

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

// Idempotency keys (architecture D5). A key "k/n" is line n of "k", whether it
// came as such or as the n-th line of a request under "k": so the lines of a
// request share one entry, and stand in runs of consecutive lines that became
// consecutive jobs. A run is also what the journal holds.

const (
	// maxKeys is how many keys a broker holds; the lines of one count once.
	maxKeys = 1_000_000
	// maxKeyBytes bounds what the lines of all keys cost.
	maxKeyBytes = 256 << 20
	// keyLife is how long a key is remembered at least, and up to keyStep more, by
	// the broker's running time (see keyBook.clock).
	keyLife = 24 * time.Hour
	// keyStep is the resolution of a key's age, so that lines can share it.
	keyStep = time.Minute
	// maxKeyStep is a hundred years of steps: none is later.
	maxKeyStep = 100 * 366 * 24 * 60
	// runLines bounds a run, so that a line more is a small record to write.
	runLines = 256
	// runBytes is what a run costs beside its lines, in memory; less on disk.
	runBytes = 200
	// slotLines bounds what has to be moved to put a run in its place.
	slotLines = 4096
)

// keyHash stands for a key without its line.
type keyHash [16]byte

// bodyHash tells bodies under one key apart: against mistakes, 64 bits do.
type bodyHash [8]byte

// keyName is an idempotency key; line is 0 if it does not end in "/n".
type keyName struct {
	hash keyHash
	line uint32
}

// nameKey parts a key from its line. Each text has one name, no two have the same.
func nameKey(key string, line uint32) keyName {
	if cut := strings.LastIndexByte(key, '/'); line == 0 && cut >= 0 {
		n, err := strconv.ParseUint(key[cut+1:], 10, 32)
		if err == nil && n > 0 && strconv.FormatUint(n, 10) == key[cut+1:] {
			key, line = key[:cut], uint32(n)
		}
	}
	sum := sha256.Sum256([]byte(key))
	return keyName{keyHash(sum[:16]), line}
}

// keyRun is what consecutive lines of a key stand for: line first+i for job+i.
type keyRun struct {
	job    uint64
	first  uint32
	step   uint32 // of keyStep of running time, in which the lines came, rounded up
	due    uint32 // where it stands in the dueBook
	bodies []bodyHash
}

// stepOf is the step of a moment of running time.
func stepOf(now time.Duration) uint32 { return uint32(now/keyStep) + 1 }

// over reports whether what came in a step is to be forgotten.
func over(step uint32, now time.Duration) bool {
	return now >= time.Duration(step)*keyStep+keyLife
}

// holds reports whether a line is one of the run's.
func (r *keyRun) holds(line uint32) bool {
	return line >= r.first && line-r.first < uint32(len(r.bodies))
}

// takes reports whether a line can be the run's next one.
func (r *keyRun) takes(line uint32, job uint64, step uint32) bool {
	n := uint32(len(r.bodies))
	return line-r.first == n && job-r.job == uint64(n) && r.step == step && n < runLines
}

// keySlot is where the runs of slotLines lines of a key are.
type keySlot struct {
	hash keyHash
	part uint32
}

func (n keyName) slot() keySlot { return keySlot{n.hash, n.line / slotLines} }

// keyBook is what the idempotency keys stand for.
type keyBook struct {
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
	runs map[keySlot][]keyRun
	// parts counts the slots beside the first, of keys that have such.
	parts map[keyHash]int
	// held is how many keys have a run.
	held int
	// due are all runs, by their age.
	due dueBook
	// stale are records of runs that were over when the broker started. These,
	// and changed ones, are named by their first lines.
	stale []keyName
	// changed runs are not in the journal yet. Invariant: none between events.
	changed []keyName
	// bytes is what the runs cost. Invariant: at most mostBytes, and a run.
	bytes           int
	most, mostBytes int
}

func newKeyBook() keyBook {
	return keyBook{
		runs: map[keySlot][]keyRun{}, parts: map[keyHash]int{}, due: dueBook{runs: map[uint32][]keyName{}},
		most: maxKeys, mostBytes: maxKeyBytes,
	}
}

// knows reports whether any line of a key is held.
func (k *keyBook) knows(hash keyHash) bool {
	return k.parts[hash] > 0 || len(k.runs[keySlot{hash, 0}]) > 0
}

// at is where the run that holds the line stands in its slot, or would.
func (k *keyBook) at(name keyName) (i int, held bool) {
	runs := k.runs[name.slot()]
	i, exact := slices.BinarySearchFunc(runs, name.line, func(r keyRun, line uint32) int { return cmp.Compare(r.first, line) })
	if !exact {
		i--
	}
	if i >= 0 && runs[i].holds(name.line) {
		return i, true
	}
	return i + 1, false
}

// find returns the job and the body that a key stands for.
func (k *keyBook) find(name keyName) (job uint64, body bodyHash, held bool) {
	i, held := k.at(name)
	if !held || over(k.runs[name.slot()][i].step, k.clock) {
		return 0, body, false
	}
	r := &k.runs[name.slot()][i]
	return r.job + uint64(name.line-r.first), r.bodies[name.line-r.first], true
}

// full says why a key that is not held cannot be, or nil.
func (k *keyBook) full(name keyName) error {
	if k.held >= k.most && !k.knows(name.hash) {
		return fmt.Errorf("%w: %d: wait, or submit without a key", node.ErrKeysFull, k.most)
	}
	if k.bytes >= k.mostBytes {
		return fmt.Errorf("%w: their lines take %d bytes: wait, or submit without a key", node.ErrKeysFull, k.mostBytes)
	}
	return nil
}

// add holds a key that find does not know. REQUIRES: write before the event ends.
func (k *keyBook) add(name keyName, job uint64, body bodyHash, fx *Effects) {
	slot, step := name.slot(), stepOf(k.clock)
	i, held := k.at(name)
	if held { // it is over, but was not forgotten yet
		fx.Writes = append(fx.Writes, record.Remove(record.BucketKeys, runKey(name.hash, k.runs[slot][i].first)))
		k.forget(slot, i)
	}
	if i > 0 && k.runs[slot][i-1].takes(name.line, job, step) {
		i--
		r := &k.runs[slot][i]
		r.bodies = append(r.bodies, body)
		k.bytes += len(body)
	} else {
		k.insert(slot, i, keyRun{job: job, first: name.line, step: step, bodies: []bodyHash{body}})
	}
	id := keyName{name.hash, k.runs[slot][i].first}
	if n := len(k.changed); n == 0 || k.changed[n-1] != id {
		k.changed = append(k.changed, id)
	}
}

// insert puts a run in its place.
func (k *keyBook) insert(slot keySlot, i int, r keyRun) {
	if len(k.runs[slot]) == 0 {
		if !k.knows(slot.hash) {
			k.held++
		}
		if slot.part > 0 {
			k.parts[slot.hash]++
		}
	}
	r.due = k.due.add(r.step, keyName{slot.hash, r.first})
	k.runs[slot] = slices.Insert(k.runs[slot], i, r)
	k.bytes += runBytes + len(r.bodies)*len(bodyHash{})
}

// forget takes a run out.
func (k *keyBook) forget(slot keySlot, i int) {
	runs := k.runs[slot]
	k.bytes -= runBytes + len(runs[i].bodies)*len(bodyHash{})
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

// write has the journal hold what was added.
func (k *keyBook) write(fx *Effects) {
	for _, run := range k.changed {
		if i, held := k.at(run); held {
			fx.Writes = append(fx.Writes, k.runs[run.slot()][i].put(run.hash))
		}
	}
	k.changed = k.changed[:0]
}

// drop forgets one key: its job came to nothing. The rest of its run stays.
func (k *keyBook) drop(name keyName, fx *Effects) {
	i, held := k.at(name)
	if !held {
		return
	}
	slot := name.slot()
	r := k.runs[slot][i]
	n := name.line - r.first
	k.forget(slot, i)
	fx.Writes = append(fx.Writes, record.Remove(record.BucketKeys, runKey(name.hash, r.first)))
	for _, part := range []keyRun{
		{job: r.job, first: r.first, step: r.step, bodies: slices.Clone(r.bodies[:n])},
		{job: r.job + uint64(n) + 1, first: name.line + 1, step: r.step, bodies: slices.Clone(r.bodies[n+1:])},
	} {
		if len(part.bodies) > 0 {
			k.insert(slot, i, part)
			fx.Writes = append(fx.Writes, part.put(name.hash))
			i++
		}
	}
}

func runKey(hash keyHash, first uint32) []byte { return binary.BigEndian.AppendUint32(hash[:], first) }

// runFormat is the first byte of a run's record. Records of before had none, and
// counted their step from 1970.
const runFormat = 2

// put is the write of the run's record: format, job, step, bodies.
func (r *keyRun) put(hash keyHash) record.Write {
	v := make([]byte, 0, 13+len(r.bodies)*len(bodyHash{}))
	v = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(append(v, runFormat), r.job), r.step)
	for i := range r.bodies {
		v = append(v, r.bodies[i][:]...)
	}
	return record.Put(record.BucketKeys, runKey(hash, r.first), v)
}

var errBadRun = errors.New("a record of idempotency keys is malformed")

// decodeRun reads a run's record; its step is 0 if it is one of before.
func decodeRun(key, v []byte) (hash keyHash, r keyRun, err error) {
	const head, each = 12, len(bodyHash{})
	dated := len(v)%each == (1+head)%each && v[0] == runFormat
	if dated {
		v = v[1:]
	}
	n := (len(v) - head) / each
	if len(key) != len(hash)+4 || n < 1 || n > runLines || len(v) != head+n*each || dated && binary.BigEndian.Uint32(v[8:]) > maxKeyStep {
		return hash, r, fmt.Errorf("%w: %x", errBadRun, key)
	}
	hash = keyHash(key[:len(hash)])
	r.first = binary.BigEndian.Uint32(key[len(hash):])
	r.job = binary.BigEndian.Uint64(v)
	if dated {
		r.step = binary.BigEndian.Uint32(v[8:])
	}
	r.bodies = make([]bodyHash, n)
	for i := range r.bodies {
		r.bodies[i] = bodyHash(v[head+i*each:])
	}
	return hash, r, nil
}

// recoverKeys reads the runs; the journal has those of one key in their order.
// Records of before are as old as this start.
func (c *Core) recoverKeys(j record.Reader, fx *Effects) error {
	k := &c.keys
	if err := k.recoverClock(j, c.now.Up); err != nil {
		return err
	}
	return j.Each(record.BucketKeys, func(key, v []byte) error {
		hash, r, err := decodeRun(key, v)
		if err != nil {
			return err
		}
		if r.step == 0 {
			r.step = stepOf(k.clock)
			fx.Writes = append(fx.Writes, r.put(hash))
		}
		if over(r.step, k.clock) {
			k.stale = append(k.stale, keyName{hash, r.first})
			return nil
		}
		name := keyName{hash, r.first}
		if i, held := k.at(name); !held { // else a lazy deletion was lost
			k.insert(name.slot(), i, r)
		}
		return nil
	})
}

// checkKey answers a request whose idempotency key decides it: a repeat gets
// the original id, another body under the same key an error.
func (c *Core) checkKey(req node.Request, reply func(node.Answer), s StateReader, fx *Effects) (name keyName, done bool) {
	if req.Key == "" {
		return name, false
	}
	name = nameKey(req.Key, req.Line)
	job, body, held := c.keys.find(name)
	if !held {
		err := c.keys.full(name)
		if err != nil {
			fx.reply(reply, node.Answer{Err: err})
		}
		return name, err != nil
	}
	if body != bodyHash(req.Meaning[:8]) {
		fx.reply(reply, node.Answer{Err: fmt.Errorf("%w: it stands for job %s.%d", node.ErrKeyReused, c.site, job)})
	} else {
		c.replay(job, reply, s, fx)
	}
	return name, true
}

// replay answers a repeat of a keyed request. Once the site is registered its
// state is as new as the keys: what it does not know has ended.
func (c *Core) replay(num uint64, reply func(node.Answer), s StateReader, fx *Effects) {
	if c.pubs.follow(num, reply) {
		return
	}
	a := node.Answer{ID: fsm.JobID{Site: c.site, Num: num}, Durability: node.DurableFederation, Replayed: true}
	job := c.home.jobs[num]
	v, published := s.Job(a.ID)
	switch {
	case job != nil:
		a.Durability, a.State = node.DurableSite, job.state().String()
	case published:
		a.State, a.Reason = v.State.String(), v.Reason
	case c.incarnation == 0:
		a.State, a.Reason = fsm.Queued.String(), "accepted before; its state is known here once this broker is registered"
	default: // whether the federation ever had it is not known, either
		a.Durability, a.State, a.Reason = node.DurableSite, node.Retired, "it has ended and is no longer kept"
	}
	fx.reply(reply, a)
}
