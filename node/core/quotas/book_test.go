package quotas

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

func u64(n uint64) *uint64 { return &n }

func TestRefusalsNameTheQuota(t *testing.T) {
	b := NewBook()
	change := &node.UserLimitsChange{Tasks: u64(10), MilliCPU: u64(8000), Bytes: u64(100)}
	if err := b.Set(node.EveryUser, change); err != nil {
		t.Fatal(err)
	}
	b.Accept(1, "alice", Claim{Tasks: 4, MilliCPU: 1000, Bytes: 60}, 0, 0)
	for _, c := range []struct {
		claim Claim
		quota string
		never bool
	}{
		{Claim{Tasks: 4, MilliCPU: 1000, Bytes: 40}, "", false},
		{Claim{Tasks: 7, MilliCPU: 1, Bytes: 1}, node.UserTasks, false},
		{Claim{Tasks: 11, MilliCPU: 1, Bytes: 1}, node.UserTasks, true},
		{Claim{Tasks: 1, MilliCPU: 4001, Bytes: 1}, node.UserMilliCPU, false},
		{Claim{Tasks: 1, MilliCPU: 8001, Bytes: 1}, node.UserMilliCPU, true},
		{Claim{Tasks: 1, MilliCPU: 1, Bytes: 41}, node.UserBytes, false},
	} {
		err := b.Admit("alice", c.claim, 0)
		var q *node.UserQuotaError
		if !errors.As(err, &q) {
			if c.quota != "" || err != nil {
				t.Errorf("%+v: %v", c.claim, err)
			}
			continue
		}
		if q.Quota != c.quota || q.Never() != c.never || !errors.Is(err, node.ErrUserQuota) {
			t.Errorf("%+v: %v", c.claim, err)
		}
	}
	if err := b.Admit("", Claim{Tasks: 1000}, 0); err != nil {
		t.Errorf("the site's own jobs are limited: %v", err)
	}
	if err := b.Set("alice", &node.UserLimitsChange{Tasks: u64(0)}); err != nil {
		t.Fatal(err)
	}
	if err := b.Admit("alice", Claim{Tasks: 1000}, 0); err != nil {
		t.Errorf("alice has no limit of tasks of her own: %v", err)
	}
	if err := b.Set("alice", &node.UserLimitsChange{Clear: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.Admit("alice", Claim{Tasks: 1000}, 0); err == nil {
		t.Error("the limits of everybody do not hold again")
	}
}

// TestUseIsWhatRuns: two tasks of two cores that run for 10 s are 40 core seconds.
func TestUseIsWhatRuns(t *testing.T) {
	b := NewBook()
	b.Accept(1, "alice", Claim{Tasks: 3, MilliCPU: 2000}, 0, 0)
	for now := int64(0); now <= 10_000; now += 100 {
		b.Look(10, Moment{now, 1 + now}, func(uint64) (fsm.Counts, bool) {
			return fsm.Counts{fsm.Running: 2, fsm.Queued: 1}, true
		})
	}
	if got := b.List(10_001)[1]; got.CoreSeconds != 40 || got.Tasks != 3 {
		t.Errorf("after 10 s: %+v", got)
	}
}

// TestJobsUnderWayAreCounted: a job that nobody knows for a moment is on its way, for longer it is gone.
func TestJobsUnderWayAreCounted(t *testing.T) {
	b := NewBook()
	b.Accept(1, "alice", Claim{Tasks: 1}, 0, 0)
	gone := func(uint64) (fsm.Counts, bool) { return fsm.Counts{}, false }
	b.Look(1, Moment{1, 1}, gone)
	b.Look(1, Moment{forgetAfter, 1}, gone)
	if b.users["alice"].tasks != 1 {
		t.Error("forgotten at once")
	}
	b.Look(1, Moment{forgetAfter + 1, 1}, gone)
	if b.users["alice"].tasks != 0 || len(b.jobs) != 0 {
		t.Error("counted forever")
	}
}

// TestRateIsKept: whenever jobs come, no minute has more than twice those that a minute may have, because all may come
// at once; after the wait that a refusal tells, one is taken.
func TestRateIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(1, 50).Draw(t, "limit")
		b, now := NewBook(), int64(time.Hour)
		_ = b.Set("alice", &node.UserLimitsChange{JobsPerMinute: &limit})
		var taken []int64
		for range rapid.IntRange(1, 200).Draw(t, "tries") {
			now += rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause") * rapid.Int64Range(0, 1).Draw(t, "pauses")
			err := b.Admit("alice", Claim{Tasks: 1}, now)
			var q *node.UserQuotaError
			if errors.As(err, &q) {
				if q.After <= 0 || q.Used != limit || b.Admit("alice", Claim{Tasks: 1}, now+int64(q.After)) != nil {
					t.Fatalf("%v, after %s", err, q.After)
				}
				continue
			}
			b.Spend("alice", now)
			taken = append(taken, now)
			within := 0
			for _, at := range taken {
				if now-at < int64(time.Minute) {
					within++
				}
			}
			if uint64(within) > 2*limit {
				t.Fatalf("%d jobs in a minute, the limit is %d", within, limit)
			}
		}
		if len(taken) == 0 {
			t.Fatal("nothing was taken")
		}
	})
}

