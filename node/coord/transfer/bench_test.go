package transfer

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/node/identity"
)

// way is one of several ways of moving the same bytes into a folder, and what it took in each round.
type way struct {
	name  string
	run   func(b *testing.B, to string)
	took  []float64 // seconds
	spent []float64 // seconds of processor time, both ends
}

// compare has all ways take turns in each of b.N rounds, so that what else the machine does, and its disk, disturb them
// alike. The first is ours. It reports medians, and how the best one whose name begins with tls compares with it: ratio
// by time and cpuratio by processor time, 1 being equal.
func compare(b *testing.B, bytes int64, ways []way) {
	b.Helper()
	for round := range b.N {
		for k := range ways {
			w := &ways[(round+k)%len(ways)]
			to := filepath.Join(b.TempDir(), w.name)
			must(b, os.Mkdir(to, 0o700))
			began, before := time.Now(), cpuSeconds()
			w.run(b, to)
			w.took = append(w.took, time.Since(began).Seconds())
			w.spent = append(w.spent, cpuSeconds()-before)
			must(b, os.RemoveAll(to))
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, w := range ways {
		b.ReportMetric(float64(bytes)/1e6/median(w.took), w.name+"-MB/s")
		b.ReportMetric(median(w.spent)/float64(bytes)*(1<<30), w.name+"-cpu-s/GiB")
	}
	took, spent := limits(ways)
	b.ReportMetric(took/median(ways[0].took), "ratio")
	b.ReportMetric(spent/median(ways[0].spent), "cpuratio")
}

// limits returns the least of both times that a bare way by TLS takes.
func limits(ways []way) (took, spent float64) {
	var all, cpu []float64
	for _, w := range ways {
		if strings.HasPrefix(w.name, "tls") {
			all, cpu = append(all, median(w.took)), append(cpu, median(w.spent))
		}
	}
	return slices.Min(all), slices.Min(cpu)
}

func median(of []float64) float64 {
	of = slices.SortedFunc(slices.Values(of), cmp.Compare)
	return of[len(of)/2]
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// bare is a peer without a protocol: a connection brings what its first byte says, and ends.
type bare struct {
	ln     net.Listener
	config *tls.Config // nil: no TLS
}

func newBare(b *testing.B, secure bool, send func(conn net.Conn, number int)) *bare {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	at := &bare{ln: ln}
	if secure {
		at.config, err = identity.Generate().Config()
		must(b, err)
		at.ln = tls.NewListener(ln, at.config)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := at.ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				var number [1]byte
				if _, err := io.ReadFull(conn, number[:]); err == nil {
					send(conn, int(number[0]))
				}
			})
		}
	})
	b.Cleanup(func() { _ = at.ln.Close(); wg.Wait() })
	return at
}

// receive has n connections at a time bring their shares.
func (at *bare) receive(b *testing.B, n int, take func(conn net.Conn, number int) error) {
	var all sync.WaitGroup
	for number := range n {
		all.Go(func() {
			conn, err := net.Dial("tcp", at.ln.Addr().String())
			if err == nil && at.config != nil {
				conn = tls.Client(conn, at.config)
			}
			if err == nil {
				defer conn.Close()
				_, err = conn.Write([]byte{byte(number)})
			}
			if err == nil {
				err = take(conn, number)
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
}

// copyAll copies as io.Copy does it, by no shortcut of the system that TLS has not.
func copyAll(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, chunkBytes))
}

// checkFile checks the hash of a file.
func checkFile(f *os.File, want [sha256.Size]byte) error {
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := copyAll(h, f); err != nil {
		return err
	}
	return checkHash(h.Sum(nil), want)
}

func checkHash(got []byte, want [sha256.Size]byte) error {
	if [sha256.Size]byte(got) != want {
		return fmt.Errorf("hash %x, not %x", got, want)
	}
	return nil
}
