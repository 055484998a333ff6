package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cloudshare/cloudshare/node/files"
)

// benchRig is one with room enough for all that a benchmark puts, and with the folders of a place, as it has them soon.
func benchRig(b *testing.B, at Place) *rig {
	b.Helper()
	room := Limit{1 << 40, time.Hour}
	r := newRig(b, b.TempDir(), limitsOf(room, room, room))
	r.timed = true
	r.reopen()
	r.Repin(noPins)
	b.Cleanup(func() { _ = r.Close() })
	for n := range 256 {
		if err := r.disk.mkdir(folderOf(key{at, files.Hash{byte(n)}})); err != nil {
			b.Fatal(err)
		}
	}
	return r
}

// numbered returns content of its own for each number.
func numbered(base []byte, n int64) []byte {
	copy(base, fmt.Sprintf("%020d", n))
	return base
}

const benchLarge = 64 << 20

// BenchmarkLarge has 64 MiB each: what the store does beside the bare copy with its hash and one sync.
func BenchmarkLarge(b *testing.B) {
	base := bytes.Repeat([]byte("0123456789abcdef"), benchLarge/16)
	b.Run("CopySum", func(b *testing.B) {
		dir := b.TempDir()
		b.SetBytes(benchLarge)
		defer reportProcessor(b)()
		for n := 0; b.Loop(); n++ {
			if err := copySum(filepath.Join(dir, fmt.Sprint(n)), numbered(base, int64(n)), true); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Put", func(b *testing.B) {
		r := benchRig(b, own)
		b.SetBytes(benchLarge)
		defer reportProcessor(b)()
		for n := 0; b.Loop(); n++ {
			if _, err := r.Put(b.Context(), own, bytes.NewReader(numbered(base, int64(n))), benchLarge); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Partial", func(b *testing.B) {
		r := benchRig(b, own)
		name := files.BlobOf(base)
		b.SetBytes(benchLarge)
		defer reportProcessor(b)()
		for n := 0; b.Loop(); n++ {
			if err := fillBench(r, Place{Own, fmt.Sprint(n)}, name, base); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Read", func(b *testing.B) {
		r := benchRig(b, own)
		name, err := r.Put(b.Context(), own, bytes.NewReader(base), benchLarge)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(benchLarge)
		defer reportProcessor(b)()
		for b.Loop() {
			if err = r.Verify(own, name.Hash); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ReadAt", func(b *testing.B) {
		r := benchRig(b, own)
		name, err := r.Put(b.Context(), own, bytes.NewReader(base), benchLarge)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(benchLarge)
		defer reportProcessor(b)()
		for b.Loop() {
			rd, err := r.Open(own, name.Hash)
			if err == nil {
				_, err = io.Copy(io.Discard, io.NewSectionReader(rd, 0, rd.Size()))
			}
			if err = errors.Join(err, rd.Close()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// copySum is the bare limit: a file written and hashed, and synced if need be.
func copySum(path string, content []byte, synced bool) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	sum := sha256.New()
	from := struct{ io.Reader }{bytes.NewReader(content)}
	_, err = io.CopyBuffer(io.MultiWriter(f, sum), from, make([]byte, copyBytes))
	if err == nil && synced {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func fillBench(r *rig, at Place, name files.Blob, content []byte) error {
	p, err := r.Begin(at, name)
	if err != nil {
		return err
	}
	for _, i := range p.Missing() {
		if err = p.WritePiece(i, content[i*files.PieceBytes:(i+1)*files.PieceBytes]); err != nil {
			return err
		}
	}
	return p.Finish()
}

// BenchmarkSmall has 10 KiB each, so many at a time for each processor.
func BenchmarkSmall(b *testing.B) {
	for _, at := range []int{1, 8} {
		for _, synced := range []bool{true, false} {
			b.Run(fmt.Sprintf("Copy/synced=%t/%d", synced, at), func(b *testing.B) {
				dir := b.TempDir()
				benchSmall(b, at, func(n int64, content []byte) error {
					return copySum(filepath.Join(dir, fmt.Sprint(n)), content, synced)
				})
			})
			place := own
			if !synced {
				place = cached
			}
			b.Run(fmt.Sprintf("Put/synced=%t/%d", synced, at), func(b *testing.B) {
				r := benchRig(b, place)
				benchSmall(b, at, func(_ int64, content []byte) error {
					_, err := r.Put(context.Background(), place, bytes.NewReader(content), smallBytes)
					return err
				})
			})
			b.Run(fmt.Sprintf("Partial/synced=%t/%d", synced, at), func(b *testing.B) {
				r := benchRig(b, place)
				benchSmall(b, at, func(_ int64, content []byte) error {
					p, err := r.Begin(place, files.BlobOf(content))
					if err != nil {
						return err
					}
					return errors.Join(p.WritePiece(0, content), p.Finish())
				})
			})
		}
	}
}

const smallBytes = 10 << 10

// reportProcessor has the processor time an operation reported by what it returns: other work on the machine does not
// count, as it does for ns/op.
func reportProcessor(b *testing.B) func() {
	b.Helper()
	before := processorTime(b)
	return func() { b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op") }
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchSmall calls f with content of its own each time, at goroutines for each processor.
func benchSmall(b *testing.B, at int, f func(n int64, content []byte) error) {
	b.Helper()
	b.SetBytes(smallBytes)
	b.SetParallelism(at)
	b.ResetTimer()
	defer reportProcessor(b)()
	var next atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		base := bytes.Repeat([]byte("x"), smallBytes)
		for pb.Next() {
			n := next.Add(1)
			if err := f(n, numbered(base, n)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkOpenStore opens a store of 20,000 blobs.
func BenchmarkOpenStore(b *testing.B) {
	r := benchRig(b, own)
	for n := range 20_000 {
		k := ref(own, fmt.Sprint(n))
		f, err := r.disk.create(fileOf(k))
		if err == nil {
			_, err = f.WriteString(strings.Repeat("x", 10))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		r.reopen()
	}
}
