package exports

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

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

func TestAdmit(t *testing.T) {
	b := bookOf(t, journalAt(t, t.TempDir()))
	if err := b.Admit(&node.Attached{Document: make([]byte, MaxDocument+1)}); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	b.open.Add("alice", MaxOpen/partsOpen)
	if err := b.Admit(&node.Attached{User: "alice"}); !errors.Is(err, node.ErrAttachedFull) {
		t.Error(err)
	}
	if err := b.Admit(&node.Attached{User: "bob"}); err != nil {
		t.Error(err)
	}
	b.held.Add("alice", MaxBytes/2/partsOpen+1)
	b.open.Add("alice", 1-b.open.Of("alice"))
	if err := b.Admit(&node.Attached{User: "alice"}); !errors.Is(err, node.ErrAttachedFull) {
		t.Error(err)
	}
	if err := b.Admit(&node.Attached{User: "bob"}); err != nil {
		t.Error(err)
	}
	b.done = MaxBytes + 1
	if err := b.Admit(&node.Attached{}); !errors.Is(err, node.ErrAttachedFull) {
		t.Error(err)
	}
}

// TestOldestGo: what has ended makes room for what ends later, and what has not stays.
func TestOldestGo(t *testing.T) {
	b := bookOf(t, journalAt(t, t.TempDir()))
	for num := uint64(1); num <= 3; num++ {
		keep(t, b, num, node.Attached{Document: json.RawMessage(`{}`)})
		b.jobs[num].bytes = MaxBytes / 3
		b.held.Add("", MaxBytes/3)
	}
	for _, num := range []uint64{2, 3} {
		if err := b.End(num, &node.AttachedEnd{State: "failed"}); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := b.List(0, 9, func(*node.Attached) bool { return true })
	if len(list) != 2 || list[0].Num != 3 || list[1].Num != 1 {
		t.Errorf("%v", list)
	}
	if text, err := b.journal.Get(record.BucketAttached, record.Number(2)); err != nil || text != nil {
		t.Errorf("%q %v", text, err)
	}
}

// TestOpenOnesEraseNone: however much there is of what has not ended, what has stays.
func TestOpenOnesEraseNone(t *testing.T) {
	b := bookOf(t, journalAt(t, t.TempDir()))
	for num := uint64(1); num <= 3; num++ {
		keep(t, b, num, node.Attached{User: fmt.Sprint("u", num), Document: json.RawMessage(`{}`)})
	}
	b.held.Add("u1", MaxBytes-4-b.jobs[1].bytes)
	b.jobs[1].bytes = MaxBytes - 4
	for _, num := range []uint64{2, 3} {
		if err := b.End(num, &node.AttachedEnd{State: "failed"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, known := b.Find(2); !known || b.done != 4 || b.held.Sum() != MaxBytes-4 {
		t.Errorf("%v %d %v", known, b.done, b.held)
	}
}
