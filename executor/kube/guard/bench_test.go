package guard

import (
	"context"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkQuestion is one question and its answer, on a connection that stays; the
// processor's time is that of both sides.
func BenchmarkQuestion(b *testing.B) {
	key := []byte("key")
	s := httptest.NewServer(NewServer(key, func(Question) Answer { return Answer{Left: time.Second} }, nil).Handler)
	defer s.Close()
	before := used(b)
	b.RunParallel(func(pb *testing.PB) {
		a := newAsker(Orders{URL: s.URL, Attempt: "site-1.7-0-1-9", Secret: SecretOf(key, "site-1.7-0-1-9")})
		for pb.Next() {
			if _, err := a.question(context.Background()); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64((used(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// used is the processor's time of this process.
func used(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkConnections is what a watchdog's connection takes of memory between two
// questions, on both sides.
func BenchmarkConnections(b *testing.B) {
	key := []byte("key")
	s := httptest.NewServer(NewServer(key, func(Question) Answer { return Answer{Left: time.Second} }, nil).Handler)
	defer s.Close()
	size := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := size()
	all := make([]*asker, b.N)
	for i := range all {
		all[i] = newAsker(Orders{URL: s.URL, Attempt: "a", Secret: SecretOf(key, "a")})
		if _, err := all[i].question(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size()-before)/float64(b.N), "B/conn")
	for _, a := range all {
		a.http.CloseIdleConnections()
	}
}
