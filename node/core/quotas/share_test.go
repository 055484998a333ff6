package quotas

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/fsm"
	"github.com/cloudshare/cloudshare/node"
)

// site is a site with so many cores, whose users' jobs have one task of one core each, which runs for a second.
type site struct {
	Book
	cores   int
	held    map[string][]uint64 // by user, the jobs' numbers
	queue   []uint64            // published, in order
	running map[uint64]bool
	owner   map[uint64]string
	nice    map[uint64]uint32
	next    uint64
	now     int64 // ms
	ran     map[string]int
}

func newSite(cores int) *site {
	s := &site{
		Book: NewBook(), cores: cores, held: map[string][]uint64{}, running: map[uint64]bool{},
		owner: map[uint64]string{}, nice: map[uint64]uint32{}, ran: map[string]int{}, now: 1,
	}
	s.SetWindow(uint64(2000 * cores))
	return s
}

// anyJob: all jobs are published.
func anyJob(uint64) bool { return true }

var oneCore = Claim{Tasks: 1, MilliCPU: 1000, Bytes: 1}

func (s *site) submit(user string) {
	s.next++
	s.owner[s.next] = user
	if s.MustWait(user) {
		s.Hold(user, oneCore)
		s.held[user] = append(s.held[user], s.next)
		return
	}
	s.nice[s.next] = s.NiceOf(user)
	s.queue = append(s.queue, s.next)
	s.Accept(s.next, user, oneCore, s.nice[s.next], s.now)
}

// second has the queue served and held jobs published for a second.
func (s *site) second() {
	for num := range s.running {
		s.ran[s.owner[num]]++
	}
	clear(s.running)
	s.look()
	for user := s.Next(); user != ""; user = s.Next() {
		num := s.held[user][0]
		s.held[user] = s.held[user][1:]
		s.nice[num] = s.Release(num, user, oneCore, s.now)
		s.queue = append(s.queue, num)
	}
	for _, n := range s.Renice(1<<20, anyJob) {
		s.nice[n.Num] = n.Nice
	}
	slices.SortStableFunc(s.queue, func(a, b uint64) int { return int(s.nice[a]) - int(s.nice[b]) })
	for len(s.running) < s.cores && len(s.queue) > 0 {
		s.running[s.queue[0]] = true
		s.queue = s.queue[1:]
	}
	s.look()
	s.now += 1000
	s.look()
}

// look looks at all jobs.
func (s *site) look() {
	s.Look(1<<20, Moment{s.now, s.now}, func(num uint64) (fsm.Counts, bool) {
		switch {
		case s.running[num]:
			return fsm.Counts{fsm.Running: 1}, true
		case slices.Contains(s.queue, num):
			return fsm.Counts{fsm.Queued: 1}, true
		}
		return fsm.Counts{fsm.TaskSucceeded: 1}, true
	})
}

// TestSharesAreKept: of users that all have more than enough to run, each gets the processors in relation to its
// shares, whoever came first; one who has used little goes before those who have used much.
func TestSharesAreKept(t *testing.T) {
	s := newSite(4)
	shares := map[string]uint64{"alice": 1, "bob": 3, "carol": 1}
	for user, n := range shares {
		if err := s.Set(user, &node.UserLimitsChange{Shares: &n}); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"alice", "bob", "carol"} {
		for range 3000 {
			s.submit(user)
		}
	}
	for range 1000 {
		s.second()
	}
	for user, n := range shares {
		if want := 4000 * int(n) / 5; s.ran[user] < want*9/10 || s.ran[user] > want*11/10 {
			t.Errorf("%s ran %d tasks, of 4000 it has %d of 5 shares", user, s.ran[user], n)
		}
	}
	s.submit("dave")
	for range 3 {
		s.second()
	}
	if s.ran["dave"] != 1 {
		t.Error("who has used nothing waits behind those who have used much")
	}
}

// TestWindowIsKept: whatever users submit and whatever runs, no more is published than the window and a job of each
// user allow, all users' counts are those of their jobs, and everything runs.
func TestWindowIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSite(rapid.IntRange(1, 4).Draw(t, "cores"))
		submitted := 0
		for range rapid.IntRange(1, 30).Draw(t, "seconds") {
			for range rapid.IntRange(0, 20).Draw(t, "jobs") {
				s.submit(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "user"))
				submitted++
			}
			s.check(t)
			s.second()
			s.check(t)
		}
		for range submitted + 5 {
			s.second()
		}
		ran := 0
		for _, n := range s.ran {
			ran += n
		}
		if ran != submitted || s.Waiting() || s.window.used != 0 {
			t.Fatalf("%d of %d ran, %d is used of the window, users wait: %t", ran, submitted, s.window.used, s.Waiting())
		}
	})
}

