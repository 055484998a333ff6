package replay_test

import (
	"crypto/ed25519"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/history"
	"github.com/cloudshare/cloudshare/node/history/replay"
)

// BenchmarkVerify goes through a history of jobs whose commands each stand in a bundle of their own, on one core, in
// turns with bare ed25519.Verify of as many bundles: of the same signatures, by the same keys.
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
		began := time.Now()
		for _, s := range bare {
			if !ed25519.Verify(s.key[:], s.message, s.signature[:]) {
				b.Fatal("wrong signature")
			}
		}
		alone += time.Since(began)
		began = time.Now()
		r := f.verify(f.dir, replay.Options{})
		whole += time.Since(began)
		if r.Difference != nil || int(r.Bundles) != len(bare) {
			b.Fatalf("%v, %d bundles", r.Difference, r.Bundles)
		}
		bundles += len(bare)
	}
	b.ReportMetric(float64(bundles)/whole.Seconds(), "bundles/s")
	b.ReportMetric(float64(bundles)/alone.Seconds(), "bare/s")
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

var _ = os.Stdout
