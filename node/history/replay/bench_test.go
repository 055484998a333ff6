package replay_test

import (
	"crypto/ed25519"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
	"github.com/cloudshare/cloudshare/node/replica"
)

// BenchmarkVerify goes through a history of jobs whose commands each stand in a bundle of their own, on one core, in
// turns with bare ed25519.Verify of as many bundles: of the same signatures, by the same keys. Both in processor time.
func BenchmarkVerify(b *testing.B) {
	f := newFederation(b, 256<<20)
	f.stepMs = 100 // ten entries a second
	for range 1000 {
		f.job("site-2")
	}
	f.close()
	bare := bareOf(b, f)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var whole, alone time.Duration
	bundles := 0
	for b.Loop() {
		began := processorTime(b)
		for _, s := range bare {
			if !ed25519.Verify(s.key[:], s.message, s.signature[:]) {
				b.Fatal("wrong signature")
			}
		}
		alone += processorTime(b) - began
		began = processorTime(b)
		r := f.verify(f.dir, replay.Options{})
		whole += processorTime(b) - began
		if r.Difference != nil || int(r.Bundles) != len(bare) {
			b.Fatalf("%v, %d bundles", r.Difference, r.Bundles)
		}
		bundles += len(bare)
	}
	b.ReportMetric(float64(bundles)/whole.Seconds(), "bundles/s")
	b.ReportMetric(float64(bundles)/alone.Seconds(), "bare/s")
}

// processorTime returns what this process has used: others use the machine, too.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// signed is what a bundle has to verify.
type signed struct {
	key       signature.Key
	signature signature.Signature
	message   []byte
}

// bareOf returns all that is signed in a history.
func bareOf(b *testing.B, f *federation) (out []signed) {
	t := f.source(f.dir).Stream()
	for rec, err := t.Next(); err == nil; rec, err = t.Next() {
		if rec.Kind != history.KindEntry {
			continue
		}
		bundles, err := command.Bundles(rec.Contents)
		if err != nil {
			b.Fatal(err)
		}
		for _, x := range bundles {
			out = append(out, signed{
				signature.Key(keyOf(x.Site).Public()), x.Signature,
				signature.Message(command.SignedCommands, f.id[:], x.Signed),
			})
		}
	}
	return out
}

// BenchmarkKeep is what keeping an entry of 300 bytes costs a broker in processor time: queued while Apply waits, and
// written, opening and closing included.
func BenchmarkKeep(b *testing.B) {
	const together = 40_000
	var queued, all time.Duration
	kept, entry := 0, make([]byte, 300)
	for b.Loop() {
		f := &federation{t: b, dir: b.TempDir()}
		began := processorTime(b)
		f.open(64 << 20)
		s, err := f.replica.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		f.keeper.Begin(0, replica.Chain{}, s)
		before := processorTime(b)
		for n := range uint64(together) {
			f.keeper.Append(n+1, replica.Chain{}, replica.Chain{}, entry)
		}
		queued += processorTime(b) - before
		f.close()
		all += processorTime(b) - began
		if kept += together; f.keeper.Gaps() > 0 {
			b.Fatal("a gap")
		}
	}
	b.ReportMetric(float64(queued.Nanoseconds())/float64(kept), "ns/queued")
	b.ReportMetric(float64(all.Nanoseconds())/float64(kept), "ns/entry")
}