// check compares what is counted with what there is.
func (s *site) check(t *rapid.T) {
	t.Helper()
	if n, most := len(s.queue)+len(s.running), 2*s.cores*partsOfWindow+len(s.users); n > most {
		t.Fatalf("%d jobs are published at once, at most %d", n, most)
	}
	used := uint64(0)
	for name, u := range s.users {
		used += u.counted
		if u.heldJobs != len(s.held[name]) || (u.at >= 0) != (u.heldJobs > 0) || u.held != uint64(u.heldJobs) {
			t.Fatalf("%s: %d jobs are held, counted are %d, in the heap at %d", name, len(s.held[name]), u.heldJobs, u.at)
		}
		if u.at >= 0 && (s.window.queues[u.in][u.at] != u || u.in != s.window.standingOf(u)) {
			t.Fatalf("%s is not where it belongs", name)
		}
	}
	if used != s.window.used {
		t.Fatalf("%d of the window are used, counted are %d", used, s.window.used)
	}
	for _, q := range s.window.queues {
		for i := 1; i < len(q); i++ {
			if q.Less(i, (i-1)/2) {
				t.Fatalf("a queue is out of order at %d", i)
			}
		}
	}
	if got, want := s.Next(), s.nextOfAll(); got != want {
		t.Fatalf("next is %q, should be %q", got, want)
	}
}

// nextOfAll is Next by a look at all users.
func (s *site) nextOfAll() (next string) {
	for name, u := range s.users {
		may := u.published() == 0 || u.published() < s.window.milliCPU && s.window.used < s.window.milliCPU
		if u.heldJobs > 0 && may && (next == "" || u.before(s.users[next])) {
			next = name
		}
	}
	return next
}

// TestArraysLeaveRoom: arrays that fill the queue, and tasks that nobody can run, leave others room to publish.
func TestArraysLeaveRoom(t *testing.T) {
	b := NewBook()
	b.SetWindow(16_000)
	for i, user := range []string{"a", "b", "c"} {
		if b.MustWait(user) {
			t.Fatalf("%s has nothing open and must wait", user)
		}
		b.Accept(uint64(i+1), user, Claim{Tasks: 10_000, MilliCPU: 64_000}, 0, 0)
	}
	for num := range uint64(4) {
		if b.MustWait("d") {
			t.Fatalf("job %d must wait for arrays of others", num)
		}
		b.Accept(num+10, "d", oneCore, 0, 0)
	}
	if !b.MustWait("a") {
		t.Error("who has filled the window publishes more")
	}
}

// TestHeldTasksFillNoWindow: tasks that are held in the federation take nothing of the window, whether they have never
// been looked at, are held again, or nobody knows their job any more; what is released does.
func TestHeldTasksFillNoWindow(t *testing.T) {
	b := NewBook()
	b.SetWindow(16_000)
	for i, user := range []string{"a", "b", "c", "d", "e"} {
		b.Accept(uint64(i+1), user, Claim{Tasks: 10_000, MilliCPU: 1000, Gated: true}, 0, 0)
	}
	if b.MustWait("a") || b.MustWait("f") || b.window.used != 0 {
		t.Fatalf("held tasks fill the window: %d is used", b.window.used)
	}
	b.Hold("a", oneCore)
	if next := b.Next(); next != "a" {
		t.Fatalf("next is %q, want a", next)
	}
	b.Release(9, "a", oneCore, 0)
	look := func(c fsm.Counts, known bool) {
		b.Look(len(b.jobs), Moment{1, 1}, func(uint64) (fsm.Counts, bool) { return c, known })
	}
	look(fsm.Counts{fsm.Held: 100, fsm.Queued: 9900}, true)
	if !b.MustWait("a") {
		t.Error("released tasks leave room")
	}
	look(fsm.Counts{fsm.Held: 5000, fsm.TaskSucceeded: 5000}, true)
	if b.MustWait("b") || b.users["b"].published() != 0 || b.users["b"].tasks != 5000 {
		t.Errorf("held again, %d is published", b.users["b"].published())
	}
	look(fsm.Counts{fsm.TaskSucceeded: 10_000}, true)
	if n := b.users["b"].gatedCPU; n != 0 || b.window.used != 0 || len(b.jobs) != 0 {
		t.Errorf("after the end %d is held, %d used", n, b.window.used)
	}
}

