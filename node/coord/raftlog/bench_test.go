package raftlog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord"
	"github.com/cloudshare/cloudshare/node/coord/coordtest"
)

// counter is the least a state machine does: it decodes and counts. seen is
// told each entry with a command.
type counter struct {
	*coordtest.Machine
	index atomic.Uint64
	seen  chan time.Time
}

func (c *counter) Index() uint64 { return c.index.Load() }

func (c *counter) Apply(entry []byte) ([]command.Result, error) {
	b, err := command.DecodeBatch(entry)
	if err != nil {
		return nil, err
	}
	c.index.Add(1)
	if len(b.Commands) > 0 && c.seen != nil {
		select {
		case c.seen <- time.Now():
		default:
		}
	}
	return make([]command.Result, len(b.Commands)), nil
}

var _ coord.Machine = (*counter)(nil)

// benchGroup opens three voters with the profile's own timing.
func benchGroup(b *testing.B, seen chan time.Time) (lead, follower *Log) {
	b.Helper()
	c := &cluster{
		t: b, dir: b.TempDir(), fed: [16]byte{1}, time: nil, logs: map[string]*Log{}, net: &coordtest.Network{},
	}
	lan := timingOf(LAN)
	lan.stable, lan.promote = 50*time.Millisecond, 20*time.Millisecond
	c.time = &lan
	for i, s := range []string{"a", "b", "c"} {
		cfg := c.config(s, &counter{Machine: coordtest.NewMachine()})
		if i == 1 {
			cfg.Machine.(*counter).seen = seen
		}
		cfg.Net = nil
		l, err := Open(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		c.logs[s] = l
		c.net.Join(s, l.Addr())
		b.Cleanup(func() { _ = l.Close() })
	}
	for len(c.logs["c"].Status().Voters) < 3 {
		<-time.After(10 * time.Millisecond)
	}
	if !c.logs["a"].Calls.Leads() {
		b.Fatal("the founder does not lead")
	}
	return c.logs["a"], c.logs["b"]
}

// payload is about the size of one small submission.
func payload(site string, seq uint64) command.Command {
	job := command.JobSpec{
		Num: seq, Count: 1, MaxAttempts: 1, Need: command.Resources{MilliCPU: 1000},
		Payload: make([]byte, 200),
	}
	return command.Command{
		ID:   command.ID{Site: site, Incarnation: 1, Seq: seq},
		Body: &command.Submit{Jobs: []command.JobSpec{job}},
	}
}

// load runs b.N calls of f by n workers, and reports calls a second.
func load(b *testing.B, n int, f func(i int64) error) {
	b.Helper()
	b.ReportAllocs()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range n {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func proposing(b *testing.B, l *Log) func(int64) error {
	b.Helper()
	return func(i int64) error {
		_, err := l.Propose(context.Background(), payload(l.cfg.Site, uint64(i)))
		return err
	}
}

// BenchmarkPropose: three voters in this process, bolt on the temp directory.
// bare is raft.Apply of the same bytes with nothing around it.
func BenchmarkPropose(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("bare/%d", n), func(b *testing.B) {
			bare, err := coordtest.OpenBareRaft(b.TempDir(), 3)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = bare.Close() }()
			cmd := payload("a", 1)
			entry := (&command.Batch{Term: 1, Commands: []command.Command{cmd}}).Append(nil)
			load(b, n, func(int64) error { return bare.Apply(entry) })
		})
		b.Run(fmt.Sprintf("lead/%d", n), func(b *testing.B) {
			lead, _ := benchGroup(b, nil)
			load(b, n, proposing(b, lead))
		})
		b.Run(fmt.Sprintf("follower/%d", n), func(b *testing.B) {
			_, follower := benchGroup(b, nil)
			load(b, n, proposing(b, follower))
		})
	}
}

// BenchmarkLone measures one proposal at rest at the leader: how long the leader's
// call takes, and how long until a follower has applied the entry.
func BenchmarkLone(b *testing.B) {
	seen := make(chan time.Time, 1)
	lead, _ := benchGroup(b, seen)
	var call, apply []time.Duration
	b.ResetTimer()
	for i := range b.N {
		<-time.After(5 * time.Millisecond) // at rest
		select {
		case <-seen:
		default:
		}
		begin := time.Now()
		if err := proposing(b, lead)(int64(i + 1)); err != nil {
			b.Fatal(err)
		}
		call = append(call, time.Since(begin))
		apply = append(apply, (<-seen).Sub(begin))
	}
	report(b, "lead", call)
	report(b, "follower", apply)
}

func report(b *testing.B, name string, d []time.Duration) {
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Microseconds()), name+"-p50-µs")
	b.ReportMetric(float64(d[len(d)*99/100].Microseconds()), name+"-p99-µs")
}

// BenchmarkIdle reports the CPU that three members at rest use together.
func BenchmarkIdle(b *testing.B) {
	benchGroup(b, nil)
	b.ResetTimer()
	before, begin := cpu(), time.Now()
	<-time.After(3 * time.Second)
	b.ReportMetric(100*(cpu()-before).Seconds()/time.Since(begin).Seconds()/3, "%core/member")
}

// BenchmarkRenew: renewals of one site, so many at a time; those that wait
// together share a confirmation. The CPU is that of all three members.
func BenchmarkRenew(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		for _, at := range []string{"lead", "follower"} {
			b.Run(fmt.Sprintf("%s/%d", at, n), func(b *testing.B) {
				l, follower := benchGroup(b, nil)
				l.Grant(&yes{})
				if at == "follower" {
					l = follower
				}
				r := coord.Renewal{Site: l.cfg.Site, Incarnation: 1}
				before := cpu()
				load(b, n, func(int64) error { return l.Renew(context.Background(), r) })
				b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/call")
			})
		}
	}
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
