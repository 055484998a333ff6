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
)

// BenchmarkVerify goes through a history of jobs whose commands each stand in a bundle of their own, on one core, in
// turns with bare ed25519.Verify of as many bundles: of the same signatures, by the same keys. Both in processor time.
func BenchmarkVerify(b *testing.B) {
	f := newFederation(b, 256<<20)
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
	t := f.source(f.dir).Stream(0)
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
