package fsm

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/cloudshare/cloudshare/fsm/command"
)

// fold is half of the hash by which payloads used to be found.
func fold(x uint64) uint64 {
	hi, lo := bits.Mul64(x, 0x9e3779b97f4a7c15)
	return hi ^ lo
}

// TestPayloadsThatCollided: payloads used to be found by a hash keyed with the federation's seed, which all members
// know. So a member could send as many as it liked with equal hashes, and each submission walked along all of them.
func TestPayloadsThatCollided(t *testing.T) {
	const n = 100
	w := newWorld(t, params(), "a")
	var jobs []command.JobSpec
	for i := range uint64(n) {
		b := binary.LittleEndian.AppendUint64(nil, i)
		j := w.job("a", 1)
		j.Payload = binary.LittleEndian.AppendUint64(b, fold(Mix(w.s.seed^16)^i))
		jobs = append(jobs, j)
	}
	w.submit("a", jobs...)
	w.submit("a", w.job("a", 1), w.job("a", 1))
	if got := len(w.s.payloads); got != n+1 {
		t.Errorf("%d payloads of %d jobs stand in the table at %d places", n+1, n+2, got)
	}
	w.reborn()
	if got := len(w.s.payloads); got != n+1 {
		t.Errorf("%d after a restore", got)
	}
	for num := range w.num["a"] {
		w.must("a", &command.Cancel{Job: command.JobID{Site: "a", Num: num + 1}, Task: -1})
	}
	p := w.s.params
	p.RetainJobs = 0
	w.must("a", &command.SetParams{Params: p})
	for w.s.Pending() {
		w.apply()
	}
	if got := len(w.s.payloads); got != 0 {
		t.Errorf("%d payloads are kept of no job", got)
	}
}
