//go:build zookeeper

package zk

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/cloudshare/cloudshare/node/coord/coordtest"
	"github.com/cloudshare/cloudshare/node/coord/facade"
)

// flood has n goroutines do something b.N times in all.
func flood(b *testing.B, n int, do func(i int64) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range n {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "1/s")
}

var inFlight = []int{1, 16, 64}

// BenchmarkBareCreates is the limit: creates of 256 bytes from one session.
func BenchmarkBareCreates(b *testing.B) {
	for _, n := range inFlight {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := place()
			p.Session = 2 * time.Second
			c, err := connect(p, nil, testLogger())
			if err != nil {
				b.Fatal(err)
			}
			defer c.close()
			if err := c.ensureRoot(b.Context()); err != nil {
				b.Fatal(err)
			}
			data := make([]byte, 256)
			flood(b, n, func(i int64) error {
				_, err := c.zk.Create(fmt.Sprintf("%s/%020d", p.Chroot, i), data, 0, zk.DigestACL(zk.PermAll, p.User, p.Password))
				return err
			})
		})
	}
}

// BenchmarkBareMultis is what an append costs the ensemble.
func BenchmarkBareMultis(b *testing.B) {
	for _, n := range inFlight {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := place()
			p.Session = 2 * time.Second
			c, err := connect(p, nil, testLogger())
			if err != nil {
				b.Fatal(err)
			}
			defer c.close()
			if err := c.ensureRoot(b.Context()); err != nil {
				b.Fatal(err)
			}
			data := make([]byte, 256)
			flood(b, n, func(i int64) error {
				_, err := c.zk.Multi(c.check("", 0), c.check("", 0), c.create(fmt.Sprintf("/%020d", i), data, 0))
				return err
			})
		})
	}
}

// BenchmarkPropose is one small call each, at the leader.
func BenchmarkPropose(b *testing.B) {
	for _, n := range inFlight {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var entries atomic.Int64
			cfg := Config{
				Config: facade.Config{
					Site: "a", Node: [16]byte{1}, Dir: b.TempDir(), Listen: "127.0.0.1:0", Federation: [16]byte{1},
					Machine: coordtest.NewMachine(), Logger: testLogger(),
					Hooks: facade.Hooks{Entry: func(int, int) { entries.Add(1) }},
				},
				Place: place(), Bootstrap: true,
			}
			cfg.Session = 2 * time.Second
			l, err := Open(b.Context(), cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			if _, err := l.Propose(b.Context(), registration("a", 1)); err != nil {
				b.Fatal(err)
			}
			entries.Store(0)
			began := time.Now()
			flood(b, n, func(int64) error {
				_, err := l.Propose(b.Context(), registration("a", 1))
				return err
			})
			b.ReportMetric(float64(entries.Load())/time.Since(began).Seconds(), "entries/s")
		})
	}
}
