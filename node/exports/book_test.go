package exports

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cloudshare/cloudshare/node"
	"github.com/cloudshare/cloudshare/node/record"
)

func journalAt(t *testing.T, dir string) *record.Journal {
	t.Helper()
	j, err := record.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func bookOf(t *testing.T, j Journal) *Book {
	t.Helper()
	b, err := Open(j)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// keep records a job as the core does.
func keep(t *testing.T, b *Book, num uint64, a node.Attached) {
	t.Helper()
	w := record.PutRecord(record.BucketAttached, record.Number(num), &a)
	if err := b.journal.Commit([]record.Write{w}); err != nil {
		t.Fatal(err)
	}
	b.Keep(num, a)
}

// TestBookOutlivesTheBroker: documents and ends are there after a restart.
func TestBookOutlivesTheBroker(t *testing.T) {
	dir := t.TempDir()
	j := journalAt(t, dir)
	b := bookOf(t, j)
	for num := uint64(1); num <= 3; num++ {
		keep(t, b, num, node.Attached{
			User: "alice", Name: fmt.Sprint("n", num), Tags: map[string]string{"k": "v"},
			Document: json.RawMessage(`{"a":1}`), Exports: []node.Export{{From: "x", Root: "/r", To: "y"}},
		})
	}
	if err := b.End(2, &node.AttachedEnd{State: "succeeded", Files: []node.Exported{{Size: 3}}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	b = bookOf(t, journalAt(t, dir))
	if nums := b.Unended(); len(nums) != 2 || nums[0] != 1 || nums[1] != 3 || !b.Has(1) || b.Has(2) {
		t.Errorf("%v", nums)
	}
	a, err := b.Document(2)
	if err != nil || string(a.Document) != `{"a":1}` || a.End == nil || a.End.Files[0].Size != 3 || len(a.Exports) != 1 {
		t.Errorf("%+v %v", a, err)
	}
	if a, known := b.Find(3); !known || a.Document != nil || a.Name != "n3" {
		t.Errorf("%+v %v", a, known)
	}
	if _, err := b.Document(9); !errors.Is(err, node.ErrNotFound) {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	b := bookOf(t, journalAt(t, t.TempDir()))
	for num := uint64(1); num <= 5; num++ {
		keep(t, b, num, node.Attached{User: []string{"a", "b"}[num%2]})
	}
	all := func(*node.Attached) bool { return true }
	list, next := b.List(0, 2, all)
	if len(list) != 2 || list[0].Num != 5 || list[1].Num != 4 || next != 4 {
		t.Errorf("%v %d", list, next)
	}
	if list, next = b.List(next, 9, all); len(list) != 3 || list[0].Num != 3 || next != 0 {
		t.Errorf("%v %d", list, next)
	}
	list, next = b.List(0, 9, func(a *node.Attached) bool { return a.User == "a" })
	if len(list) != 2 || list[0].Num != 4 || next != 0 {
		t.Errorf("%v %d", list, next)
	}
}

// TestAdmit: what has not ended is bounded by number, by bytes in the journal and by bytes in memory, of all and of
// each user; and no more than that is taken.
func TestAdmit(t *testing.T) {
	b := bookOf(t, journalAt(t, t.TempDir()))
	if err := b.Admit(&node.Attached{Document: make([]byte, MaxDocument+1)}); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	one := &node.Attached{Document: make([]byte, 100), Tags: map[string]string{"key": "value"}}
	more := amountOf(one, 100)
	for name, most := range map[string]amount{
		"number": {mostOpen.jobs, 0, 0}, "bytes": {0, mostOpen.bytes, 0}, "memory": {0, 0, mostOpen.index},
	} {
		room := amount{min(most.jobs, more.jobs), min(most.bytes, more.bytes), min(most.index, more.index)}
		for _, c := range []struct {
			held amount
			full bool
		}{{most.Plus(room, -1), false}, {most, true}} {
			b.open.Add("", c.held, 1)
			if err := b.Admit(one); (err != nil) != c.full || c.full && !errors.Is(err, node.ErrAttachedFull) {
				t.Errorf("%s, %v of all: %v", name, c.held, err)
			}
			b.open.Add("", c.held, -1)
		}
		b.open.Add("alice", most.part(partsOfUser), 1)
		alice, bob := *one, *one
		alice.User, bob.User = "alice", "bob"
		if err := b.Admit(&alice); !errors.Is(err, node.ErrAttachedFull) {
			t.Errorf("%s of alice: %v", name, err)
		}
		if err := errors.Join(b.Admit(&bob), b.Admit(one)); err != nil {
			t.Errorf("%s of others: %v", name, err)
		}
		b.open.Add("alice", most.part(partsOfUser), -1)
	}
}

// weigh has a kept job count for so much.
func (b *Book) weigh(num uint64, a amount) {
	j := b.jobs[num]
	b.open.Add(j.User, j.amount, -1)
	j.amount = a
	b.open.Add(j.User, a, 1)
}

// numbers returns the jobs that are kept, newest first.
func (b *Book) numbers() string {
	list, _ := b.List(0, 100, func(*node.Attached) bool { return true })
	text := ""
	for i := range list {
		text += fmt.Sprint(list[i].Num, " ")
	}
	return strings.TrimSpace(text)
}

// endOne ends a job.
func (b *Book) endOne(t *testing.T, num uint64) {
	t.Helper()
	if err := b.End(num, &node.AttachedEnd{State: "failed"}); err != nil {
		t.Fatal(err)
	}
}

// TestOldestGo: what has ended makes room for what ends later, and what has not stays, whichever bound it is.
func TestOldestGo(t *testing.T) {
	for name, a := range map[string]amount{
		"number": {maxDone / 3 * 2, 0, 0}, "bytes": {0, MaxBytes / 3, 0}, "memory": {0, 0, maxIndex / 3},
	} {
		b := bookOf(t, journalAt(t, t.TempDir()))
		for num := uint64(1); num <= 3; num++ {
			keep(t, b, num, node.Attached{Document: json.RawMessage(`{}`)})
			b.weigh(num, a)
		}
		b.endOne(t, 2)
		b.endOne(t, 3)
		if got := b.numbers(); got != "3 1" {
			t.Errorf("%s: %s", name, got)
		}
		if text, err := b.journal.Get(record.BucketAttached, record.Number(2)); err != nil || text != nil {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
}

// TestOneUsersEndsAreBounded: who ends a great many tasks has their own forgotten, and nobody else's.
func TestOneUsersEndsAreBounded(t *testing.T) {
	b := bookOf(t, journalAt(t, t.TempDir()))
	for num, user := range []string{"bob", "alice", "alice", "alice"} {
		keep(t, b, uint64(num+1), node.Attached{User: user})
		b.weigh(uint64(num+1), amount{1, mostDone.bytes / partsOfUser / 2, 1})
	}
	for num := uint64(1); num <= 4; num++ {
		b.endOne(t, num)
	}
	if got := b.numbers(); got != "4 1" {
		t.Errorf("left are %s", got)
	}
	if got := b.done.Of("alice").Plus(b.done.Of("bob"), 1); got != b.done.Sum() || b.open.Of("alice") != (amount{}) ||
		b.open.Of("bob") != (amount{}) || b.open.Sum() != (amount{}) {
		t.Errorf("%v of users, %v of all, %v open", got, b.done.Sum(), b.open)
	}
}

// TestOpenOnesEraseNone: however much there is of what has not ended, what has stays.
func TestOpenOnesEraseNone(t *testing.T) {
	b := bookOf(t, journalAt(t, t.TempDir()))
	for num := uint64(1); num <= 3; num++ {
		keep(t, b, num, node.Attached{User: fmt.Sprint("u", num), Document: json.RawMessage(`{}`)})
	}
	b.weigh(1, mostOpen)
	b.endOne(t, 2)
	b.endOne(t, 3)
	if got := b.numbers(); got != "3 2 1" || b.done.Sum().jobs != 2 || b.open.Of("u1") != mostOpen ||
		b.open.Sum() != mostOpen {
		t.Errorf("%s, %v", got, b.done.Sum())
	}
}

// TestEndIsNotedOnce: the first one counts, also after a restart, and whoever waits for it hears of it.
func TestEndIsNotedOnce(t *testing.T) {
	dir := t.TempDir()
	j := journalAt(t, dir)
	b := bookOf(t, j)
	keep(t, b, 1, node.Attached{})
	over := b.Ended(1)
	select {
	case <-over:
		t.Fatal("it has ended")
	default:
	}
	b.endOne(t, 1)
	<-over
	<-b.Ended(1)
	<-b.Ended(9)
	if err := b.End(1, &node.AttachedEnd{State: "succeeded"}); err != nil {
		t.Error(err)
	}
	if err := b.End(9, &node.AttachedEnd{State: "succeeded"}); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	b = bookOf(t, journalAt(t, dir))
	if a, _ := b.Find(1); a.End == nil || a.End.State != "failed" {
		t.Errorf("%+v", a.End)
	}
}

// TestManyFilesOfAnEnd: of a great many not all are kept, and it is said how many are not; lists hold none in memory.
func TestManyFilesOfAnEnd(t *testing.T) {
	b := bookOf(t, journalAt(t, t.TempDir()))
	keep(t, b, 1, node.Attached{})
	end := &node.AttachedEnd{State: "succeeded", Record: []byte("r")}
	const many = 20_000
	for range many {
		end.Files = append(end.Files, node.Exported{Path: strings.Repeat("x", 1000)})
	}
	if err := b.End(1, end); err != nil {
		t.Fatal(err)
	}
	if a, _ := b.Find(1); a.End.Files != nil || a.End.Record != nil {
		t.Error("files are in memory")
	}
	a, err := b.Document(1)
	if err != nil || len(a.End.Files)+a.End.Untold != many || len(a.End.Files) < 1000 || string(a.End.Record) != "r" {
		t.Errorf("%d files, %d untold, %v", len(a.End.Files), a.End.Untold, err)
	}
	if bytes := b.done.Sum().bytes; bytes > maxEnd || bytes < 1000*1000 {
		t.Errorf("it has %d bytes", bytes)
	}
}

// TestPagesAreStable: who pages sees each job once that is there from begin to end, whatever is made and forgotten
// meanwhile.
func TestPagesAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &Book{jobs: map[uint64]*job{}}
		next := uint64(1)
		for range rapid.IntRange(0, 30).Draw(t, "jobs") {
			b.add(next, &node.Attached{})
			next++
		}
		first, gone := next, map[uint64]bool{}
		var seen []uint64
		all := func(*node.Attached) bool { return true }
		for below := uint64(0); ; {
			list, on := b.List(below, rapid.IntRange(1, 5).Draw(t, "page"), all)
			for i := range list {
				seen = append(seen, list[i].Num)
			}
			if below = on; on == 0 {
				break
			}
			b.add(next, &node.Attached{})
			next++
			if at := rapid.Uint64Range(1, next).Draw(t, "forgotten"); b.jobs[at] != nil {
				delete(b.jobs, at)
				b.nums = slices.DeleteFunc(b.nums, func(num uint64) bool { return num == at })
				gone[at] = true
			}
		}
		for i := 1; i < len(seen); i++ {
			if seen[i] >= seen[i-1] {
				t.Fatalf("seen are %v", seen)
			}
		}
		for num := uint64(1); num < first; num++ {
			if !gone[num] && !slices.Contains(seen, num) {
				t.Fatalf("job %d was there, and seen are %v", num, seen)
			}
		}
	})
}