// TestNiceGrowsWithUse: who has used more in relation to its shares is nicer, in steps of about a twentieth; who uses
// alone is not told so each time.
func TestNiceGrowsWithUse(t *testing.T) {
	b := NewBook()
	u := b.user("alice")
	last := uint32(0)
	for seconds := uint64(1); seconds < 1<<40; seconds += 1 + seconds/25 {
		u.use.milliSeconds = seconds * 1000
		if n := b.niceNow(u); n < last || n > 1000 {
			t.Fatalf("%d core seconds: nice %d after %d", seconds, n, last)
		}
		last = b.niceNow(u)
	}
	b.Accept(1, "alice", oneCore, 0, 0)
	if got := b.Renice(10, anyJob); got != nil {
		t.Errorf("alone: %v", got)
	}
	b.Accept(2, "bob", oneCore, 0, 0)
	b.Accept(3, "bob", oneCore, 0, 0)
	if got := fmt.Sprint(b.Renice(10, anyJob)); got != fmt.Sprintf("[{1 %d}]", last) {
		t.Errorf("beside bob: %s", got)
	}
	if got := b.Renice(10, anyJob); got != nil {
		t.Errorf("in order: %v", got)
	}
}

// TestStaleNiceIsMended: a job of held tasks has the nice value of long ago, when its user had used nothing, while a
// later one of the same user has that of now: once tasks of the former wait, it gets that, too, though the users' order
// is right.
func TestStaleNiceIsMended(t *testing.T) {
	b := NewBook()
	b.Accept(1, "alice", Claim{Tasks: 10, MilliCPU: 1000, Gated: true}, b.NiceOf("alice"), 0)
	b.Look(1, Moment{1, 1}, func(uint64) (fsm.Counts, bool) { return fsm.Counts{fsm.Held: 10}, true })
	b.Renice(10, anyJob)
	b.user("alice").use.milliSeconds = 1000_000
	nice := b.NiceOf("alice")
	b.Accept(2, "alice", oneCore, nice, 1)
	b.Accept(3, "bob", oneCore, b.NiceOf("bob"), 1)
	if got := b.Renice(10, anyJob); got != nil {
		t.Fatalf("what is held is told %v", got)
	}
	b.Look(3, Moment{1, 1}, func(uint64) (fsm.Counts, bool) { return fsm.Counts{fsm.Queued: 10}, true })
	if got := fmt.Sprint(b.Renice(10, anyJob)); nice == 0 || got != fmt.Sprintf("[{1 %d}]", nice) {
		t.Errorf("told %s, want nice %d", got, nice)
	}
}

// BenchmarkPublishAmongAMillion is what the decision costs whose held job is published next, and what follows from it,
// with a million held jobs of a thousand users.
func BenchmarkPublishAmongAMillion(b *testing.B) {
	book := NewBook()
	book.SetWindow(2_000_000)
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("user-", i)
		book.user(names[i]).use.milliSeconds = uint64(i*i) * 1000
	}
	for num := range 1_000_000 {
		book.Hold(names[num%1000], oneCore)
	}
	ended := func(uint64) (fsm.Counts, bool) { return fsm.Counts{fsm.TaskSucceeded: 1}, true }
	for n := uint64(0); b.Loop(); n++ {
		user := book.Next()
		if user == "" {
			book.Look(1000, Moment{int64(n), int64(n)}, ended)
			continue
		}
		book.Release(n, user, oneCore, int64(n))
		book.Hold(user, oneCore)
	}
}

// BenchmarkNextOfNobody is what each turn pays while users have held jobs and the window has room for none of them: it
// grew with the number of users, to 17 µs with 10,000.
func BenchmarkNextOfNobody(b *testing.B) {
	for _, users := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(users), func(b *testing.B) {
			book := NewBook()
			book.SetWindow(2_000_000)
			for i := range users {
				name := fmt.Sprint("user-", i)
				book.Accept(uint64(i), name, Claim{Tasks: 100, MilliCPU: 1000}, 0, 0)
				book.Hold(name, oneCore)
			}
			for b.Loop() {
				if book.Next() != "" {
					b.Fatal("there is room")
				}
			}
		})
	}
}
