package whose

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cloudshare/cloudshare/node/record"
)

// kept is a book with its journal.
type kept struct {
	*Book
	t       *testing.T
	journal *record.Journal
}

func newKept(t *testing.T) *kept {
	t.Helper()
	j, err := record.OpenJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return &kept{NewBook(), t, j}
}

// commit ends a turn.
func (k *kept) commit() {
	k.t.Helper()
	var writes []record.Write
	k.Write(&writes)
	if err := k.journal.Commit(writes); err != nil {
		k.t.Fatal(err)
	}
}

// again is the book of the next start.
func (k *kept) again() *kept {
	k.t.Helper()
	next := &kept{NewBook(), k.t, k.journal}
	if err := next.Recover(k.journal); err != nil {
		k.t.Fatal(err)
	}
	return next
}

// users lists whose the first jobs are.
func (k *kept) users(n uint64) (out string) {
	for num := range n {
		out += fmt.Sprintf("%.1s ", k.UserOf(num)+"-")
	}
	return out
}

func TestUsersOutliveTheBroker(t *testing.T) {
	k := newKept(t)
	k.Add(1, "alice")
	k.Add(2, "alice")
	k.commit()
	k.Add(3, "alice") // goes on with the run that the journal has
	k.Add(4, "")
	k.Add(5, "alice")
	k.Add(6, "bob")
	k.commit()
	const want = "- a a a - a b - "
	if got := k.users(8); got != want || k.Len() != 3 {
		t.Errorf("%s in %d runs", got, k.Len())
	}
	next := k.again()
	if got := next.users(8); got != want || next.Len() != 3 {
		t.Errorf("after a start: %s in %d runs", got, next.Len())
	}
	next.Add(7, "bob")
	next.commit()
	if got := next.again().users(8); got != "- a a a - a b b " {
		t.Errorf("after another one: %s", got)
	}
}

// Forgotten jobs keep their user for the archive's sake, until there are too many; others keep it always.
func TestForgottenJobsLoseTheirUserLast(t *testing.T) {
	k := newKept(t)
	k.most = 3
	for num := range uint64(8) {
		k.Add(num, string(rune('a'+num/2))) // pairs
	}
	k.commit()
	forgotten := map[uint64]bool{0: true, 2: true, 3: true, 6: true, 7: true}
	sweep := func() {
		var writes []record.Write
		k.Sweep(func(num uint64) bool { return forgotten[num] }, &writes)
		if err := k.journal.Commit(writes); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	sweep()
	if got := k.users(8); got != "a a - - c c d d " {
		t.Errorf("left are %s", got)
	}
	k.Add(8, "x")
	k.commit()
	sweep()
	sweep()
	const want = "a a - - c c - - x "
	if got := k.users(9); got != want {
		t.Errorf("left are %s", got)
	}
	if got := k.again().users(9); got != want {
		t.Errorf("after a start: %s", got)
	}
}

func TestForeignRecordsAreRefused(t *testing.T) {
	for _, v := range []string{"", "\x01\x00\x00\x00\x01", "\x02\x00\x00\x00\x01alice", "\x01\x00\x00\x00\x00alice"} {
		if _, err := decodeRun(record.Number(1), []byte(v)); !errors.Is(err, errBadRun) {
			t.Errorf("%q: %v", v, err)
		}
	}
}

// Who reads sees each job's user or none, whatever the core does meanwhile.
func TestReadersBesideTheCore(t *testing.T) {
	b := NewBook()
	b.most = 10
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for num := range uint64(2000) {
				if u := b.UserOf(num); u != "" && u != fmt.Sprint(num%3) {
					t.Errorf("job %d is %s's", num, u)
				}
			}
		})
	}
	for num := range uint64(2000) {
		b.Add(num, fmt.Sprint(num%3))
		var writes []record.Write
		b.Write(&writes)
		b.Sweep(func(uint64) bool { return true }, &writes)
	}
	readers.Wait()
}
