package replica

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
)

// written returns a replica's snapshot.
func written(t testing.TB, r *Replica) []byte {
	t.Helper()
	s, err := r.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err = s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The chain is over the bytes of all entries, those that all refuse alike and the beginning of an epoch, too; a
// replica that took a snapshot has the same one.
func TestChain(t *testing.T) {
	r := checkpointed(t)
	var want [32]byte
	apply := func(entry []byte) {
		t.Helper()
		if _, err := r.Apply(entry); err != nil {
			t.Fatal(err)
		}
		of := sha256.Sum256(entry)
		want = sha256.Sum256(append(want[:], of[:]...))
	}
	r.chain = Chain{} // from here on
	apply(idle(1, time.Second))
	apply([]byte("no batch"))
	apply(idle(1, 2*time.Second))
	other := NewReplica()
	if err := other.Restore(bytes.NewReader(written(t, r))); err != nil {
		t.Fatal(err)
	}
	if r.chain != want || other.chain != want {
		t.Errorf("chain %x, of the restored one %x, want %x", r.chain, other.chain, want)
	}
	if _, err := r.Apply((&command.Batch{Term: 1, Commands: []command.Command{
		{ID: command.ID{Site: "site-1"}, Body: &command.Register{Node: [16]byte{1}, Boot: [16]byte{1}, MaxVersion: 1}},
	}}).Append(nil)); err != nil {
		t.Fatal(err)
	}
	before := r.chain
	if err := coord.BeginEpoch(r, "site-1", 1, 0); err != nil {
		t.Fatal(err)
	}
	if r.chain == before || r.chain == want {
		t.Error("a later epoch begins, and the chain stays as it is")
	}
}

// Two orders of the same entries may lead to one state: only the chain tells.
func TestChainTellsOrder(t *testing.T) {
	a, b := checkpointed(t), checkpointed(t)
	for i, r := range []*Replica{a, b} {
		entries := [][]byte{[]byte("no batch"), []byte("none either")}
		for n := range entries {
			if _, err := r.Apply(entries[n^i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, one := a.Hash()
	_, other := b.Hash()
	if one != other || a.chain == b.chain {
		t.Errorf("states %x and %x, chains %x and %x", one[:4], other[:4], a.chain[:4], b.chain[:4])
	}
}

// A snapshot that has no chain, or another one than was written, is refused in one line, and the old state stays.
func TestChainOfSnapshotIsChecked(t *testing.T) {
	r := checkpointed(t)
	whole := written(t, r)
	var old bytes.Buffer
	if err := r.state.Snapshot().Write(&old); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"without a chain": old.Bytes(), "cut": whole[:40], "empty": nil} {
		err := r.Restore(bytes.NewReader(b))
		if !errors.Is(err, fsm.ErrBadSnapshot) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for bit := range 8 * (len(chainMagic) + 64) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if err := r.Restore(bytes.NewReader(b)); !errors.Is(err, fsm.ErrBadSnapshot) {
			t.Fatalf("bit %d of the head changed: %v", bit, err)
		}
	}
	if index, _ := r.Hash(); index != 1 {
		t.Errorf("entry %d", index)
	}
}

// Between the checkpoints whose state is hashed, the others have the chain.
func TestCheckpointsWithoutHash(t *testing.T) {
	r := checkpointed(t)
	r.points.level = maxCheckpointLevel // as if a hash cost much
	for s := 1; s <= 30; s++ {
		if _, err := r.Apply(idle(1, time.Duration(s)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	points := awaitCheckpoints(t, r)
	if len(points) == 0 || points[len(points)-1].Entry < r.Index()-6 {
		t.Fatalf("entry %d, checkpoints %v", r.Index(), points)
	}
	for _, p := range points {
		if p.Hashed || p.Chain == [32]byte{} {
			t.Errorf("checkpoint %+v", p)
		}
	}
}

// BenchmarkChain is what the chain costs an entry, by its size in bytes.
func BenchmarkChain(b *testing.B) {
	for _, size := range []int{256, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var h Chain
			entry := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				h = h.Next(sha256.Sum256(entry))
			}
		})
	}
}

// BenchmarkApply is Apply as a whole: of an idle entry, and of jobs in an entry of 256 bytes or 64 KiB or so. In a
// build in which Apply leaves out the chain it shows what that costs beside all else.
func BenchmarkApply(b *testing.B) {
	for _, payload := range []int{0, 128, 63 << 10} {
		b.Run(fmt.Sprint(payload), func(b *testing.B) { benchmarkApply(b, payload) })
	}
}

func benchmarkApply(b *testing.B, payload int) {
	r := NewReplica()
	apply := func(cmds ...command.Command) {
		entry := (&command.Batch{Term: 1, Commands: cmds}).Append(nil)
		if _, err := r.Apply(entry); err != nil {
			b.Fatal(err)
		}
	}
	apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Genesis{
		Federation: [16]byte{1}, Seed: 1, Params: command.DefaultParams(),
	}})
	apply(command.Command{ID: command.ID{Site: "a"}, Body: &command.Register{
		Node: [16]byte{1}, Boot: [16]byte{1}, MaxVersion: 1,
	}})
	text := make([]byte, payload)
	num := uint64(0)
	for b.Loop() {
		if payload == 0 {
			apply()
			continue
		}
		num++
		id := command.ID{Site: "a", Incarnation: 1, Seq: 2*num - 1}
		apply(command.Command{ID: id, Ack: id.Seq - 1, Body: &command.Submit{Jobs: []command.JobSpec{{
			Num: num, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1}, Payload: text,
		}}}})
		id.Seq++
		b.StopTimer()
		apply(command.Command{ID: id, Ack: id.Seq - 1, Body: &command.Cancel{Job: command.JobID{Site: "a", Num: num}}})
		b.StartTimer()
	}
}
