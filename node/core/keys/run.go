package keys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cloudshare/cloudshare/node/record"
)

// lineRun is what consecutive lines of a key stand for: line first+i for job+i.
type lineRun struct {
	job    uint64
	first  uint32
	step   uint32 // of Step of running time, in which the lines came, rounded up
	due    uint32 // where it stands in the dueBook
	bodies []Body
}

// StepOf returns the step of a moment of running time.
func StepOf(now time.Duration) uint32 { return uint32(now/Step) + 1 }

// Over reports whether what came in a step is to be forgotten.
func Over(step uint32, now time.Duration) bool {
	return now >= time.Duration(step)*Step+Lifetime
}

// holds reports whether a line is one of the run's.
func (r *lineRun) holds(line uint32) bool {
	return line >= r.first && line-r.first < uint32(len(r.bodies))
}

// takes reports whether a line can be the run's next one.
func (r *lineRun) takes(line uint32, job uint64, step uint32) bool {
	n := uint32(len(r.bodies))
	return line-r.first == n && job-r.job == uint64(n) && r.step == step && n < runLines
}

func runKey(hash keyHash, first uint32) []byte { return binary.BigEndian.AppendUint32(hash[:], first) }

// runFormat is the first byte of a run's record.
const runFormat = 2

// put returns the write of the run's record: format, job, step, bodies.
func (r *lineRun) put(hash keyHash) record.Write {
	v := make([]byte, 0, 13+len(r.bodies)*len(Body{}))
	v = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(append(v, runFormat), r.job), r.step)
	for i := range r.bodies {
		v = append(v, r.bodies[i][:]...)
	}
	return record.Put(record.BucketKeys, runKey(hash, r.first), v)
}

var errBadRun = errors.New("a record of idempotency keys is malformed or of another version: run the version that wrote it")

// decodeRun reads a run's record.
func decodeRun(key, v []byte) (hash keyHash, r lineRun, err error) {
	const head, each = 1 + 8 + 4, len(Body{})
	n := (len(v) - head) / each
	if len(key) != len(hash)+4 || n < 1 || n > runLines || len(v) != head+n*each || v[0] != runFormat {
		return hash, r, fmt.Errorf("%w: %x", errBadRun, key)
	}
	hash, r.first = keyHash(key[:len(hash)]), binary.BigEndian.Uint32(key[len(hash):])
	r.job, r.step = binary.BigEndian.Uint64(v[1:]), binary.BigEndian.Uint32(v[9:])
	if r.step == 0 || r.step > maxStep {
		return hash, r, fmt.Errorf("%w: %x", errBadRun, key)
	}
	r.bodies = make([]Body, n)
	for i := range r.bodies {
		r.bodies[i] = Body(v[head+i*each:])
	}
	return hash, r, nil
}