// TestCountsAreThoseOfOpenJobs: whatever comes and ends, and however often the broker starts, what is counted of each
// user is what its open jobs have, and no limit is exceeded by what was admitted.
func TestCountsAreThoseOfOpenJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, next := NewBook(), uint64(0)
		type open struct {
			user string
			Claim
			left uint32
		}
		jobs := map[uint64]*open{}
		counts := func(num uint64) (fsm.Counts, bool) {
			j := jobs[num]
			if j == nil {
				return fsm.Counts{}, true
			}
			return fsm.Counts{fsm.Queued: j.left, fsm.TaskFailed: uint32(j.Tasks) - j.left}, true
		}
		_ = b.Set(node.EveryUser, &node.UserLimitsChange{Tasks: u64(20), MilliCPU: u64(20_000), Bytes: u64(200)})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				user := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user")
				c := Claim{
					rapid.Uint64Range(1, 8).Draw(t, "tasks"), rapid.Uint64Range(0, 4000).Draw(t, "cpu"),
					rapid.Uint64Range(0, 50).Draw(t, "bytes"), rapid.Bool().Draw(t, "gated"),
				}
				if b.Admit(user, c, 0) == nil {
					next++
					b.Accept(next, user, c, 0, 0)
					jobs[next] = &open{user, c, uint32(c.Tasks)}
				}
			case 2:
				for num, j := range jobs {
					if j.left--; j.left == 0 {
						delete(jobs, num)
					}
				}
			case 3:
				b.Restart()
				for num := range next + 1 {
					if j := jobs[num]; j != nil {
						b.Accept(num, j.user, j.Claim, 0, 0)
					}
				}
			}
			b.next = 0 // a whole turn, without those that a removal puts in front
			b.Look(1000, Moment{1, 1}, counts)
			want := map[string]user{}
			for _, j := range jobs {
				w := want[j.user]
				w.tasks += uint64(j.left)
				w.milliCPU += uint64(j.left) * j.MilliCPU
				w.bytes += j.Bytes
				want[j.user] = w
			}
			for name, u := range b.users {
				if w := want[name]; u.tasks != w.tasks || u.milliCPU != w.milliCPU || u.bytes != w.bytes {
					t.Fatalf("%s: counted %+v, has %+v", name, u, w)
				}
				if u.tasks > 20 || u.milliCPU > 20_000 || u.bytes > 200 {
					t.Fatalf("%s is beyond its quotas: %+v", name, u)
				}
			}
		}
	})
}

func TestLimitsAndUseOutliveTheBroker(t *testing.T) {
	j, err := record.OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	b := NewBook()
	for _, name := range []string{node.EveryUser, "alice", "bob"} {
		if err = b.Set(name, &node.UserLimitsChange{Tasks: u64(7)}); err != nil {
			t.Fatal(err)
		}
	}
	_ = b.Set("bob", &node.UserLimitsChange{Clear: true})
	b.Accept(1, "carol", Claim{Tasks: 1, MilliCPU: 1000}, 0, 0)
	b.Look(1, Moment{5000, 5000}, func(uint64) (fsm.Counts, bool) { return fsm.Counts{fsm.Running: 1}, true })
	var writes []record.Write
	b.WriteUser(node.EveryUser, &writes)
	b.Write(&writes)
	if err = j.Commit(writes); err != nil {
		t.Fatal(err)
	}
	again := NewBook()
	if err = again.Recover(j); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(again.List(5000))
	want := fmt.Sprint([]node.UserUse{
		{User: "*", Limits: node.UserLimits{Tasks: 7}, From: node.LimitsByCommand},
		{User: "alice", Limits: node.UserLimits{Tasks: 7}, Own: true, From: node.LimitsByCommand},
		{User: "carol", Limits: node.UserLimits{Tasks: 7}, From: node.LimitsOfEverybody, CoreSeconds: 5},
	})
	if got != want {
		t.Errorf("after a start: %s\nwant %s", got, want)
	}
}

// BenchmarkAdmitAmongAMillion is what quotas cost a submission, and a look at a job in its turn, with a million open
// jobs of a thousand users.
func BenchmarkAdmitAmongAMillion(b *testing.B) {
	book := NewBook()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("user-", i)
	}
	for num := range uint64(1_000_000) {
		book.Accept(num, names[num%1000], Claim{Tasks: 1, MilliCPU: 1000, Bytes: 40}, 0, 0)
	}
	waits := func(uint64) (fsm.Counts, bool) { return fsm.Counts{fsm.Queued: 1}, true }
	for n := 0; b.Loop(); n++ {
		if err := book.Admit(names[n%1000], Claim{Tasks: 1, MilliCPU: 1000, Bytes: 40}, int64(n)); err != nil {
			b.Fatal(err)
		}
		book.Look(1, Moment{int64(n), int64(n)}, waits)
	}
}
